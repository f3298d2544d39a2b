"""EventWaiters: calls that wait until an event of one session is committed."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque


class EventWaiters:
    def __init__(self) -> None:
        self.waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        """The number of the awaited event, and what is done then."""

    async def wait(self, seq: int) -> None:
        """Wait until `wake` is called for an event. Raises the error of `fail`."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter = (seq, future)
        self.waiting.append(waiter)
        try:
            await future
        except asyncio.CancelledError:
            with contextlib.suppress(ValueError):
                self.waiting.remove(waiter)
            raise

    def wake(self, last: int) -> None:
        """End the calls that wait for events up to `last`."""
        still: deque[tuple[int, asyncio.Future[None]]] = deque()
        for seq, future in self.waiting:
            if seq > last:
                still.append((seq, future))
            elif not future.done():
                future.set_result(None)
        self.waiting = still

    def fail(self, error: Exception) -> None:
        """End all calls with an error."""
        for _, future in self.waiting:
            if not future.done():
                future.set_exception(error)
                future.exception()  # a caller that was cancelled meanwhile does not look at it
        self.waiting.clear()
