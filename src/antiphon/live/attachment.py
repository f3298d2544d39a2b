"""Attachment: a client of a live session, which is a cursor over its journal and a way to write it.

A live client has its cursor at the tail, one that catches up has it further back, a slow client has one that
lags. There is no second mechanism: an attachment takes the next events when its connection has room for them,
from memory or from the store, and nothing waits for it. At the tail it is handed each commit; if it has no
room for a commit, it keeps its cursor and catches up by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from antiphon.live.feed import SessionFeed
from antiphon.live.tail import Stretch

Write = Callable[[Stretch], None]
"""Writes events to the client's connection, in its dialect."""


class Room(Protocol):
    """A connection that says whether it can take more."""

    @property
    def congested(self) -> bool: ...

    async def drain(self) -> None: ...


class Attachment:
    """Follows a session from its cursor on; `follow` runs in a task of the attachment's writer."""

    def __init__(self, feed: SessionFeed, write: Write, room: Room, *, cursor: int | None = None) -> None:
        self.feed = feed
        self._write = write
        self._room = room
        self.cursor = feed.fold.last_seq if cursor is None else cursor
        """The last event that was written to the connection. It is taken in the same step as the replay, so
        that between the two there is no gap and no overlap (invariant 2)."""
        self._begun = False
        self._following: asyncio.Timeout | None = None
        self._moved: asyncio.Future[None] | None = None
        """Done when the cursor moves; `None` while nothing waits for that."""
        self._left_behind: asyncio.Future[None] | None = None
        """Set while it is at the tail: done when it leaves the tail."""

    async def reached(self, seq: int) -> None:
        """Wait until everything up to `seq` was written to the connection."""
        while self.cursor < seq or not self._begun:
            if self._moved is None or self._moved.done():
                self._moved = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._moved)

    async def catch_up(self, seq: int) -> None:
        """Write the events up to `seq`, once they are committed, and no more."""
        await self.feed.durable(seq)
        while self.cursor < seq:
            self._take_all(await self.feed.journal.stretches(self.cursor), upto=seq)
            await self._room.drain()

    async def follow(self, *, begin: Callable[[], Awaitable[None]] | None = None) -> None:
        """Follow the session until `interrupt`, and then again after `feed` was set to another feed of it.
        `begin` sends the replay, once that is in the store."""
        scope = asyncio.timeout(None)
        try:
            async with scope:
                self._following = scope
                try:
                    await self._follow(begin)
                finally:
                    self._following = None
        except TimeoutError:
            if not scope.expired():
                raise

    def interrupt(self) -> None:
        """End `follow` soon, at its next wait."""
        if self._following is not None and not self._following.expired():
            self._following.reschedule(asyncio.get_running_loop().time())

    async def _follow(self, begin: Callable[[], Awaitable[None]] | None) -> None:
        await self.feed.durable(self.cursor)  # the feed may be behind the one before it
        if begin is not None:
            await begin()
            await self._room.drain()
        self._begun = True
        self._move()
        while True:
            await self.catch_up(self.feed.journal.last)
            if self.cursor >= self.feed.journal.last and not self._room.congested:
                self._left_behind = asyncio.get_running_loop().create_future()
                with self.feed.journal.followed_by(self):
                    await self._left_behind

    def _take_all(self, stretches: list[Stretch], *, upto: int) -> None:
        for stretch in stretches:
            self._take(stretch.between(self.cursor, upto))
            if self.cursor >= upto or self._room.congested:
                return

    def _take(self, stretch: Stretch) -> None:
        # Runs for every commit and client, with everything that it calls.
        self._write(stretch)
        self.cursor = stretch.last
        if self._moved is not None:
            self._move()

    def _move(self) -> None:
        moved, self._moved = self._moved, None
        if moved is not None and not moved.done():
            moved.set_result(None)

    # --- at the tail ---------------------------------------------------------------------------------

    def committed(self, stretch: Stretch) -> None:
        """Take the next commit."""
        left_behind = self._left_behind
        if left_behind is None or left_behind.done():
            return  # it has missed a commit already, or leaves
        if self._room.congested:
            self._leave()
            return
        try:
            self._take(stretch)
        except Exception as error:  # it concerns this client alone
            self._leave(error)

    def lost(self, error: Exception) -> None:
        """The store has failed: nothing more is committed."""
        self._leave(error)

    def _leave(self, error: Exception | None = None) -> None:
        if self._left_behind is None or self._left_behind.done():
            return
        if error is None:
            self._left_behind.set_result(None)
        else:
            self._left_behind.set_exception(error)
