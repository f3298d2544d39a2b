"""The fold of a journal: what every event changes in a session, and what can be read there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, Final, Self, TypeAlias, TypeGuard

from msgspec.structs import replace

from antiphon.engine import events as e
from antiphon.engine.annotations import ANNOTATION, ANNOTATION_REMOVED, Annotations
from antiphon.engine.events import Event, JournalGap, Translated, Updated
from antiphon.engine.items import (
    KEPT,
    ById,
    Compaction,
    ContextUsage,
    Facts,
    Info,
    Item,
    Latest,
    Plan,
    UnknownUpdate,
    is_ours,
    plan_id,
)  # fmt: skip
from antiphon.engine.prompts import Entry, Prompts
from antiphon.engine.questions import Questions
from antiphon.engine.subagents import SessionNote, SubagentInfo
from antiphon.engine.tools import Terminal, ToolCall
from antiphon.engine.transcript import MESSAGE_CHUNKS, Message, MessageType, Transcript
from antiphon.engine.turn import AnyStateUpdate, Effect, Turn, Turns, TurnState
from antiphon.schema import v2
from antiphon.schema.repair import Malformed
from antiphon.schema.v2.proposed import StateChange
from antiphon.schema.wire import Unknown

OPERATIONS = 256
"""How many operation ids a session remembers."""


class Operations:
    """The ids of the last cancels and queue changes, the oldest first, so that a repeated one is not done
    again. Prompts and questions keep the ids of their own operations."""

    __slots__ = ("_done",)

    def __init__(self) -> None:
        self._done: dict[str, None] = {}

    def __contains__(self, operation_id: object) -> bool:
        return operation_id in self._done

    def done(self, operation_id: str | None) -> tuple[e.OperationDone, ...]:
        """Return the event that records an operation."""
        return () if operation_id is None else (e.OperationDone(operation_id=operation_id),)

    def apply(self, body: e.OperationDone) -> None:
        self._done.setdefault(body.operation_id)
        if len(self._done) > OPERATIONS:
            del self._done[next(iter(self._done))]

    def part(self) -> list[str]:
        return list(self._done)

    def restore(self, part: Sequence[str]) -> None:
        self._done = dict.fromkeys(part)


class SessionFold:
    """A session folded up to `last_seq`. Read it; change it by `apply` alone."""

    __slots__ = (
        "_dirty", "_gone", "_items", "_unknown", "annotations", "closed", "compactions", "created", "facts",
        "last_seq", "operations", "plans", "prompts", "questions", "session_messages", "subagents",
        "terminals", "tools", "transcript", "turns",
    )  # fmt: skip

    def __init__(self) -> None:
        self.last_seq = 0
        self.created: e.SessionCreated | None = None
        self.closed = False
        self.turns: Final = Turns()
        self.transcript: Final = Transcript()
        self.annotations: Final = Annotations(self.transcript)
        self.tools: Final = ById(ToolCall)
        self.terminals: Final = ById(Terminal)
        self.plans: Final = ById(Plan)
        self.compactions: Final = ById(Compaction)
        self.facts: Final = Facts()
        self.subagents: Final = ById(SubagentInfo)
        self.session_messages: Final = ById(SessionNote)
        self.prompts: Final = Prompts()
        self.questions: Final = Questions()
        self.operations: Final = Operations()
        self._unknown: deque[UnknownUpdate] = deque()
        """The unknown updates that are replayed."""
        self._items: dict[str, Item] = {}
        self._dirty: set[str] = set()
        self._gone: list[int] = []
        """The places of items that were removed since the last snapshot."""

    # Reading

    @property
    def state(self) -> TurnState:
        return self.turns.state

    @property
    def turn(self) -> Turn | None:
        """The open turn."""
        return self.turns.current

    @property
    def background(self) -> list[v2.BackgroundWork] | None:
        return self.turns.background

    @property
    def items(self) -> list[Item]:
        """Everything that is replayed, in the order of first appearance."""
        return list(self._items.values())

    def first_items(self, most: int) -> list[Item]:
        """Return the first items, at most that many."""
        return list(islice(self._items.values(), most))

    @property
    def messages(self) -> list[Message]:
        return [item for item in self._items.values() if isinstance(item, Message)]

    @property
    def tool_calls(self) -> list[ToolCall]:
        return list(self.tools)

    @property
    def queue(self) -> list[Entry]:
        return self.prompts.queued

    def message(self, type: MessageType, id: str) -> Message | None:
        return self.transcript.get(type, id)

    def __eq__(self, other: object) -> bool:
        return self._view() == other._view() if isinstance(other, SessionFold) else NotImplemented

    def _view(self) -> tuple[Any, ...]:
        return (
            self.last_seq,
            self.created,
            self.closed,
            self.turns.part(),
            self.prompts.part(),
            self.prompts.entries,
            self.questions.all,
            self.operations.part(),
            [(item.key, item.position, item.materialize()) for item in self._items.values()],
        )

    __hash__ = None  # type: ignore[assignment]

    # The fold

    def apply(self, event: Event) -> None:
        """Fold the next event. Raises `JournalGap` if it is not the next one.

        An event that does not fit the session (in a journal that another program wrote) is skipped, so that
        the state is never corrupted.
        """
        if event.seq != self.last_seq + 1:
            raise JournalGap(self.last_seq + 1, event.seq)
        self.last_seq = event.seq
        body = event.body
        if type(body) is Updated or type(body) is Translated:
            try:
                update = body.update
            except Malformed:
                return
            fold = _UPDATES.get(type(update))
            if fold is not None:
                fold(self, update, event)
        else:
            _BODIES[type(body)](self, body, event)

    def fold(self, events: Iterable[Event]) -> Self:
        """Fold all of the events; return itself. Consecutive chunks of one message, which are most of any
        journal, are appended without looking the message up again."""
        kind: Any = None
        message_id = ""
        append: Callable[[Any], None] = _pass
        for event in events:
            body = event.body
            try:
                update: Any = body.update if type(body) is Updated else None
            except Malformed:
                update = None
            if type(update) is kind and update.message_id == message_id and event.seq == self.last_seq + 1:
                append(update.content)
                self.last_seq = event.seq
                continue
            self.apply(event)
            if type(update) in MESSAGE_CHUNKS:
                kind, message_id = type(update), update.message_id
                append = self.transcript.of(update).append
        return self

    def fold_text(self, events: Sequence[Event], texts: Sequence[str]) -> None:
        """Apply the chunks of one message, whose texts are known: only the first one is looked at."""
        first = events[0]
        self.apply(first)
        if len(events) > 1:
            body = first.body
            assert type(body) is Updated
            update: Any = body.update
            self.transcript.of(update).append_text(texts[1:])
            self.last_seq = events[-1].seq

    # Folds of one update or body each

    def _chunk(self, update: Any, event: Event) -> None:
        message = self.transcript.chunk(update, event.seq)
        key = message.key
        if key not in self._items:
            self._items[key] = message
        self._dirty.add(key)

    def _touch(self, item: Item) -> None:
        key = item.key
        if key not in self._items:
            self._items[key] = item
        self._dirty.add(key)

    def _message(self, update: Any, event: Event) -> None:
        self._touch(self.transcript.patch(update, event.seq))

    def _plan_removed(self, update: v2.PlanRemoved, event: Event) -> None:
        plan = self.plans.pop(update.plan_id)
        if plan is not None:
            self._drop(plan)

    def _drop(self, item: Item) -> None:
        del self._items[item.key]
        self._dirty.discard(item.key)
        self._gone.append(item.position)

    def _state(self, update: AnyStateUpdate, event: Event) -> None:
        effect = self.turns.apply(update, seq=event.seq, at=event.at)
        if effect is Effect.ENDED and self.turns.last is not None:
            self.prompts.apply_ended(self.turns.last)
        self._dirty.add("turn")

    def _fold_unknown(self, update: Unknown, event: Event) -> None:
        if is_state(update):
            self._state(update, event)
        elif not is_ours(update):
            from_v1 = isinstance(event.body, Translated) and event.body.origin != e.NOTHING
            made = UnknownUpdate(update, position=event.seq, from_v1=from_v1)
            self._touch(made)
            self._unknown.append(made)
            if len(self._unknown) > KEPT:
                self._drop(self._unknown.popleft())
        elif update["sessionUpdate"] == ANNOTATION:
            annotation = self.annotations.add(update, event.seq)
            if annotation is not None:
                self._items[annotation.key] = annotation
                self._dirty.add(annotation.key)
        elif update["sessionUpdate"] == ANNOTATION_REMOVED:
            removed = self.annotations.remove(update)
            if removed is not None:
                self._drop(removed)

    def _prompt(self, body: Any, event: Event) -> None:
        self._dirty.add("queue")
        if self.prompts.apply(body, seq=event.seq) and isinstance(body, e.PromptAccepted):
            self.turns.take(body.became or body.message_id)
            self._dirty.add("turn")

    def _question_opened(self, body: e.QuestionOpened, event: Event) -> None:
        turn_id = None if self.turn is None else self.turn.turn_id
        call = self.questions.apply_opened(body, seq=event.seq, turn_id=turn_id)
        if call is not None:
            tool_call = self.tools.find(call.tool_call_id, position=event.seq)
            tool_call.patch(call)
            self._touch(tool_call)

    def _question_closed(self, body: e.QuestionClosed, event: Event) -> None:
        self.questions.apply_closed(body, seq=event.seq)

    def _operation(self, body: e.OperationDone, event: Event) -> None:
        self.operations.apply(body)
        self._dirty.add("operations")

    def _session(self, body: Any, event: Event) -> None:
        self._dirty.add("session")
        match body:
            case e.SessionCreated():
                self.created = self.created or body
            case e.SessionClosed():
                self.closed = True
            case e.SessionReopened():
                self.closed = False
                if self.created is not None and body.additional_directories is not None:
                    self.created = replace(self.created, additional_directories=body.additional_directories)


def _pass(_: Any) -> None:
    """Append nothing: before the first chunk there is no message."""


_STATES = frozenset({v2.SessionStateUpdate, StateChange})


def is_state(update: v2.SessionUpdate) -> TypeGuard[AnyStateUpdate]:
    """Whether an update is about the state, a known one or not."""
    if type(update) is Unknown:
        return update.get("sessionUpdate") in ("state_update", "state_change")
    return type(update) in _STATES


FoldOne: TypeAlias = Callable[[SessionFold, Any, Event], None]


def _by_id(items: str, id: Callable[[Any], str], change: Callable[[Any, Any], None]) -> FoldOne:
    """Fold an update that changes the item of its id, in the attribute `items` of the session."""
    items_of = attrgetter(items)

    def fold(session: SessionFold, update: Any, event: Event) -> None:
        item = items_of(session).find(id(update), position=event.seq)
        change(item, update)
        session._touch(item)

    return fold


def _fact(name: str, make: Callable[..., Any]) -> FoldOne:
    """Fold an update that changes the fact of this name."""

    def fold(session: SessionFold, update: Any, event: Event) -> None:
        fact = getattr(session.facts, name)
        if fact is None:
            fact = make(position=event.seq)
            setattr(session.facts, name, fact)
        fact.patch(update)
        session._touch(fact)

    return fold


_call_id, _terminal_id = attrgetter("tool_call_id"), attrgetter("terminal_id")
_compaction_id, _message_id = attrgetter("compaction_id"), attrgetter("message_id")

_UPDATES: dict[type, FoldOne] = {
    v2.UserMessageChunk: SessionFold._chunk,
    v2.AgentMessageChunk: SessionFold._chunk,
    v2.AgentThoughtChunk: SessionFold._chunk,
    v2.UserMessage: SessionFold._message,
    v2.AgentMessage: SessionFold._message,
    v2.AgentThought: SessionFold._message,
    v2.SessionToolCallUpdate: _by_id("tools", _call_id, ToolCall.patch),
    v2.ToolCallContentChunk: _by_id("tools", _call_id, ToolCall.append),
    v2.TerminalUpdate: _by_id("terminals", _terminal_id, Terminal.patch),
    v2.TerminalOutputChunk: _by_id("terminals", _terminal_id, Terminal.append),
    v2.PlanUpdate: _by_id("plans", plan_id, Plan.patch),
    v2.PlanRemoved: SessionFold._plan_removed,
    v2.CompactionUpdate: _by_id("compactions", _compaction_id, Compaction.patch),
    v2.CompactionSummaryChunk: _by_id("compactions", _compaction_id, Compaction.append),
    v2.AvailableCommandsUpdate: _fact(
        "commands", partial(Latest[v2.AvailableCommandsUpdate], "facts/commands")
    ),
    v2.ConfigOptionUpdate: _fact("config", partial(Latest[v2.ConfigOptionUpdate], "facts/config")),
    v2.SessionInfoUpdate: _fact("info", Info),
    v2.UsageUpdate: _fact("usage", ContextUsage),
    v2.SubagentUpdate: _by_id("subagents", attrgetter("session_id"), SubagentInfo.patch),
    v2.SessionMessage: _by_id("session_messages", _message_id, SessionNote.patch),
    v2.SessionMessageChunk: _by_id("session_messages", _message_id, SessionNote.append),
    v2.SessionStateUpdate: SessionFold._state,
    StateChange: SessionFold._state,
    Unknown: SessionFold._fold_unknown,
}
"""Updates that are not listed reach attached clients and are not replayed (NOTE-05)."""

_BODIES: dict[type, FoldOne] = {
    e.SessionCreated: SessionFold._session,
    e.SessionReopened: SessionFold._session,
    e.SessionClosed: SessionFold._session,
    e.PromptQueued: SessionFold._prompt,
    e.PromptEdited: SessionFold._prompt,
    e.PromptMoved: SessionFold._prompt,
    e.PromptWithdrawn: SessionFold._prompt,
    e.PromptRejected: SessionFold._prompt,
    e.PromptSent: SessionFold._prompt,
    e.PromptAccepted: SessionFold._prompt,
    e.QueuePaused: SessionFold._prompt,
    e.QueueResumed: SessionFold._prompt,
    e.OperationDone: SessionFold._operation,
    e.QuestionOpened: SessionFold._question_opened,
    e.QuestionClosed: SessionFold._question_closed,
}
