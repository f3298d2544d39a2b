"""A log that is written in one place and watched in many: each watcher sees it from where it wants to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Log(Generic[T]):
    """It ends once; every watcher then ends too, having seen all of it."""

    def __init__(self) -> None:
        self.entries: list[T] = []
        self.ended = False
        self._changed: list[asyncio.Future[None]] = []

    def add(self, entry: T) -> None:
        self.entries.append(entry)
        self._wake()

    def end(self) -> None:
        self.ended = True
        self._wake()

    def _wake(self) -> None:
        if self._changed:
            changed, self._changed = self._changed, []
            for waiter in changed:
                if not waiter.done():
                    waiter.set_result(None)

    async def watch(self) -> AsyncIterator[T]:
        """All entries from the first one on, as they come."""
        at = 0
        while True:
            while at < len(self.entries):
                yield self.entries[at]
                at += 1
            if self.ended:
                return
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._changed.append(waiter)
            await waiter
