"""A child process as a transport.

`aclose` ends it in steps: it closes stdin, then sends SIGTERM, then SIGKILL to the whole process group. On
Linux the kernel kills the child when this process dies for any reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Self, cast

from antiphon.jsonrpc.lines import DEFAULT_BOUND
from antiphon.transports.base import set_reading
from antiphon.transports.pipes import PipeTransport, widen
from antiphon.transports.processes.groups import signal_group, start_process, watch_exit
from antiphon.transports.processes.process import signal_name

GRACE = 2.0
"""Seconds that a child gets to end after each step of `aclose`."""
EXIT_SECONDS = 0.5
"""Seconds to wait for the exit code and the rest of stderr once stdout has ended."""
CODE_SECONDS = 2.0
"""Seconds to wait for the exit code of a process whose output has ended; a busy machine needs them."""
STDERR_LINES = 50
STDERR_LINE_LENGTH = 2000


class _StderrTail(asyncio.Protocol):
    """Reads a child's stderr to its end, and keeps the last lines."""

    def __init__(self, on_line: Callable[[str], None] | None) -> None:
        self.lines: deque[str] = deque(maxlen=STDERR_LINES)
        self.ended = asyncio.Event()
        self._on_line = on_line
        self._partial = b""
        self._waiting: deque[bytes] = deque()
        """Lines for later turns. Nothing is read meanwhile."""
        self._transport: asyncio.ReadTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.ReadTransport, transport)

    def data_received(self, data: bytes) -> None:
        *lines, partial = (self._partial + data).split(b"\n")
        self._partial = partial[-STDERR_LINE_LENGTH:]
        self._waiting.extend(lines if self._on_line else lines[-STDERR_LINES:])
        self._handle_some()

    def _handle_some(self) -> None:
        """Handle some lines in this turn of the event loop, because a read can bring many thousands."""
        for _ in range(min(STDERR_LINES, len(self._waiting))):
            self._keep(self._waiting.popleft())
        set_reading(self._transport, on=not self._waiting)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._handle_some)

    def connection_lost(self, error: Exception | None) -> None:
        for line in (*self._waiting, *filter(None, [self._partial])):
            self._keep(line)
        self._waiting.clear()
        self.ended.set()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _keep(self, line: bytes) -> None:
        text = line[-STDERR_LINE_LENGTH:].decode("utf-8", "replace").rstrip()
        if text:
            self.lines.append(text)
        if self._on_line is not None:
            self._on_line(text)


class ChildTransport(PipeTransport):
    """Speaks over the stdin and stdout of a command that it starts."""

    def __init__(self, command: Sequence[str], *, bound: int, grace: float) -> None:
        super().__init__(bound=bound)
        self._command = tuple(command)
        self._grace = grace
        self._exited = asyncio.Event()
        self._process: subprocess.Popen[bytes]
        self._stderr: _StderrTail
        self._ending: asyncio.Task[None] | None = None
        self._stdout_end: asyncio.TimerHandle | None = None
        self._closing: asyncio.Future[None] | None = None

    @classmethod
    async def spawn(
        cls,
        command: Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        bound: int = DEFAULT_BOUND,
        grace: float = GRACE,
        on_stderr: Callable[[str], None] | None = None,
    ) -> Self:
        """Start `command`. Raises `SpawnFailed`.

        `env` is added to the inherited environment (`child_environment`).
        `bound`: bytes of the longest line that is accepted.
        `grace`: seconds for each step of `aclose`.
        `on_stderr` gets each line of stderr.
        """
        pipe = subprocess.PIPE
        self = cls(command, bound=bound, grace=grace)
        self._process = start_process(command, cwd=cwd, env=env, stdin=pipe, stdout=pipe, stderr=pipe)
        await self._connect(on_stderr)
        return self

    async def _connect(self, on_stderr: Callable[[str], None] | None) -> None:
        loop = asyncio.get_running_loop()
        watch_exit(self._process, self._on_exit)
        self._stderr = _StderrTail(on_stderr)
        process = self._process
        unowned = [pipe for pipe in (process.stdin, process.stdout, process.stderr) if pipe is not None]
        """Pipes that asyncio does not close yet."""
        for pipe in unowned[:2]:
            widen(pipe.fileno())
        try:
            await loop.connect_read_pipe(lambda: self._stderr, unowned.pop())
            await loop.connect_read_pipe(lambda: self._reader, unowned.pop())
            await loop.connect_write_pipe(lambda: self._writer, unowned.pop())
        except BaseException:
            for pipe in unowned:
                pipe.close()
            signal_group(self._process.pid, signal.SIGKILL)
            await self._exited.wait()  # the child has ended before the caller gets the error
            raise

    def _on_exit(self) -> None:
        self._exited.set()
        if self._closing is None:
            # Another process may hold the stdout open. Everything that the child wrote is in the pipe by now.
            loop = asyncio.get_running_loop()
            self._stdout_end = loop.call_later(EXIT_SECONDS, self._reader.close)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def stderr(self) -> Sequence[str]:
        return tuple(self._stderr.lines)

    def _reading_ended(self, reason: str) -> None:
        self._note_end(reason)
        self._ending = asyncio.get_running_loop().create_task(self._end_with_exit_code())

    async def _end_with_exit_code(self) -> None:
        """Report the end with the exit code and the rest of stderr, if they come within `CODE_SECONDS`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CODE_SECONDS):
                await self._exited.wait()
                await self._stderr.ended.wait()
        if self._exited.is_set() and self._closing is None:
            self._end_reason = f"{self._command[0]} {_exit_reason(self._process.returncode)}"
        self._reader.delivery.end()

    async def aclose(self) -> None:
        if self._closing is not None:
            await asyncio.shield(self._closing)
            return
        self._closing = asyncio.get_running_loop().create_future()
        self._note_end("closed by this side")
        self._reader.discard()
        try:
            await self._writer.aclose(deadline=self._grace)
            for number in (None, signal.SIGTERM, signal.SIGKILL):
                if number is not None:
                    signal_group(self._process.pid, number)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._grace):
                        await self._exited.wait()
                    break
        finally:
            if not self._exited.is_set():
                signal_group(self._process.pid, signal.SIGKILL)
            self._reader.close()
            self._reader.finish("closed by this side")
            self._reader.delivery.drop()
            self._stderr.close()
            for pending in (self._ending, self._stdout_end):
                if pending is not None:
                    pending.cancel()
            self._closing.set_result(None)


def _exit_reason(code: int) -> str:
    killed = signal_name(code)
    return f"exited with code {code}" if killed is None else f"was killed by {killed}"
