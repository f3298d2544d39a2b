"""What happens in a session beside the turn that is watched."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

from antiphon.client import ClientSession, SessionEvent


class Beside:
    """Hears everything, and gives what the turn did not hear its place among what it did."""

    def __init__(self, session: ClientSession) -> None:
        self._events = session.events()  # from here on it misses nothing
        self._heard = deque(session.notices)
        self._told: set[int] = set()

    async def listen(self) -> None:
        """Run it as a task."""
        async for event in self._events:
            self._heard.append(event)

    async def before(self, event: SessionEvent) -> list[SessionEvent]:
        """What came beside the turn before this event of it."""
        if not self._heard or self._heard[-1].seq < event.seq:
            await asyncio.sleep(0)  # the session tells the same right after the turn
        self._told.add(event.seq)
        return list(self._until(event.seq))

    def rest(self) -> list[SessionEvent]:
        return list(self._until(None))

    def _until(self, seq: int | None) -> Iterator[SessionEvent]:
        while self._heard and (seq is None or self._heard[0].seq <= seq):
            event = self._heard.popleft()
            if event.seq not in self._told:
                yield event
