"""The seam between a connection and the world, and the two buffers every real transport is made of.

`Inbox` holds what was read until the connection takes it, and stops the reading above its mark.
`Outbox` gathers what is sent in one tick into one write, and makes producers wait above its mark.
Both are bounded by bytes, so neither side of a link can make the other grow.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol, runtime_checkable

from antiphon.jsonrpc.lines import Received

INBOX_HIGH = 1024 * 1024
OUTBOX_HIGH = 1024 * 1024
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


@runtime_checkable
class Transport(Protocol):
    """What a connection needs of a link. `check_transport` in `antiphon.testing` is its contract."""

    async def receive(self) -> list[Received]:
        """The frames that have come, in order, at least one; an empty list once the link has ended."""

    def send(self, frame: bytes) -> None:
        """Queue one frame. Frames of one tick leave together, in order; after the end they vanish."""

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


class Inbox:
    """Received frames, waiting to be taken."""

    def __init__(
        self,
        *,
        high: int = INBOX_HIGH,
        pause: Callable[[], None] = lambda: None,
        resume: Callable[[], None] = lambda: None,
    ) -> None:
        self._frames: list[Received] = []
        self._held = 0
        self._high = high
        self._pause = pause
        self._resume = resume
        self._paused = False
        self._ended = False
        self._arrived: asyncio.Future[None] | None = None

    def put(self, frames: list[Received], size: int) -> None:
        """`size` is how many bytes were read for them."""
        if self._ended or not frames:
            return
        self._frames += frames
        self._held += size
        if self._held > self._high and not self._paused:
            self._paused = True
            self._pause()
        self._wake()

    def end(self) -> None:
        self._ended = True
        self._wake()

    async def take(self) -> list[Received]:
        while not self._frames:
            if self._ended:
                return []
            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived
        frames, self._frames, self._held = self._frames, [], 0
        if self._paused:
            self._paused = False
            self._resume()
        return frames

    def _wake(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)


class Outbox:
    """Frames to send, gathered: what is queued in one tick leaves in one write.

    `write` hands bytes to the operating system and `backlog` says how many of them it has not taken.
    """

    def __init__(
        self,
        *,
        write: Callable[[Iterable[bytes]], None],
        backlog: Callable[[], int],
        high: int = OUTBOX_HIGH,
    ) -> None:
        self._write = write
        self._backlog = backlog
        self._high = high
        self._queued: list[bytes] = []
        self._size = 0
        self._scheduled = False
        self._closed = False
        self.congested = False
        """Whether producers should wait; looked at for every frame, so kept and not computed."""
        self._waiters: deque[asyncio.Future[None]] = deque()

    def send(self, frame: bytes) -> None:
        if self._closed:
            return
        self._queued.append(frame)
        self._size += len(frame) + 1
        if self._size >= WRITE_SIZE:
            # A long tick must not keep the reader waiting for its first byte.
            self.flush()
        elif not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._tick)

    def _tick(self) -> None:
        self._scheduled = False
        self.flush()

    def flush(self) -> None:
        if self._queued and not self._closed:
            frames, self._queued, self._size = self._queued, [], 0
            self._write(frames)
            self.congested = self._backlog() > self._high

    async def drain(self) -> None:
        self.flush()
        while self.congested and not self._closed:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def writable(self) -> None:
        """The operating system took what it had: let the producers go on."""
        self.congested = not self._closed and self._backlog() > self._high
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def close(self) -> None:
        self._closed = True
        self._queued.clear()
        self.writable()
