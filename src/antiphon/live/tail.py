"""The tail: the last committed events of a journal, kept in memory for those who are nearly there.

It is bounded by bytes. Who is further behind reads from the store; there is no other difference.
"""

from __future__ import annotations

from collections import deque

from msgspec import Struct

from antiphon.engine.events import Event

TAIL_BYTES = 1024 * 1024


class Stretch(Struct, frozen=True, gc=False):
    """What one commit added."""

    events: tuple[Event, ...]
    size: int

    @property
    def last(self) -> int:
        return self.events[-1].seq


class Tail:
    """`first` is the number of the oldest event it still has; `last` that of the newest ever added."""

    def __init__(self, last: int, *, bound: int = TAIL_BYTES) -> None:
        self.last = last
        self.first = last + 1
        self._bound = bound
        self._size = 0
        self._stretches: deque[Stretch] = deque()

    def add(self, stretch: Stretch) -> None:
        self._stretches.append(stretch)
        self._size += stretch.size
        self.last = stretch.last
        # The newest stays, however large: whoever is at the tail gets it from here.
        while self._size > self._bound and len(self._stretches) > 1:
            gone = self._stretches.popleft()
            self._size -= gone.size
            self.first = gone.last + 1

    def reaches(self, cursor: int) -> bool:
        """Whether everything after `cursor` is here."""
        return cursor >= self.first - 1

    def after(self, cursor: int) -> list[Event]:
        """The events after a cursor that the tail reaches."""
        found: list[Event] = []
        for stretch in reversed(self._stretches):
            if stretch.last <= cursor:
                break
            events = stretch.events
            found[:0] = events if events[0].seq > cursor else events[cursor + 1 - events[0].seq :]
        return found
