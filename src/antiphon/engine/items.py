"""Items: what a session holds and replays, each with a kind and an id.

Messages, tool calls, terminals, subagents and facts have their own modules; the small items are here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

from msgspec import UNSET, structs

from antiphon.engine.content import Content, patch_meta
from antiphon.schema import v2
from antiphon.schema.wire import Unknown

OURS = "_antiphon_"
"""The prefix of our own updates. They describe the present, and only a client that asked for them gets
them."""
KEPT = 256
"""How many unknown updates a session replays, the last ones; the journal has them all."""

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Item(Protocol):
    """Something a session holds, at the place where it first appeared."""

    key: str
    """Its kind and id."""
    position: int
    """The number of the event that created it."""

    def materialize(self) -> Any:
        """Return the one update that contains all of it."""


class MakeItem(Protocol[T_co]):
    def __call__(self, id: Any, *, position: int) -> T_co: ...


class ById(Generic[T]):
    """The items of one kind, in the order of first appearance."""

    __slots__ = ("_by_id", "_make")

    def __init__(self, make: MakeItem[T]) -> None:
        self._make = make
        self._by_id: dict[str, T] = {}

    def __iter__(self) -> Iterator[T]:
        return iter(self._by_id.values())

    def get(self, id: str) -> T | None:
        return self._by_id.get(id)

    def find(self, id: str, *, position: int) -> T:
        """Return the item of this id. The first update of an id creates it, whether patch or chunk (COMP-04,
        TOOL-V2-01, TOOL-V2-06, TERMV2-02)."""
        item = self._by_id.get(id)
        if item is None:
            item = self._by_id[id] = self._make(id, position=position)
        return item

    def pop(self, id: str) -> T | None:
        return self._by_id.pop(id, None)


class Plan:
    """One plan: each update replaces the plan of its id, and no other."""

    __slots__ = ("id", "key", "latest", "position")

    latest: v2.PlanUpdate

    def __init__(self, id: str, *, position: int) -> None:
        self.id = id
        self.key = f"plan/{id}"
        self.position = position

    def patch(self, update: v2.PlanUpdate) -> None:
        self.latest = update

    def materialize(self) -> v2.PlanUpdate:
        return self.latest


def plan_id(update: v2.PlanUpdate) -> str:
    """Return the id of an updated plan; one of an unknown type has its id too (PLAN-V2-03)."""
    return str(update.plan["planId"]) if isinstance(update.plan, Unknown) else update.plan.plan_id


class Compaction:
    """One compaction, at the place of its first report (COMP-03)."""

    __slots__ = ("_summary", "error", "id", "key", "meta", "position", "status")

    def __init__(self, id: v2.CompactionId, *, position: int) -> None:
        self.id = id
        self.key = f"compaction/{id}"
        self.position = position
        self.status = v2.CompactionStatus.IN_PROGRESS
        self.error: str | None = None
        self.meta: dict[str, Any] = {}
        self._summary = Content()

    @property
    def summary(self) -> list[v2.ContentBlock]:
        return self._summary.blocks

    def append(self, chunk: v2.CompactionSummaryChunk) -> None:
        self._summary.append(chunk.content)

    def patch(self, update: v2.CompactionUpdate) -> None:
        self.status = update.status
        if update.summary is not UNSET:
            self._summary.replace(update.summary or ())
        if update.error is not UNSET:
            self.error = update.error
        self.meta = patch_meta(self.meta, update.meta)

    def materialize(self) -> v2.CompactionUpdate:
        """One update with all that is known (COMP-06)."""
        return structs.replace(self.bare(), summary=self.summary or None)

    def bare(self) -> v2.CompactionUpdate:
        """Return it without the summary."""
        return v2.CompactionUpdate(
            compaction_id=self.id,
            status=self.status,
            summary=None,
            error=self.error,
            meta=self.meta or None,
        )

    def parts(self) -> tuple[list[v2.ContentBlock], list[str]]:
        """Return the summary as it is kept: blocks, and the strings of the plain text after them."""
        return self._summary.parts


class UnknownUpdate:
    """An update of a type that the protocol does not have. It is replayed unchanged, at its place (EXT-09):
    nothing here can know which later update replaces it."""

    __slots__ = ("from_v1", "key", "position", "update")

    def __init__(self, update: Unknown, *, position: int, from_v1: bool) -> None:
        self.key = f"unknown/{position}"
        self.position = position
        self.update = update
        self.from_v1 = from_v1
        """Whether a v1 agent sent it. Only then do v1 clients get it: their set of updates is closed
        (EXT-10)."""

    def materialize(self) -> Unknown:
        return self.update


class UnknownUpdates:
    def __init__(self) -> None:
        self._kept: deque[UnknownUpdate] = deque()

    def add(self, made: UnknownUpdate) -> UnknownUpdate | None:
        """Add an update; return the one that is no longer replayed because of it."""
        self._kept.append(made)
        return self._kept.popleft() if len(self._kept) > KEPT else None


def is_ours(update: Unknown) -> bool:
    return str(update.get("sessionUpdate")).startswith(OURS)


def is_from_v1(item: object) -> bool:
    """Whether an item is an unknown update of a v1 agent."""
    return isinstance(item, UnknownUpdate) and item.from_v1
