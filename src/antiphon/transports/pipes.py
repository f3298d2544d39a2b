"""A pair of pipes as a transport: lines in, lines out. What `stdio` is made of, on either side.

Reading and writing go through asyncio's pipe transports; a file redirected to us is no pipe, so those
are read in a thread and written in place.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from antiphon.jsonrpc.lines import LineSplitter, Received
from antiphon.transports.base import Inbox, Outbox

READ_SIZE = 256 * 1024
PIPE_SIZE = 1024 * 1024


def widen(fd: int) -> None:
    """Ask for a large kernel buffer: fewer, bigger reads. Refused for other things than pipes."""
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_SIZE)


def join_lines(frames: Iterable[bytes]) -> bytes:
    return b"\n".join([*frames, b""])


class LineReader(asyncio.Protocol):
    """Fills an inbox from a byte stream; `ended` is called once, with the reason."""

    def __init__(self, *, bound: int, ended: Callable[[str], None]) -> None:
        self.inbox = Inbox(pause=self._pause, resume=self._resume)
        self._splitter = LineSplitter(bound=bound)
        self._ended = ended
        self._transport: asyncio.ReadTransport | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._finished = False
        self._discarding = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.ReadTransport, transport)

    def data_received(self, data: bytes) -> None:
        if self._discarding:
            return
        self.inbox.put(self._splitter.feed(data), len(data))

    def connection_lost(self, error: Exception | None) -> None:
        self.finish(f"reading failed: {error}" if error else "the other side closed its output")

    def finish(self, reason: str) -> None:
        if self._finished:
            return
        self._finished = True
        self.inbox.put(self._splitter.end(), 0)
        self._ended(reason)
        self.inbox.end()

    async def read_file(self, fd: int) -> None:
        """Read something that is no pipe, in a thread, until it ends."""
        loop = asyncio.get_running_loop()
        while data := await loop.run_in_executor(None, os.read, fd, READ_SIZE):
            self.data_received(data)
            await self._room.wait()
        self.finish("the other side closed its output")

    def discard(self) -> None:
        """Read on, for the other side's sake, and keep nothing of it."""
        self._discarding = True
        self._resume()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _pause(self) -> None:
        self._room.clear()
        if self._transport is not None:
            with contextlib.suppress(RuntimeError):
                self._transport.pause_reading()

    def _resume(self) -> None:
        self._room.set()
        if self._transport is not None:
            with contextlib.suppress(RuntimeError):
                self._transport.resume_reading()


class LineWriter(asyncio.BaseProtocol):
    """Empties an outbox into a byte stream."""

    def __init__(self) -> None:
        self.outbox = Outbox(write=self._write, backlog=self._backlog)
        self.transport: asyncio.WriteTransport | None = None
        self._fd: int | None = None
        self.lost = asyncio.Event()

    @classmethod
    def to_file(cls, fd: int) -> LineWriter:
        writer = cls()
        writer._fd = fd
        return writer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.WriteTransport, transport)
        # Below the low mark producers go on; the outbox alone decides when they stop.
        self.transport.set_write_buffer_limits(high=READ_SIZE, low=READ_SIZE // 2)

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set()
        self.outbox.close()

    def pause_writing(self) -> None:
        pass

    def resume_writing(self) -> None:
        self.outbox.writable()

    def _write(self, frames: Iterable[bytes]) -> None:
        data = join_lines(frames)
        if self.transport is not None:
            self.transport.write(data)
        elif self._fd is not None:
            view = memoryview(data)
            while view:
                view = view[os.write(self._fd, view) :]

    def _backlog(self) -> int:
        return self.transport.get_write_buffer_size() if self.transport is not None else 0

    async def aclose(self, *, deadline: float) -> None:
        """Let what is queued leave, then close. A reader that never reads does not keep us."""
        self.outbox.flush()
        if self.transport is not None and not self.lost.is_set():
            if self.transport.get_write_buffer_size():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(deadline):
                        self.transport.close()
                        await self.lost.wait()
                if not self.lost.is_set():
                    self.transport.abort()
            else:
                self.transport.close()
            await self.lost.wait()
        self.outbox.close()


class PipeTransport:
    """A line reader and a line writer as one transport."""

    def __init__(self, *, bound: int) -> None:
        self._reader = LineReader(bound=bound, ended=self._note_end)
        self._writer = LineWriter()
        self._end_reason = ""

    async def receive(self) -> list[Received]:
        return await self._reader.inbox.take()

    def send(self, frame: bytes) -> None:
        self._writer.outbox.send(frame)

    @property
    def congested(self) -> bool:
        return self._writer.outbox.congested

    async def drain(self) -> None:
        await self._writer.outbox.drain()

    @property
    def end_reason(self) -> str:
        return self._end_reason

    @property
    def stderr(self) -> Sequence[str]:
        return ()

    def _note_end(self, reason: str) -> None:
        self._end_reason = self._end_reason or reason
