"""One life of the busy agent's process, from its start to the signal that ends it."""

from __future__ import annotations

import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

from tests.faults.links import DEADLINE, Link, PipeLink, WebSocketLink
from tests.faults.violation import check

ROOT = Path(__file__).parents[2]


class AgentProcess:
    def __init__(self, store: Path, log: Path, *, websocket: bool) -> None:
        command = [sys.executable, "-m", "tests.faults.busy_agent", str(store)]
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [*command, "websocket"] if websocket else command,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        self._websocket = websocket
        self._port = int(self._first_line()) if websocket else 0

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def _first_line(self) -> bytes:
        stdout = self._pipes()[1]
        check(select.select([stdout], [], [], DEADLINE)[0], f"no port was told within {DEADLINE:g} s")
        line = stdout.readline()
        check(line, "the agent did not start")
        return line

    def connect(self) -> Link:
        """A link of one's own over WebSocket; over stdio there is one."""
        return WebSocketLink(self._port) if self._websocket else PipeLink(*self._pipes())

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait(DEADLINE)

    def say_where(self) -> None:
        """Where its tasks and threads stand; it writes that to its log, and ends."""
        self._process.send_signal(signal.SIGUSR1)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)

    def close(self) -> None:
        """End it in any case; what it still says is not heard."""
        self.kill()
        PipeLink(*self._pipes()).close()
