"""Unknown updates: what an agent says that the protocol has no name for. It is kept whole, at its place, and
replayed as it was (EXT-09): nobody here can tell what of it a later one replaces."""

from __future__ import annotations

from collections import deque

from antiphon.schema.wire import Unknown

OURS = "_antiphon_"
"""How our own begin: they say what is so just now, and are told anew."""
KEPT = 256
"""How many of them a session replays, the last ones; the journal has them all."""


class UnknownUpdate:
    __slots__ = ("from_v1", "key", "position", "update")

    def __init__(self, update: Unknown, *, position: int, from_v1: bool) -> None:
        self.key = f"unknown/{position}"
        self.position = position
        self.update = update
        self.from_v1 = from_v1
        """Whether a v1 agent said it: only then do v1 clients get it, whose set of updates is closed
        (EXT-10)."""

    def materialize(self) -> Unknown:
        return self.update


class UnknownUpdates:
    def __init__(self) -> None:
        self._kept: deque[UnknownUpdate] = deque()

    def add(self, made: UnknownUpdate) -> UnknownUpdate | None:
        """Take one in; gives the one that is not replayed any more for it."""
        self._kept.append(made)
        return self._kept.popleft() if len(self._kept) > KEPT else None


def is_ours(update: Unknown) -> bool:
    return str(update.get("sessionUpdate")).startswith(OURS)


def is_from_v1(item: object) -> bool:
    """Whether an item is something that a v1 agent said and nobody knows."""
    return isinstance(item, UnknownUpdate) and item.from_v1
