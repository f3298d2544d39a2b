"""EventLog and EventQueue: how tasks watch events that are added in the lane of a session."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

T = TypeVar("T")


class _Signal:
    """Wakes every task that waits for a change."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def set(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for waiter in waiting:
                if not waiter.done():
                    waiter.set_result(None)

    async def wait(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        await waiter


class EventLog(Generic[T]):
    """Keeps all entries. Any number of watchers see each of them, from the first one to the end."""

    def __init__(self) -> None:
        self.entries: list[T] = []
        self.ended = False
        self._changed = _Signal()

    def add(self, entry: T) -> None:
        self.entries.append(entry)
        self._changed.set()

    def end(self) -> None:
        self.ended = True
        self._changed.set()

    async def watch(self, *, after: int = 0) -> AsyncIterator[T]:
        """All entries after the first `after` ones, as they are added, until the end."""
        at = after
        while True:
            while at < len(self.entries):
                yield self.entries[at]
                at += 1
            if self.ended:
                return
            await self._changed.wait()


class EventQueue(Generic[T]):
    """The entries that one watcher has not seen yet. It keeps nothing else."""

    def __init__(self) -> None:
        self._entries: deque[T] = deque()
        self._ended = False
        self._changed = _Signal()

    def add(self, entry: T) -> None:
        self._entries.append(entry)
        self._changed.set()

    def end(self) -> None:
        self._ended = True
        self._changed.set()

    async def watch(self) -> AsyncIterator[T]:
        while True:
            while self._entries:
                yield self._entries.popleft()
            if self._ended:
                return
            await self._changed.wait()
