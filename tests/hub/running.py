"""A hub as people run it: `antiphon serve` in a process of its own, with real agents behind it.

The process is forked from one that has imported everything: see `tests/warm.py`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from antiphon.client import Client, Reconnect, connect
from antiphon.transports.websocket import connect_websocket
from tests.agent.talk import Talk
from tests.options import connect_options
from tests.warm import WarmProcess

DEADLINE = 60.0
ROOT = Path(__file__).parents[2]
ANTIPHON = [sys.executable, "-m", "antiphon"]
REHEARSE = [*ANTIPHON, "rehearse"]
SLOPPY = [sys.executable, str(ROOT / "tests" / "client" / "sloppy_agent.py")]
AGENT = [sys.executable, str(Path(__file__).parent / "agent.py")]


class Served:
    """A running `antiphon serve`."""

    def __init__(self, folder: Path, arguments: Sequence[str]) -> None:
        self.folder = folder
        self.arguments = list(arguments)
        self._start()

    def _start(self, port: str = "0") -> None:
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)
        where = ["--port", port, "--data", str(self.folder), "--ready-file", str(ready)]
        self.process = WarmProcess(["serve", *where, *self.arguments], stderr=subprocess.PIPE)
        until = time.monotonic() + DEADLINE
        while not ready.exists():
            assert time.monotonic() < until
            assert self.process.poll() is None, (self.process.stderr or sys.stdin).read()
            time.sleep(0.01)
        assert ready.stat().st_mode & 0o077 == 0
        told = json.loads(ready.read_text())
        self.acp: str = told["acp"]
        self.token: str = told["token"]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(DEADLINE)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def restart(self, *, port: str = "0") -> None:
        """After a kill: the same folder, another process."""
        self._start(port)

    @property
    def port(self) -> str:
        return self.acp.rpartition(":")[2].partition("/")[0]

    def end(self, *, patience: float = DEADLINE) -> tuple[int, str]:
        """Ask it to end; its exit code and what it wrote. It is told to end at once when patience is over:
        a hub gives an open turn ten seconds."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=DEADLINE)
        return self.process.returncode, errors.decode()

    def client(self, **asked: Any) -> AbstractAsyncContextManager[Client]:
        return client_of(self.acp, self.token, **asked)

    def talk(self, version: int = 2, **initialize: Any) -> AbstractAsyncContextManager[Talk]:
        return talk_to(self.acp, self.token, version, **initialize)


def client_of(
    acp: str, token: str, *, reconnect: Reconnect | bool = False, **asked: Any
) -> AbstractAsyncContextManager[Client]:
    """A client of a hub."""
    return connect(acp, token=token, reconnect=reconnect, **connect_options(**asked))


@asynccontextmanager
async def talk_to(acp: str, token: str, version: int = 2, **initialize: Any) -> AsyncIterator[Talk]:
    """A client by hand of a hub."""
    transport = await connect_websocket(acp, headers={"Authorization": f"Bearer {token}"})
    talk = Talk(transport)
    await talk.initialize(version, **initialize)
    try:
        yield talk
    finally:
        await transport.aclose()


@contextmanager
def served(folder: Path, *arguments: str, agent: Sequence[str] = REHEARSE) -> Iterator[Served]:
    hub = Served(folder, [*arguments, *(["--", *agent] if agent else [])])
    try:
        yield hub
    finally:
        if hub.process.poll() is None:
            code, errors = hub.end(patience=1.0)
            assert code == 0, errors
            assert "Traceback" not in errors, errors
        hub.process.close()
        marked = left_by(folder)
        assert not marked, f"still running: {marked}"


def left_by(folder: Path, named: str = "") -> list[str]:
    """What runs with the mark of a hub and has this in its command, once it had time to end."""
    until = time.monotonic() + DEADLINE
    while (found := [c for c in running_for(folder) if named in c]) and time.monotonic() < until:
        time.sleep(0.02)
    return found


def running_for(folder: Path) -> list[str]:
    """The commands of what runs now with the mark of the hub of this folder."""
    mark = f"ANTIPHON_HUB_MARK={(folder / 'mark').read_text()}".encode()
    found = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdigit() and mark in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def agents_of(hub: Served) -> list[int]:
    """The processes that a hub has started itself."""
    children = Path(f"/proc/{hub.process.pid}/task/{hub.process.pid}/children").read_text().split()
    return [int(pid) for pid in children]


def kill_agents(hub: Served) -> int:
    pids = agents_of(hub)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return len(pids)
