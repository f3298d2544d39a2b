"""Items: what a session holds and replays, each with a kind and an id.

Messages, tool calls, terminals and subagents have their own modules. The small items are here: plans,
compactions, unknown updates, and the facts of a session (commands, config options, info and usage).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

from msgspec import UNSET, Struct, field, structs

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

    def __len__(self) -> int:
        return len(self._by_id)

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


class Compaction(Struct, eq=False):
    """One compaction, at the place of its first report (COMP-03)."""

    id: v2.CompactionId
    position: int
    key: str = ""
    status: v2.CompactionStatus = v2.CompactionStatus.IN_PROGRESS
    error: str | None = None
    meta: dict[str, Any] = {}
    _summary: Content = field(default_factory=Content)

    def __post_init__(self) -> None:
        self.key = f"compaction/{self.id}"

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
        """Return the summary without copying it: blocks, and the strings of the plain text after them."""
        return self._summary.parts


class UnknownUpdate(Struct, eq=False):
    """An update of a type that the protocol does not have. It is replayed unchanged, at its place (EXT-09):
    nothing here can know which later update replaces it."""

    update: Unknown
    position: int
    from_v1: bool
    """Whether a v1 agent sent it. Only then do v1 clients get it: their set of updates is closed (EXT-10)."""
    key: str = ""

    def __post_init__(self) -> None:
        self.key = f"unknown/{self.position}"

    def materialize(self) -> Unknown:
        return self.update


def is_ours(update: Unknown) -> bool:
    return str(update.get("sessionUpdate")).startswith(OURS)


def is_from_v1(item: object) -> bool:
    """Whether an item is an unknown update of a v1 agent."""
    return isinstance(item, UnknownUpdate) and item.from_v1


Listing = TypeVar("Listing", v2.AvailableCommandsUpdate, v2.ConfigOptionUpdate)


class Latest(Generic[Listing]):
    """A list that each update replaces whole (CMD-01, CONF-01)."""

    __slots__ = ("key", "latest", "position")

    latest: Listing

    def __init__(self, key: str, *, position: int) -> None:
        self.key = key
        self.position = position

    def patch(self, update: Listing) -> None:
        self.latest = update

    def materialize(self) -> Listing:
        return self.latest


class Info(Struct, eq=False):
    """Title and time of the last activity: absent keeps, null clears (INFO-01)."""

    position: int
    key: str = "facts/info"
    title: str | None = None
    updated_at: str | None = None
    meta: dict[str, Any] = {}

    def patch(self, update: v2.SessionInfoUpdate) -> None:
        if update.title is not UNSET:
            self.title = update.title
        if update.updated_at is not UNSET:
            self.updated_at = update.updated_at
        self.meta = patch_meta(self.meta, update.meta)

    def materialize(self) -> v2.SessionInfoUpdate:
        return v2.SessionInfoUpdate(title=self.title, updated_at=self.updated_at, meta=self.meta or None)


class ContextUsage(Struct, eq=False):
    """The context window and the session's cost so far."""

    position: int
    key: str = "facts/usage"
    used: int = 0
    size: int = 0
    cost: v2.Cost | None = None
    meta: dict[str, Any] | None = None

    def patch(self, update: v2.UsageUpdate) -> None:
        self.used = update.used
        self.size = update.size
        if update.cost is not UNSET:  # USAGE-04
            self.cost = update.cost
        self.meta = update.meta

    def materialize(self) -> v2.UsageUpdate:
        return v2.UsageUpdate(used=self.used, size=self.size, cost=self.cost, meta=self.meta)


class Facts(Struct, eq=False):
    """The facts of a session, of which there is one each. A fact is `None` until its first update."""

    commands: Latest[v2.AvailableCommandsUpdate] | None = None
    config: Latest[v2.ConfigOptionUpdate] | None = None
    info: Info | None = None
    usage: ContextUsage | None = None

    @property
    def available_commands(self) -> list[v2.AvailableCommand]:
        """The commands that the session offers now."""
        return [] if self.commands is None else list(self.commands.latest.available_commands)
