"""Where a client stands: in a stream, and in the journal of the stream's session.

The id of an event is its number on the stream, and behind a dash where the client then stands in the
journal, if that is known: with that the journal can give what is not kept any more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

WHOLE = float("inf")
_ID = re.compile(r"(\d{1,15})(?:-(\d{1,15})(?:\.(\d{1,6}))?)?", re.ASCII)


class Mark(NamedTuple):
    """A place in a journal: an event, or one of the updates that it became, which count from 0."""

    seq: int
    part: float = WHOLE

    @classmethod
    def of(cls, ours: Mapping[str, Any]) -> Mark | None:
        """As an update tells it."""
        seq, part = ours.get("seq"), ours.get("part")
        if not isinstance(seq, int):
            return None
        return cls(seq, part) if isinstance(part, int) else cls(seq)

    @property
    def event(self) -> int:
        """The last event that was read whole."""
        return self.seq if self.part == WHOLE else self.seq - 1


class Position(NamedTuple):
    """A place in a stream."""

    number: int
    mark: Mark | None = None

    @classmethod
    def read(cls, id: str) -> Self | None:
        found = _ID.fullmatch(id.strip())
        if found is None:
            return None
        number, seq, part = found.groups()
        mark = None if seq is None else Mark(int(seq)) if part is None else Mark(int(seq), int(part))
        return cls(int(number), mark)

    def __str__(self) -> str:
        if self.mark is None:
            return str(self.number)
        part = "" if self.mark.part == WHOLE else f".{self.mark.part}"
        return f"{self.number}-{self.mark.seq}{part}"
