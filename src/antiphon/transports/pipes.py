"""A pair of pipes as a transport, one frame per line: the base of the stdio transports of both sides.

asyncio's pipe transports read and write pipes. A redirected file is not a pipe: a thread reads it, and it is
written synchronously.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable, Sequence
from typing import cast

from antiphon.jsonrpc.lines import LineSplitter
from antiphon.transports.base import OUTBOX_HIGH, OUTBOX_LOW, Delivery, Outbox, Receive, set_reading

READ_SIZE = 256 * 1024
PIPE_SIZE = 1024 * 1024
FLUSH_DEADLINE = 5.0
"""Seconds that a closing transport waits for the peer to read the queued frames."""


def widen(fd: int) -> None:
    """Ask for a large kernel buffer, for fewer and larger reads. Only pipes have one."""
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_SIZE)


def join_lines(frames: Sequence[bytes]) -> bytes:
    return frames[0] + b"\n" if len(frames) == 1 else b"\n".join([*frames, b""])


class LineReader(asyncio.Protocol):
    """Delivers the lines of a byte stream. `ended` is called once, with the reason."""

    def __init__(self, *, bound: int, ended: Callable[[str], None]) -> None:
        self.delivery = Delivery()
        self._splitter = LineSplitter(bound=bound)
        self._ended = ended
        self._transport: asyncio.ReadTransport | None = None
        self._room = asyncio.Event()
        self._finished = False
        self._discarding = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.ReadTransport, transport)
        set_reading(self._transport, on=self.delivery.open)

    def data_received(self, data: bytes) -> None:
        if self._discarding:
            return
        frames = self._splitter.feed(data)
        if frames:
            self.delivery.put(frames)

    def connection_lost(self, error: Exception | None) -> None:
        self.finish(f"reading failed: {error}" if error else "the other side closed its output")

    def finish(self, reason: str) -> None:
        if self._finished:
            return
        self._finished = True
        tail = self._splitter.end()
        if tail and not self._discarding:
            self.delivery.put(tail)
        self._ended(reason)

    async def read_file(self, fd: int) -> None:
        """Read a file in a thread, to its end."""
        loop = asyncio.get_running_loop()
        while data := await loop.run_in_executor(None, os.read, fd, READ_SIZE):
            self.data_received(data)
            await self._room.wait()
        self.finish("the other side closed its output")

    def start(self, receive: Receive, ended: Callable[[], None]) -> None:
        self.delivery.start(receive, ended)
        if self.delivery.open:
            self._read_on()

    def pause(self) -> None:
        self.delivery.pause()
        self._room.clear()
        set_reading(self._transport, on=False)

    def resume(self) -> None:
        self.delivery.resume()
        if self.delivery.open:
            self._read_on()

    def discard(self) -> None:
        """Continue to read and discard all input, so that the peer can write to its end."""
        self._discarding = True
        self._read_on()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _read_on(self) -> None:
        self._room.set()
        set_reading(self._transport, on=True)


class LineWriter(asyncio.BaseProtocol):
    """Empties an outbox into a byte stream."""

    def __init__(self, *, lost: Callable[[], None], overflow: Callable[[str], None]) -> None:
        self._on_lost = lost
        self.outbox = Outbox(self._write, overflow=overflow)
        self.transport: asyncio.WriteTransport | None = None
        self._fd: int | None = None
        self.lost = asyncio.Event()

    def use_file(self, fd: int) -> None:
        """Write to a file instead of a pipe."""
        self._fd = fd

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.WriteTransport, transport)
        self.transport.set_write_buffer_limits(high=OUTBOX_HIGH, low=OUTBOX_LOW)

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set()
        self.outbox.close()
        self._on_lost()

    def pause_writing(self) -> None:
        self.outbox.pause()

    def resume_writing(self) -> None:
        self.outbox.resume()

    def _write(self, frames: Sequence[bytes]) -> None:
        self.put(join_lines(frames))

    def put(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)
        elif self._fd is not None:
            view = memoryview(data)
            while view:
                view = view[os.write(self._fd, view) :]

    async def aclose(self, *, deadline: float) -> None:
        """Write the queued frames, then close. After `deadline` seconds the rest is dropped."""
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
        self._reader = LineReader(bound=bound, ended=self._reading_ended)
        self._writer = LineWriter(lost=self._writing_ended, overflow=self._overflow)
        # These run for every frame, so they are not wrapped in methods.
        self.send = self._writer.outbox.send
        self.send_now = self._writer.outbox.send_now
        self._end_reason = ""

    framing = staticmethod(join_lines)

    def send_framed(self, data: bytes) -> None:
        if self._writer.outbox.flush_before_write():
            self._writer.put(data)

    def start(self, receive: Receive, ended: Callable[[], None]) -> None:
        self._reader.start(receive, ended)

    def pause(self) -> None:
        self._reader.pause()

    def resume(self) -> None:
        self._reader.resume()

    @property
    def congested(self) -> bool:
        return self._writer.outbox.congested

    async def drain(self) -> None:
        await self._writer.outbox.drain()

    async def aclose(self) -> None:
        self._note_end("closed by this side")
        await self._writer.aclose(deadline=FLUSH_DEADLINE)
        self._reader.close()
        self._reader.finish("closed by this side")
        self._reader.delivery.drop()

    @property
    def end_reason(self) -> str:
        return self._end_reason

    @property
    def stderr(self) -> Sequence[str]:
        return ()

    def _reading_ended(self, reason: str) -> None:
        self._note_end(reason)
        self._reader.delivery.end()

    def _writing_ended(self) -> None:
        """The peer has closed its input. It may still write, so the link does not end."""

    def _overflow(self, reason: str) -> None:
        if self._writer.transport is not None:
            self._writer.transport.abort()
        self._reader.finish(reason)

    def _note_end(self, reason: str) -> None:
        self._end_reason = self._end_reason or reason
