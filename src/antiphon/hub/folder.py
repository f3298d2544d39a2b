"""HubFolder: the data folder of a hub. Other processes find the running hub through it."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from antiphon.errors import LocalError
from antiphon.hub.access.tokens import load_own_token
from antiphon.jsonrpc.frames import UNREADABLE
from antiphon.private_files import locked, make_private_folder, read_private, tighten_file, write_private

OURS = ("token", "mark", "hub.lock", "hub.log", "sessions.db", "tokens.json", "agents.json", "audit.jsonl")
"""Files that identify the folder of a hub."""
_TIGHTENED = re.compile(
    r"mark|hub\.(lock|log|json)|agents\.json|push\.json|push-key\.pem|webhook-secret|"
    r"tokens\.json\.(lock|shared)|(sessions\.db|audit\.jsonl).*"
)
"""Files that are made private. A token that others could read is refused instead: they may know it."""


class Running(Struct, frozen=True, omit_defaults=True):
    """A running hub, as its run file and its ready file describe it."""

    url: str
    acp: str
    """The WebSocket address."""
    token: str
    pid: int = 0
    agents: list[str] = []
    ca: str = ""
    """The certificate file, which clients on this machine trust."""
    store: str = ""
    """The shared store of the sessions, without passwords; empty if they are in the folder."""


def default_folder() -> Path:
    """Return the data folder that is usual on this platform."""
    if sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Application Support")
    else:
        base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "antiphon"


class HubFolder:
    """The data folder of a hub: sessions, tokens, and how to reach the hub while it runs."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = default_folder() if path is None else Path(path).absolute()

    def make(self) -> None:
        """Make the folder, or make an existing one and its files private. Raises `LocalError`."""
        try:
            make_private_folder(self.path, ours=OURS)
            for name in os.listdir(self.path):
                if _TIGHTENED.fullmatch(name):
                    tighten_file(self.path / name)
        except OSError as error:
            raise LocalError(f"{self.path} cannot be made: {error.strerror}") from error

    @property
    def sessions(self) -> Path:
        return self.path / "sessions.db"

    @property
    def token(self) -> str:
        return load_own_token(self.path / "token")

    @property
    def tokens(self) -> Path:
        """The file of further tokens, hashed."""
        return self.path / "tokens.json"

    @property
    def known_agents(self) -> Path:
        """The file of what the agents said of themselves."""
        return self.path / "agents.json"

    @property
    def audit(self) -> Path:
        return self.path / "audit.jsonl"

    @property
    def webhook_secret(self) -> str:
        """The secret that signs the requests of a webhook. It is made when it is first used."""
        from antiphon.hub.alerts.webhook import new_secret

        path = self.path / "webhook-secret"
        stored = read_private(path)
        if stored is None:
            stored = new_secret().encode()
            write_private(path, stored + b"\n")
        return stored.decode(errors="replace").strip()

    @property
    def mark(self) -> str:
        """The name of this hub across restarts. Agent processes carry it."""
        path = self.path / "mark"
        if not path.exists():
            write_private(path, secrets.token_hex(16).encode())
        return path.read_text(errors="replace")

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder for one hub. The lock ends with the process. Raises `LocalError`."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(locked(self.path / "hub.lock", wait=False))
            except BlockingIOError:
                running = self.running()
                where = "" if running is None else f" (process {running.pid}, {running.acp})"
                raise LocalError(
                    f"a hub runs in {self.path} already{where}: attach to that one, or give this hub "
                    "a folder of its own with --data DIR"
                ) from None
            except OSError as error:
                raise LocalError(f"{self.path} cannot be written in: {error.strerror}") from error
            yield

    @contextlib.contextmanager
    def published(self, running: Running) -> Iterator[None]:
        """Write the run file inside the block, so that other processes find the hub."""
        write_private(self._run_file, msgspec.json.encode(running))
        try:
            yield
        finally:
            with contextlib.suppress(FileNotFoundError):
                self._run_file.unlink()

    @property
    def _run_file(self) -> Path:
        return self.path / "hub.json"

    def running(self) -> Running | None:
        """Return the hub of the run file if its process exists."""
        try:
            found = msgspec.json.decode(self._run_file.read_bytes(), type=Running)
        except (OSError, *UNREADABLE):
            return None
        return found if _runs(found.pid) else None


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    with contextlib.suppress(OSError):  # a zombie was killed and is not reaped yet
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1] != "Z"
    return True
