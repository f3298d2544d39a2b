"""The tail: the last committed events of a journal, in memory, bounded by bytes.

A client that is further behind reads from the store; there is no other difference.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from antiphon.engine.events import Event
from antiphon.live.runs import Run, split

TAIL_BYTES = 1024 * 1024


class Stretch:
    """Consecutive events of a journal: those of one commit, or a page of the store."""

    __slots__ = ("_known", "_runs", "events", "last", "size")

    def __init__(self, events: Sequence[Event], *, size: int = 0, known: Sequence[Run] = ()) -> None:
        self.events = events
        self.size = size
        self.last = events[-1].seq
        self._known = known
        self._runs: list[Run] | None = None

    @property
    def runs(self) -> list[Run]:
        """The events as runs. They are made once, for all clients."""
        if self._runs is None:
            self._runs = split(self.events, self._known)
        return self._runs

    def between(self, cursor: int, last: int) -> Stretch:
        """Return the events after a cursor, up to `last`."""
        first = self.events[0].seq
        if cursor < first and self.last <= last:
            return self
        return Stretch(self.events[max(0, cursor + 1 - first) : last + 1 - first])


class Tail:
    """`first` is the number of the oldest event it still has; `last` that of the newest ever added."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.first = last + 1
        self._size = 0
        self._stretches: deque[Stretch] = deque()

    def add(self, stretch: Stretch) -> None:
        self._stretches.append(stretch)
        self._size += stretch.size
        self.last = stretch.last
        # The newest stays, however large: a client at the tail gets it from here.
        while self._size > TAIL_BYTES and len(self._stretches) > 1:
            gone = self._stretches.popleft()
            self._size -= gone.size
            self.first = gone.last + 1

    def forget(self) -> None:
        """Drop all events; a client that still needs them reads from the store."""
        self._stretches.clear()
        self._size = 0
        self.first = self.last + 1

    def reaches(self, cursor: int) -> bool:
        """Whether everything after `cursor` is here."""
        return cursor >= self.first - 1

    def after(self, cursor: int) -> list[Stretch]:
        """Return the events after a cursor that the tail reaches."""
        found: list[Stretch] = []
        for stretch in reversed(self._stretches):
            if stretch.last <= cursor:
                break
            found.append(stretch.between(cursor, self.last))
        found.reverse()
        return found
