"""Attachment: a client of a live session, which is a cursor over its journal and a way to write it.

Live is a cursor at the tail, catching up is a cursor behind it, a slow client is a cursor that lags. There is
no second mechanism: an attachment takes the next events when its connection has room for them, from memory or
from the store, and nobody waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from antiphon.engine.events import Event
from antiphon.live.session import LiveSession

Write = Callable[[list[Event]], None]
"""Puts events on the client's connection, in its dialect."""


class Attachment:
    """Follows a session from where it was attached; run `follow` in a task that the connection owns."""

    def __init__(
        self,
        live: LiveSession,
        write: Write,
        *,
        drain: Callable[[], Awaitable[None]],
        cursor: int | None = None,
    ) -> None:
        self._live = live
        self._write = write
        self._drain = drain
        self.cursor = live.fold.last_seq if cursor is None else cursor
        """The last event that is on its way to the client. Taken in the same step as the fold a replay is
        made from: between the two there is no gap and no overlap (invariant 2)."""
        self._begun = False

        self._moved = asyncio.Event()

    async def reached(self, seq: int) -> None:
        """Wait until everything up to `seq` is on its way to the client."""
        while self.cursor < seq or not self._begun:
            self._moved.clear()
            await self._moved.wait()

    async def catch_up(self, seq: int) -> None:
        """Write everything up to `seq`, which is in the journal, and no more."""
        while self.cursor < seq:
            events = await self._live.after(self.cursor)
            self._write(events[: seq - self.cursor])
            self.cursor = min(seq, events[-1].seq)
            await self._drain()

    async def follow(self, *, begin: Callable[[], Awaitable[None]] | None = None) -> None:
        """Until cancelled. `begin` sends the replay, once everything in it is in the store."""
        if begin is not None:
            await self._live.durable(self.cursor)
            await begin()
            await self._drain()
        self._begun = True
        self._moved.set()
        while True:
            events = await self._live.after(self.cursor)
            self._write(events)
            self.cursor = events[-1].seq
            self._moved.set()
            await self._drain()
