"""Journal, Cursor: a session's events in order, gap-free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NewType

from antiphon.engine.events import AnyBody, Event
from antiphon.errors import LocalError

Cursor = NewType("Cursor", int)
"""The number of the last event that was seen."""

START = Cursor(0)
"""Before the first event, which is number 1."""


class JournalGap(LocalError):
    """An event that is not the next one: one is missing, or this one was there before."""

    def __init__(self, expected: int, got: int) -> None:
        super().__init__(f"expected event {expected}, got {got}")
        self.expected = expected
        self.got = got


def number(bodies: Iterable[AnyBody], *, after: int, at: int) -> list[Event]:
    """The bodies as the events that follow `after`."""
    return [Event(seq, at, body) for seq, body in enumerate(bodies, after + 1)]


class Journal:
    """Events in memory, from `after` on: a whole journal, or the live tail of one."""

    __slots__ = ("_after", "_events")

    def __init__(self, events: Iterable[Event] = (), *, after: Cursor = START) -> None:
        self._after = after
        self._events: list[Event] = []
        self.append(events)

    @property
    def last(self) -> Cursor:
        return Cursor(self._after + len(self._events))

    def append(self, events: Iterable[Event]) -> None:
        """All of them, or none. Raises `JournalGap`."""
        batch = list(events)
        for expected, event in enumerate(batch, self.last + 1):
            if event.seq != expected:
                raise JournalGap(expected, event.seq)
        self._events += batch

    def after(self, cursor: Cursor, *, limit: int | None = None) -> Sequence[Event]:
        """The events behind a cursor. Raises `JournalGap` where they are no longer, or not yet, here."""
        if not self._after <= cursor <= self.last:
            raise JournalGap(self._after + 1, cursor + 1)
        start = cursor - self._after
        return self._events[start : None if limit is None else start + limit]

    def forget(self, cursor: Cursor) -> None:
        """Drops the events up to a cursor, which everybody has seen."""
        seen = min(cursor, self.last) - self._after
        if seen > 0:
            del self._events[:seen]
            self._after = Cursor(self._after + seen)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)
