"""A hub's process, as people run it, through all its lives: killed, and started again at the same port."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.faults.violation import Silence, check
from tests.warm import WarmProcess

ROOT = Path(__file__).parents[2]
DEADLINE = 60.0


class HubProcess:
    def __init__(self, folder: Path, arguments: Sequence[str]) -> None:
        self.folder = folder
        self.log = folder / "hub.stderr"
        self._arguments = list(arguments)
        self._process: WarmProcess | None = None
        self.address = ""
        self.token = ""

    async def start(self) -> None:
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)
        port = self.address.rpartition(":")[2].partition("/")[0] or "0"
        where = ["--port", port, "--data", str(self.folder), "--ready-file", str(ready)]
        with self.log.open("ab") as log:
            self._process = WarmProcess(["serve", *where, *self._arguments], cwd=ROOT, stdout=log, stderr=log)
        until = asyncio.get_running_loop().time() + DEADLINE
        while not ready.exists():
            if asyncio.get_running_loop().time() > until:
                raise Silence(f"the hub did not start within {DEADLINE:g} s")
            check(self._process.poll() is None, "the hub did not start")
            await asyncio.sleep(0.005)
        told = json.loads(ready.read_text())
        self.address, self.token = told["acp"], told["token"]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(DEADLINE)

    def kill_agents(self) -> int:
        """SIGKILL for what the hub has started; how many that were."""
        assert self._process is not None
        pid, killed = self._process.pid, 0
        with contextlib.suppress(FileNotFoundError):
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGKILL)
                    killed += 1
        return killed

    async def end(self) -> None:
        """SIGTERM: an orderly end, after which nothing of it is left."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(self._process.wait, DEADLINE)
        check(code == 0, f"the hub ended with {code}")
        until = asyncio.get_running_loop().time() + 5
        while left := list(self._left()):
            check(asyncio.get_running_loop().time() < until, f"left running: {left}")
            await asyncio.sleep(0.02)

    def _left(self) -> Iterator[str]:
        mark = f"ANTIPHON_HUB_MARK={(self.folder / 'mark').read_text()}".encode()
        for process in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if process.name.isdigit() and mark in (process / "environ").read_bytes().split(b"\0"):
                    yield (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()

    def complaints(self) -> str:
        """What it wrote beside its greetings: what it logged, and what broke."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        broken = re.compile(r"antiphon|Traceback|  File|    \S|\w+(\.\w+)*(Error|Exception|Lost|Failed)\b")
        told = [line for line in lines if broken.match(line) and " --data " not in line]
        return "\n".join(told[-200:])

    def clear(self) -> None:
        """After a violation: nothing stays behind."""
        self.kill()
        with contextlib.suppress(FileNotFoundError):
            from antiphon.hub.process import reap

            reap((self.folder / "mark").read_text())
