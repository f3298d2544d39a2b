"""The `Transport` protocol, and the two parts that every transport is made of.

`Delivery` hands over received frames in order, and keeps them during a pause. `Outbox` combines the frames of
one tick into one write, and makes producers wait above its mark. The pause bounds the memory of the reader,
and the mark that of the writer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol, runtime_checkable

from antiphon.jsonrpc.lines import DEFAULT_BOUND, Received

ADDRESSES = ("ws://", "wss://", "http://", "https://")
"""The prefixes of the addresses of remote agents."""
AUTH_REFUSALS = (401, 403)
"""HTTP statuses of a server that requires other credentials."""
INBOX_HIGH = 1024 * 1024
OUTBOX_HIGH = 256 * 1024
OUTBOX_LOW = OUTBOX_HIGH // 4
OUTBOX_MOST = 2 * DEFAULT_BOUND
"""Bytes that may be sent to a peer that does not read. Beyond them the link ends."""
WRITE_SIZE = 128 * 1024


@asynccontextmanager
async def group_without_wrapping(group: asyncio.TaskGroup) -> AsyncIterator[asyncio.TaskGroup]:
    """Enter a task group whose body's exception is not wrapped in an `ExceptionGroup`.

    The body must end its tasks before it leaves.
    """
    await group.__aenter__()
    try:
        yield group
    finally:
        await group.__aexit__(None, None, None)


Receive = Callable[[list[Received]], None]
Framing = Callable[[Sequence[bytes]], bytes]
"""Encodes frames as the bytes of a link."""


@runtime_checkable
class Transport(Protocol):
    """Moves frames between two peers. `check_transport` in `antiphon.testing` tests an implementation."""

    def start(self, receive: Receive, ended: Callable[[], None]) -> None:
        """Begin to read. `receive` gets the received frames in order; `ended` is called once, at the end."""

    def pause(self) -> None:
        """Stop reading, and stop calling `receive`."""

    def resume(self) -> None:
        """Continue after `pause`."""

    def send(self, frame: bytes) -> None:
        """Queue one frame. The frames of one tick are written together; after the end they are dropped."""

    def send_now(self, frame: bytes) -> None:
        """Queue one frame and write all queued frames at once."""

    @property
    def framing(self) -> Framing | None:
        """Encodes frames for `send_framed`, if all links of this kind use the same bytes; else `None`."""

    def send_framed(self, data: bytes) -> None:
        """Send bytes that `framing` made, after all queued frames."""

    @property
    def congested(self) -> bool:
        """Whether a producer should `drain` before it sends more."""

    async def drain(self) -> None:
        """Wait until the link accepts more, or has ended."""

    async def aclose(self) -> None:
        """Send queued frames, end the link and release its resources. Safe to call twice."""

    @property
    def end_reason(self) -> str:
        """Why the link ended, for users; empty while it is open."""

    @property
    def stderr(self) -> Sequence[str]:
        """The last lines that a child process wrote to stderr, if there is one."""


def set_reading(transport: asyncio.ReadTransport | None, *, on: bool) -> None:
    """Pause or resume the reading of an asyncio transport, unless it is closing or not open yet."""
    if transport is not None:
        with suppress(RuntimeError):
            if on:
                transport.resume_reading()
            else:
                transport.pause_reading()


class Delivery:
    """The receiving part of a transport: keeps the frames that come before its start or in a pause."""

    def __init__(self) -> None:
        self._receive: Receive | None = None
        self._ended: Callable[[], None] | None = None
        self._waiting: list[Received] = []
        self._paused = False
        self._over = False

    def start(self, receive: Receive, ended: Callable[[], None]) -> None:
        self._receive, self._ended = receive, ended
        self._release()

    @property
    def open(self) -> bool:
        """Whether `put` hands frames over at once."""
        return self._receive is not None and not self._paused

    def put(self, frames: list[Received]) -> None:
        if self._receive is None or self._paused:
            self._waiting += frames
        else:
            self._receive(frames)

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._release()

    def end(self) -> None:
        """Call `ended` once all waiting frames are handed over. No frames follow."""
        self._over = True
        self._release()

    def drop(self) -> None:
        """Drop the waiting frames and end."""
        self._waiting.clear()
        self._paused = False
        self.end()

    def _release(self) -> None:
        if not self.open:
            return
        assert self._receive is not None
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._receive(waiting)
        # The receiver may have called `pause`.
        if self._over and self.open and self._ended is not None:
            ended, self._ended = self._ended, None
            ended()


class Inbox:
    """Starts a transport and keeps its frames for `await inbox.take()`."""

    def __init__(self, transport: Transport, *, high: int = INBOX_HIGH) -> None:
        self._transport = transport
        self._high = high
        self._frames: list[Received] = []
        self._size = 0
        self._over = False
        self._arrived = asyncio.Event()
        transport.start(self._put, self._end)

    async def take(self) -> list[Received]:
        """Return the received frames, at least one; an empty list once the link has ended."""
        while not self._frames and not self._over:
            self._arrived.clear()
            await self._arrived.wait()
        frames, self._frames, self._size = self._frames, [], 0
        self._transport.resume()
        return frames

    def _put(self, frames: list[Received]) -> None:
        self._frames += frames
        self._size += sum([len(frame) for frame in frames if isinstance(frame, bytes)])
        if self._size > self._high:
            self._transport.pause()
        self._arrived.set()

    def _end(self) -> None:
        self._over = True
        self._arrived.set()


class Outbox:
    """The sending part of a transport: writes the frames of one tick together.

    `write` hands frames to the operating system. Its owner calls `pause` when too much waits there, and
    `resume` when it was sent. If more than `OUTBOX_MOST` bytes are written in between, `overflow` gets the
    reason and ends the link.
    """

    def __init__(self, write: Callable[[Sequence[bytes]], None], *, overflow: Callable[[str], None]) -> None:
        self._write = write
        self._overflow = overflow
        self._unread = 0
        """Bytes written since `pause`."""
        self._queued: list[bytes] = []
        self._size = 0
        self._scheduled = False
        self._closed = False
        self._paused = False
        self.congested = False
        """Whether producers should wait. An attribute, because it is read for every frame."""
        self._waiters: deque[asyncio.Future[None]] = deque()

    def send(self, frame: bytes) -> None:
        if self._closed:
            return
        self._queued.append(frame)
        self._size += len(frame) + 1
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._tick)
        if self._size >= WRITE_SIZE:
            # A producer that never waits would block the event loop, even for the task that cancels it.
            # Write now, and let the producer wait for the end of the tick.
            self.flush()
            self.congested = True

    def send_now(self, frame: bytes) -> None:
        if not self._closed:
            self._queued.append(frame)
            self.flush()

    def flush_before_write(self) -> bool:
        """Write queued frames, because the owner is about to write itself. Return whether it may."""
        if self._queued:
            self.flush()
        return not self._closed

    def _tick(self) -> None:
        self._scheduled = False
        self.flush()
        if self.congested and not self._paused:
            self.resume()

    def flush(self) -> None:
        if self._queued and not self._closed:
            frames, self._queued, self._size = self._queued, [], 0
            if self._paused and not self._may_write(frames):
                return
            self._write(frames)

    def _may_write(self, frames: Sequence[bytes]) -> bool:
        """Count bytes written to a peer that does not read. Return whether they are within the bound."""
        self._unread += sum(map(len, frames))
        if self._unread <= OUTBOX_MOST:
            return True
        self.close()
        reason = f"over {OUTBOX_MOST} bytes were sent to a peer that does not read"
        asyncio.get_running_loop().call_soon(self._overflow, reason)  # not inside the sender's call
        return False

    async def drain(self) -> None:
        self.flush()
        while self.congested:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def pause(self) -> None:
        self._paused = self.congested = not self._closed

    def resume(self) -> None:
        self._paused = self.congested = False
        self._unread = 0
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def close(self) -> None:
        self._closed = True
        self._queued.clear()
        self.resume()
