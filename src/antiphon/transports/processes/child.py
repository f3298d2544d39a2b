"""A child process as a transport: started in a group of its own, never left behind.

It ends in steps: its stdin is closed, then it is asked to terminate, then it is killed; the last two
reach its whole process group. On Linux the kernel kills it when this process dies, however that happens.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Self

from antiphon.errors import SpawnFailed
from antiphon.jsonrpc.lines import DEFAULT_BOUND
from antiphon.transports.pipes import PipeTransport, widen
from antiphon.transports.processes.environment import child_environment
from antiphon.transports.processes.groups import die_with_us, living, signal_group

GRACE = 2.0
"""Seconds a child gets to end by itself, and again after being asked to."""
LAST_WORDS = 0.5
"""Seconds that are waited for the exit code and the rest of stderr once stdout has ended."""
STDERR_LINES = 50
STDERR_LINE_LENGTH = 2000


class _StderrTail(asyncio.Protocol):
    """Reads a child's stderr for ever, and keeps the last of it."""

    def __init__(self, on_line: Callable[[str], None] | None) -> None:
        self.lines: deque[str] = deque(maxlen=STDERR_LINES)
        self.ended = asyncio.Event()
        self._on_line = on_line
        self._partial = b""
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *lines, partial = (self._partial + data).split(b"\n")
        self._partial = partial[-STDERR_LINE_LENGTH:]
        for line in lines if self._on_line else lines[-STDERR_LINES:]:
            self._keep(line)

    def connection_lost(self, error: Exception | None) -> None:
        if self._partial:
            self._keep(self._partial)
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
    """Speaks over the stdin and stdout of a command it started."""

    def __init__(self, command: Sequence[str], *, bound: int, grace: float) -> None:
        super().__init__(bound=bound)
        self._command = tuple(command)
        self._grace = grace
        self._exited = asyncio.Event()
        self._process: subprocess.Popen[bytes]
        self._stderr: _StderrTail
        self._last_words: asyncio.Task[None] | None = None
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
        """Start `command`. `env` is added to what it inherits (`child_environment`); `on_stderr` sees each
        line."""
        if isinstance(command, str | bytes) or not command:
            raise SpawnFailed("a command is a non-empty list of strings")
        self = cls(command, bound=bound, grace=grace)
        try:
            with warnings.catch_warnings():
                # Forking beside threads is safe here: the child calls prctl and nothing else.
                warnings.simplefilter("ignore", DeprecationWarning)
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    cwd=cwd,
                    env=child_environment(env),
                    start_new_session=True,
                    preexec_fn=die_with_us(),
                )
        except OSError as error:
            raise SpawnFailed(f"cannot start {self._command[0]!r}: {error.strerror or error}") from error
        living.add(self._process.pid)
        await self._connect(on_stderr)
        return self

    async def _connect(self, on_stderr: Callable[[str], None] | None) -> None:
        loop = asyncio.get_running_loop()
        self._watch(loop)
        self._stderr = _StderrTail(on_stderr)
        stdin, stdout, stderr = _pipes(self._process)
        for pipe in (stdin, stdout):
            widen(pipe.fileno())
        try:
            await loop.connect_read_pipe(lambda: self._stderr, stderr)
            await loop.connect_read_pipe(lambda: self._reader, stdout)
            await loop.connect_write_pipe(lambda: self._writer, stdin)
        except BaseException:
            signal_group(self._process.pid, signal.SIGKILL)
            await self._exited.wait()  # nothing is left of it when this is told
            raise

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set `_exited` when the child ends: by its pidfd where there are such, else from a thread."""
        try:
            pidfd = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):

            def wait() -> None:
                self._process.wait()
                with contextlib.suppress(RuntimeError):  # the loop is gone, and so is whoever waited
                    loop.call_soon_threadsafe(self._on_exit)

            threading.Thread(target=wait, name=f"wait-{self._process.pid}", daemon=True).start()
            return

        def readable() -> None:
            loop.remove_reader(pidfd)
            os.close(pidfd)
            self._process.wait()
            self._on_exit()

        loop.add_reader(pidfd, readable)

    def _on_exit(self) -> None:
        # Whatever it started and left in its group goes with it.
        signal_group(self._process.pid, signal.SIGKILL)
        living.discard(self._process.pid)
        self._exited.set()
        if self._closing is None:
            # Another process may still hold its stdout open: what the child itself wrote is there by now.
            loop = asyncio.get_running_loop()
            self._stdout_end = loop.call_later(LAST_WORDS, self._reader.close)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def stderr(self) -> Sequence[str]:
        return tuple(self._stderr.lines)

    def _reading_ended(self, reason: str) -> None:
        self._note_end(reason)
        self._last_words = asyncio.get_running_loop().create_task(self._hear_last_words())

    async def _hear_last_words(self) -> None:
        """Its end is told with its exit code and its stderr, if those come at once."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS):
                await self._exited.wait()
                await self._stderr.ended.wait()
        if self._exited.is_set() and self._closing is None:
            self._end_reason = f"{self._command[0]} {_how(self._process.returncode)}"
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
            for pending in (self._last_words, self._stdout_end):
                if pending is not None:
                    pending.cancel()
            self._closing.set_result(None)


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    return process.stdin, process.stdout, process.stderr


def _how(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
