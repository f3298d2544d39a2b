"""The seam between a connection and the world, and the two halves every real transport is made of.

`Delivery` hands over what was read, in order, and holds it back in a pause. `Outbox` gathers what is sent in
one tick into one write, and makes producers wait above its mark. A pause stops the reading and the mark stops
the writing, so neither side of a link can make the other grow.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol, runtime_checkable

from antiphon.jsonrpc.lines import DEFAULT_BOUND, Received

ADDRESSES = ("ws://", "wss://", "http://", "https://")
"""How the addresses of agents begin that run elsewhere."""
INBOX_HIGH = 1024 * 1024
OUTBOX_HIGH = 256 * 1024
OUTBOX_LOW = OUTBOX_HIGH // 4
OUTBOX_MOST = 2 * DEFAULT_BOUND
"""Bytes that may be sent to a peer that does not read; beyond them the link ends."""
WRITE_SIZE = 128 * 1024


@asynccontextmanager
async def group_without_wrapping(group: asyncio.TaskGroup) -> AsyncIterator[asyncio.TaskGroup]:
    """A task group whose body's exception is raised as it is, not in a group of one.

    The body ends its tasks itself before it leaves.
    """
    await group.__aenter__()
    try:
        yield group
    finally:
        await group.__aexit__(None, None, None)


Receive = Callable[[list[Received]], None]
Framing = Callable[[Sequence[bytes]], bytes]
"""Frames as they stand on a link, one behind the other."""


@runtime_checkable
class Transport(Protocol):
    """What a connection needs of a link. `check_transport` in `antiphon.testing` is its contract."""

    def start(self, receive: Receive, ended: Callable[[], None]) -> None:
        """Begin: `receive` is called with the frames that have come, in order, and `ended` once, at the end.

        Nothing is handed over before, and nothing is read before there is someone to hand it to.
        """

    def pause(self) -> None:
        """Hand over nothing more for now, and read nothing more."""

    def resume(self) -> None:
        """Go on where `pause` stopped."""

    def send(self, frame: bytes) -> None:
        """Queue one frame. Frames of one tick leave together, in order; after the end they vanish."""

    def send_now(self, frame: bytes) -> None:
        """Queue one frame, and let all that is queued leave at once: someone waits for it."""

    @property
    def framing(self) -> Framing | None:
        """How frames are put on this link, where that is the same for every link of its kind: what many are
        to get can be framed once for all. `None` where each link is on its own."""

    def send_framed(self, data: bytes) -> None:
        """Send what `framing` made, behind all that is queued."""

    @property
    def congested(self) -> bool:
        """Whether a producer should `drain` before it sends more."""

    async def drain(self) -> None:
        """Wait until the link can take more, or has ended."""

    async def aclose(self) -> None:
        """Send what is queued, end the link and give back everything it holds. Safe to call twice."""

    @property
    def end_reason(self) -> str:
        """Why the link ended, in words for a person; empty while it lives."""

    @property
    def stderr(self) -> Sequence[str]:
        """The last lines a child process wrote to stderr, where there is one."""


def set_reading(transport: asyncio.ReadTransport | None, *, on: bool) -> None:
    """Switch the reading of an asyncio transport; one that is closing or not there yet does not mind."""
    if transport is not None:
        with suppress(RuntimeError):
            if on:
                transport.resume_reading()
            else:
                transport.pause_reading()


class Delivery:
    """The receiving half of a transport: holds back what comes before its start or in a pause."""

    def __init__(self) -> None:
        self._receive: Receive | None = None
        self._ended: Callable[[], None] | None = None
        self._held: list[Received] = []
        self._paused = False
        self._over = False

    def start(self, receive: Receive, ended: Callable[[], None]) -> None:
        self._receive, self._ended = receive, ended
        self._release()

    @property
    def open(self) -> bool:
        """Whether frames are handed over at once."""
        return self._receive is not None and not self._paused

    def put(self, frames: list[Received]) -> None:
        if self._receive is None or self._paused:
            self._held += frames
        else:
            self._receive(frames)

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._release()

    def end(self) -> None:
        """No more will come."""
        self._over = True
        self._release()

    def drop(self) -> None:
        """Nobody wants what is still held: only the end is told."""
        self._held.clear()
        self._paused = False
        self.end()

    def _release(self) -> None:
        if not self.open:
            return
        assert self._receive is not None
        if self._held:
            held, self._held = self._held, []
            self._receive(held)
        # What was just received may have paused us again.
        if self._over and self.open and self._ended is not None:
            ended, self._ended = self._ended, None
            ended()


class Inbox:
    """A transport for whoever would rather wait than be called: `await inbox.take()`."""

    def __init__(self, transport: Transport, *, high: int = INBOX_HIGH) -> None:
        self._transport = transport
        self._high = high
        self._frames: list[Received] = []
        self._size = 0
        self._over = False
        self._arrived = asyncio.Event()
        transport.start(self._put, self._end)

    async def take(self) -> list[Received]:
        """The frames that have come, at least one; an empty list once the link has ended."""
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
    """Frames to send, gathered: what is queued in one tick leaves in one write.

    `write` hands bytes to the operating system; whoever gives it says with `pause` and `resume` when more has
    piled up there than may, and when that has gone. `overflow` is called, with the reason, when more than
    `OUTBOX_MOST` bytes were sent in between: the transport ends the link.
    """

    def __init__(self, write: Callable[[Sequence[bytes]], None], *, overflow: Callable[[str], None]) -> None:
        self._write = write
        self._overflow = overflow
        self._unread = 0
        """Bytes that were written since `pause`."""
        self._queued: list[bytes] = []
        self._size = 0
        self._scheduled = False
        self._closed = False
        self._paused = False
        self.congested = False
        """Whether producers should wait; looked at for every frame, so kept and not computed."""
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
            # A producer that never has to wait would never let anyone else run, not even who cancels it:
            # after so much it waits for the end of the tick, and the reader gets its first bytes now.
            self.flush()
            self.congested = True

    def send_now(self, frame: bytes) -> None:
        if not self._closed:
            self._queued.append(frame)
            self.flush()

    def clear_way(self) -> bool:
        """Let all that is queued leave, for something that goes another way; whether anything still does."""
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
        """Count what is written to a peer that does not read. Return whether it is not too much."""
        self._unread += sum(map(len, frames))
        if self._unread <= OUTBOX_MOST:
            return True
        self.close()
        reason = f"over {OUTBOX_MOST} bytes were sent to a peer that does not read"
        asyncio.get_running_loop().call_soon(self._overflow, reason)  # whoever sends goes on first
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
