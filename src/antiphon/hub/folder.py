"""HubFolder: where a hub keeps what is its own, and where others find it while it runs."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from antiphon.errors import LocalError
from antiphon.hub.access import keep_token
from antiphon.private_files import make_private_folder, open_private, tighten_file

OURS = ("token", "mark", "hub.lock", "hub.log", "sessions.db", "tokens.json", "agents.json", "audit.jsonl")
"""Files by which a folder is known to be a hub's."""
_TIGHTENED = re.compile(
    r"mark|hub\.(lock|log|json)|agents\.json|tokens\.json\.lock|(sessions\.db|audit\.jsonl).*"
)
"""Files that are taken from others. A token that others could read is refused instead: they may know it."""


class Running(Struct, frozen=True, omit_defaults=True):
    """A hub that runs, as its run file and its ready file tell it."""

    url: str
    acp: str
    """Its WebSocket address."""
    token: str
    pid: int = 0
    agents: list[str] = []
    ca: str = ""
    """The file of its certificate, which this machine's own clients trust."""


def default_folder() -> Path:
    """As the platform has it."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Application Support")
    else:
        base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "antiphon"


def write_private(path: Path, content: bytes) -> None:
    """Whole or not at all, and for its owner's eyes alone."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        beside.unlink()
    made = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(made, "wb") as file:
        file.write(content)
    os.replace(beside, path)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time is in the block; the others wait."""
    with os.fdopen(open_private(path, os.O_RDWR | os.O_CREAT), "r+b") as file:
        _lock(file.fileno(), wait=True)
        yield


class HubFolder:
    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = default_folder() if path is None else Path(path).absolute()

    def make(self) -> None:
        """Make the folder, or take an existing one, and what a hub keeps in it, from other users. Raises
        `LocalError`."""
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
        return keep_token(self.path / "token")

    @property
    def tokens(self) -> Path:
        """Where further tokens are kept, hashed."""
        return self.path / "tokens.json"

    @property
    def known_agents(self) -> Path:
        """Where the hub keeps what its agents said of themselves."""
        return self.path / "agents.json"

    @property
    def audit(self) -> Path:
        return self.path / "audit.jsonl"

    @property
    def mark(self) -> str:
        """What names the hub of this folder, over its lives."""
        path = self.path / "mark"
        if not path.exists():
            write_private(path, secrets.token_hex(16).encode())
        return path.read_text()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """One hub at a time works here; ends with the process, however that ends. Raises `LocalError`."""
        with self._open_lock() as file:
            try:
                _lock(file.fileno())
            except OSError:
                running = self.running()
                where = "" if running is None else f" (process {running.pid}, {running.acp})"
                raise LocalError(
                    f"a hub runs in {self.path} already{where}: attach to that one, or name another folder"
                ) from None
            yield

    def _open_lock(self) -> BinaryIO:
        try:
            return os.fdopen(open_private(self.path / "hub.lock", os.O_RDWR | os.O_CREAT), "r+b")
        except OSError as error:
            raise LocalError(f"{self.path} cannot be written in: {error.strerror}") from error

    @contextlib.contextmanager
    def told(self, running: Running) -> Iterator[None]:
        """While it runs, others find it here."""
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
        """The hub that runs here, as far as its file tells: after a kill it may be gone."""
        try:
            found = msgspec.json.decode(self._run_file.read_bytes(), type=Running)
        except (OSError, msgspec.DecodeError):
            return None
        return found if _runs(found.pid) else None


def _runs(pid: int) -> bool:
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    with contextlib.suppress(OSError):  # killed, and nobody has looked yet who started it
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1] != "Z"
    return True


def _lock(fd: int, *, wait: bool = False) -> None:
    if sys.platform == "win32":
        import msvcrt

        locking: Any = msvcrt
        locking.locking(fd, locking.LK_LOCK if wait else locking.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
