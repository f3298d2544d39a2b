"""EventLog and EventQueue: how tasks watch events that are added in the lane of a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

T = TypeVar("T")


class EventLog(Generic[T]):
    """Keeps all entries. Any number of watchers see each of them, from the first one to the end."""

    def __init__(self) -> None:
        self.entries: list[T] = []
        self._ended = False
        self._changed = asyncio.Event()

    def add(self, entry: T) -> None:
        self.entries.append(entry)
        self._wake()

    def end(self) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        """Wake every task that waits now."""
        self._changed.set()
        self._changed.clear()

    async def watch(self, *, after: int = 0) -> AsyncIterator[T]:
        """All entries after the first `after` ones, as they are added, until the end."""
        at = after
        while True:
            while at < len(self.entries):
                yield self.entries[at]
                at += 1
            if self._ended:
                return
            await self._changed.wait()


class EventQueue(Generic[T]):
    """The entries that one watcher has not seen yet. It keeps nothing else."""

    def __init__(self) -> None:
        self._entries: asyncio.Queue[T | None] = asyncio.Queue()
        """None is the end."""

    def add(self, entry: T) -> None:
        self._entries.put_nowait(entry)

    def end(self) -> None:
        self._entries.put_nowait(None)

    async def watch(self) -> AsyncIterator[T]:
        # A list that is emptied before the yield: a variable would hold the entry while the watcher waits.
        while (taken := [await self._entries.get()]) != [None]:
            yield taken.pop()  # type: ignore[misc]  # only the end is None
