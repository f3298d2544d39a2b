"""ClientProgram: one start of the judged client, with what it prints and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self, cast

from antiphon.transports.base import set_reading
from antiphon.transports.processes.groups import signal_group, start_process, watch_exit

STAND_IN = Path(__file__).with_name("stand_in.py")
AGENT = "{agent}"
"""Stands for the command line of the judge's agent in the command of a client."""
OUTPUT_SECONDS = 0.5
"""Seconds to wait for the rest of the output of a client that ended: another process may hold it open."""


def client_command(command: Sequence[str], socket: Path) -> list[str]:
    """Return the client's command with the agent's command line in it, or as one more argument at its end."""
    agent = shlex.join([sys.executable, "-I", "-S", str(STAND_IN), str(socket)])
    if any(AGENT in argument for argument in command):
        return [argument.replace(AGENT, agent) for argument in command]
    return [*command, agent]


class _Output(asyncio.Protocol):
    """Collects what a program prints."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.ended = asyncio.Event()
        self.transport: asyncio.ReadTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.ReadTransport, transport)

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, error: Exception | None) -> None:
        self.ended.set()


class ClientProgram:
    """A running client. `exited` is set once it has ended and its output is complete."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._stdout, self._stderr = _Output(), _Output()
        self._collecting: asyncio.Task[None] | None = None
        self.exited = asyncio.Event()

    @classmethod
    async def start(cls, command: Sequence[str]) -> Self:
        """Start a command without input, in the current folder. Raises `SpawnFailed`."""
        none, pipe = subprocess.DEVNULL, subprocess.PIPE
        process = start_process(command, cwd=None, env=None, stdin=none, stdout=pipe, stderr=pipe)
        self = cls(process)
        watch_exit(process, self._on_exit)
        loop = asyncio.get_running_loop()
        unowned = [process.stderr, process.stdout]
        """Pipes that asyncio does not close yet."""
        try:
            await loop.connect_read_pipe(lambda: self._stdout, unowned.pop())
            await loop.connect_read_pipe(lambda: self._stderr, unowned.pop())
        except BaseException:
            for output in unowned:
                assert output is not None
                output.close()
            signal_group(process.pid, signal.SIGKILL)
            await self.exited.wait()  # it has ended before the caller gets the error
            raise
        return self

    @property
    def printed(self) -> str:
        """What the client has printed to stdout so far."""
        return self._stdout.data.decode("utf-8", "replace")

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode

    @property
    def last_words(self) -> str:
        """The last line that the client printed to stderr."""
        lines = self._stderr.data.decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip() if lines else ""

    def hold_output(self) -> None:
        """Read nothing of what the client prints, until `release_output`: the pipe fills up."""
        set_reading(self._stdout.transport, on=False)

    def release_output(self) -> None:
        set_reading(self._stdout.transport, on=True)

    def interrupt(self) -> None:
        """Press Ctrl-C: as on a terminal, each process of the group gets SIGINT."""
        signal_group(self._process.pid, signal.SIGINT)

    async def aclose(self) -> None:
        """Kill the client, if it runs, and wait for its end."""
        self.release_output()
        if self._process.returncode is None:
            signal_group(self._process.pid, signal.SIGKILL)
        await self.exited.wait()

    def _on_exit(self) -> None:
        self._collecting = asyncio.get_running_loop().create_task(self._collect())

    async def _collect(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(OUTPUT_SECONDS):
                await self._stdout.ended.wait()
                await self._stderr.ended.wait()
        for output in (self._stdout, self._stderr):
            if output.transport is not None:
                output.transport.close()
        self.exited.set()
