"""Timeline: what happened in a session, and when: its turns, prompts, tool calls and questions.

A fold of the journal that keeps no content, so that a long one is cheap to go through, and goes on from where
it was when there is more of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Raw, Struct

from antiphon.engine.events import (
    Event,
    PromptAccepted,
    PromptEdited,
    PromptQueued,
    PromptRejected,
    PromptSent,
    PromptWithdrawn,
    QuestionClosed,
    QuestionOpened,
    SessionCreated,
    Translated,
    Updated,
)
from antiphon.engine.who import who_of
from antiphon.jsonrpc.frames import UNREADABLE
from antiphon.schema.antiphon.hub import TimelineItem

LIMIT = 1000
"""How many items are kept of a session, the latest ones."""
TITLE = 120
FINAL = frozenset({"completed", "failed", "cancelled"})

Key = tuple[str, str]


class _Tag(Struct, gc=False):
    kind: str = msgspec.field(name="sessionUpdate", default="")


class _State(Struct, rename="camel"):
    state: Any = None
    stop_reason: Any = None
    proposed: Any = msgspec.field(name="stop_reason", default=None)


class _Call(Struct, rename="camel"):
    tool_call_id: str
    title: Any = None
    status: Any = None


_tag = msgspec.json.Decoder(_Tag).decode
_state = msgspec.json.Decoder(_State).decode
_call = msgspec.json.Decoder(_Call).decode
_plain = msgspec.json.Decoder().decode


class Timeline:
    def __init__(self) -> None:
        self.last = 0
        """The number of the last event that was folded."""
        self.omitted = 0
        """How many of the first items are gone."""
        self._items: dict[Key, TimelineItem] = {}
        self._turn: TimelineItem | None = None
        self._accepted: TimelineItem | None = None
        """The prompt that the next turn works on."""
        self._options: dict[str, dict[str, str]] = {}
        """How the answers that can be chosen are called, of questions that are open."""
        self._copied = -1
        """When a fork was made, as long as there is what it took over: updates, and none of a state. They are
        of other times, which nobody knows."""

    def items(self) -> list[TimelineItem]:
        """The first ones first."""
        return list(self._items.values())

    def add(self, events: Iterable[Event]) -> None:
        """The next events."""
        for event in events:
            self.last = event.seq
            body = event.body
            if isinstance(body, SessionCreated) and "forkedFrom" in body.meta:
                self._copied = event.at
            elif event.at != self._copied or not isinstance(body, Updated):
                self._copied = -1
            handle = _HANDLERS.get(type(body))
            if handle is not None:
                handle(self, body, event)

    def _begin(
        self,
        kind: str,
        id: str,
        event: Event,
        *,
        title: str = "",
        status: str = "",
        tool_call_id: str | None = None,
    ) -> TimelineItem:
        item = TimelineItem(
            kind=kind, id=id, title=title, start=event.at, end=None, status=status, tool_call_id=tool_call_id
        )
        self._items[kind, id] = item
        if len(self._items) > LIMIT:
            del self._items[next(iter(self._items))]
            self.omitted += 1
        return item

    # --- updates -----------------------------------------------------------------------------------

    def _updated(self, body: Updated, event: Event) -> None:
        handle = _UPDATES.get(_read(_tag, body.raw, _Tag()).kind)
        if handle is not None:
            handle(self, body.raw, event)

    def _stated(self, raw: Raw, event: Event) -> None:
        self._copied = -1
        told = _read(_state, raw, _State())
        if told.state == "idle":
            if self._turn is not None:
                reason = told.stop_reason or told.proposed
                self._turn.end, self._turn.status = event.at, _line(reason) or "ended"
            self._turn = self._accepted = None
        elif told.state in ("running", "requires_action"):
            if self._turn is None:
                self._turn = self._begin("turn", str(event.seq), event)
                self._name_turn()
            self._turn.status = told.state

    def _name_turn(self) -> None:
        turn, prompt = self._turn, self._accepted
        if turn is not None and prompt is not None and turn.message_id is None:
            turn.title, turn.by, turn.message_id = prompt.title, prompt.by, prompt.message_id or prompt.id
            turn.prompt_request_id = prompt.prompt_request_id

    def _called(self, raw: Raw, event: Event) -> None:
        told = _read(_call, raw, None)
        if told is None or event.at == self._copied:
            return
        id = told.tool_call_id
        item = self._items.get(("tool", id))
        if item is None:
            item = self._begin("tool", id, event, status="pending", tool_call_id=id)
        item.title = _line(told.title) or item.title
        if isinstance(told.status, str):
            item.status = _line(told.status)
            item.end = event.at if told.status in FINAL else None

    # --- prompts -----------------------------------------------------------------------------------

    def _queued(self, body: PromptQueued, event: Event) -> None:
        by = None if body.sender is None else who_of(body.sender)
        item = self._begin("prompt", body.message_id, event, title=_said(body.raw_content), status="queued")
        item.by, item.prompt_request_id = by, body.request_id

    def _edited(self, body: PromptEdited, event: Event) -> None:
        item = self._items.get(("prompt", body.message_id))
        if item is not None:
            item.title = _said(body.raw_content)

    def _sent(self, body: PromptSent, event: Event) -> None:
        self._moved(body.message_id, "sent")

    def _withdrawn(self, body: PromptWithdrawn, event: Event) -> None:
        self._moved(body.message_id, "withdrawn", event.at)

    def _rejected(self, body: PromptRejected, event: Event) -> None:
        self._moved(body.message_id, "rejected", event.at)

    def _taken(self, body: PromptAccepted, event: Event) -> None:
        item = self._moved(body.message_id, "accepted", event.at)
        if item is not None:
            item.message_id = body.became or body.message_id
            self._accepted = item
            self._name_turn()

    def _moved(self, id: str, status: str, end: int | None = None) -> TimelineItem | None:
        item = self._items.get(("prompt", id))
        if item is not None:
            item.status, item.end = status, end
        return item

    # --- questions ---------------------------------------------------------------------------------

    def _opened(self, body: QuestionOpened, event: Event) -> None:
        asked = _object(_read(_plain, body.params, None))
        subject = _object(asked.get("subject"))
        call = _object(subject.get("toolCall"))
        about = body.tool_call_id or call.get("toolCallId") or subject.get("toolCallId")
        self._options[body.question_id] = _names(asked.get("options"))
        title = _line(asked.get("title") or call.get("title") or asked.get("message"))
        item = self._begin("question", body.question_id, event, title=title, status="open")
        item.tool_call_id = about if isinstance(about, str) else None

    def _closed(self, body: QuestionClosed, event: Event) -> None:
        names = self._options.pop(body.question_id, None)
        item = self._items.get(("question", body.question_id))
        if item is None or names is None:
            return  # it ended before, or so much has happened since that it is not kept
        item.end, item.status = event.at, str(body.end)
        item.by = None if body.by is None else who_of(body.by)
        given = _object(_read(_plain, body.result, None))
        chosen = _object(given.get("outcome")).get("optionId")
        item.outcome = _line(given.get("action") or names.get(str(chosen))) or None


_UPDATES: dict[str, Callable[[Timeline, Raw, Event], None]] = {
    "state_update": Timeline._stated,
    "state_change": Timeline._stated,
    "tool_call_update": Timeline._called,
}
_HANDLERS: dict[type, Callable[[Timeline, Any, Event], None]] = {
    Updated: Timeline._updated,
    Translated: Timeline._updated,
    PromptQueued: Timeline._queued,
    PromptEdited: Timeline._edited,
    PromptSent: Timeline._sent,
    PromptWithdrawn: Timeline._withdrawn,
    PromptRejected: Timeline._rejected,
    PromptAccepted: Timeline._taken,
    QuestionOpened: Timeline._opened,
    QuestionClosed: Timeline._closed,
}


def _read(decode: Callable[[Any], Any], raw: Raw, otherwise: Any) -> Any:
    """What an agent of another hand wrote may be anything."""
    try:
        return decode(raw)
    except UNREADABLE:
        return otherwise


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _line(text: Any) -> str:
    """As one short line; nothing for what is no text."""
    return " ".join(text[: 8 * TITLE].split())[:TITLE] if isinstance(text, str) else ""


def _said(content: Raw) -> str:
    blocks = _read(_plain, content, None)
    said = [_line(_object(block).get("text")) for block in blocks] if isinstance(blocks, list) else []
    return next(filter(None, said), "")


def _names(options: Any) -> dict[str, str]:
    named = [_object(option) for option in options] if isinstance(options, list) else []
    return {str(option.get("optionId")): _line(option.get("name")) for option in named}
