"""How something is watched that goes on: from its beginning, by any number, or from now on, by one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

T = TypeVar("T")


class _Bell:
    """Wakes whoever waits for a change."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def ring(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for waiter in waiting:
                if not waiter.done():
                    waiter.set_result(None)

    async def wait(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        await waiter


class Log(Generic[T]):
    """Written in one place and watched in many, each from the first entry on. It ends once; every watcher
    then ends too, having seen all of it."""

    def __init__(self) -> None:
        self.entries: list[T] = []
        self.ended = False
        self._bell = _Bell()

    def add(self, entry: T) -> None:
        self.entries.append(entry)
        self._bell.ring()

    def end(self) -> None:
        self.ended = True
        self._bell.ring()

    async def watch(self, *, after: int = 0) -> AsyncIterator[T]:
        """All entries from the first one on, or after so many, as they come."""
        at = after
        while True:
            while at < len(self.entries):
                yield self.entries[at]
                at += 1
            if self.ended:
                return
            await self._bell.wait()


class Feed(Generic[T]):
    """What one watcher has still to see: it keeps nothing that was seen."""

    def __init__(self) -> None:
        self._entries: deque[T] = deque()
        self._ended = False
        self._bell = _Bell()

    def add(self, entry: T) -> None:
        self._entries.append(entry)
        self._bell.ring()

    def end(self) -> None:
        self._ended = True
        self._bell.ring()

    async def watch(self) -> AsyncIterator[T]:
        while True:
            while self._entries:
                yield self._entries.popleft()
            if self._ended:
                return
            await self._bell.wait()
