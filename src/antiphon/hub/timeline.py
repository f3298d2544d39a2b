"""Timeline: what happened in a session, and when: its turns, prompts, tool calls and questions.

A fold of the journal that keeps no content, so that a long journal is cheap to fold. It continues where it
was when the journal grows.
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
REASON = 400
"""Characters of the message of an error."""
FINAL = frozenset({"completed", "failed", "cancelled"})

Key = tuple[str, str]


class _Update(Struct, rename="camel"):
    """The fields of an update that a timeline needs. An agent may have written anything in them."""

    session_update: Any = None
    state: Any = None
    stop_reason: Any = None
    proposed: Any = msgspec.field(name="stop_reason", default=None)
    tool_call_id: Any = None
    title: Any = None
    status: Any = None
    error: Any = None


_update = msgspec.json.Decoder(_Update).decode
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
        """Return the items, the oldest first."""
        return list(self._items.values())

    def add(self, events: Iterable[Event]) -> None:
        """Fold the next events."""
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
        update: _Update = _read(_update, body.raw, _Update())
        if update.session_update in ("state_update", "state_change"):
            self._state_changed(update, event)
        elif update.session_update == "tool_call_update" and isinstance(update.tool_call_id, str):
            self._tool_called(update, update.tool_call_id, event)

    def _state_changed(self, update: _Update, event: Event) -> None:
        self._copied = -1
        if update.state == "idle":
            if self._turn is not None:
                reason = update.stop_reason or update.proposed
                self._turn.end, self._turn.status = event.at, _line(reason) or "ended"
                self._turn.error = _line(_object(update.error).get("message"), most=REASON) or None
                self._turn.cause = _line(_object(_object(update.error).get("data")).get("cause")) or None
            self._turn = self._accepted = None
        elif update.state in ("running", "requires_action"):
            if self._turn is None:
                self._turn = self._begin("turn", str(event.seq), event)
                self._name_turn()
            self._turn.status = update.state

    def _name_turn(self) -> None:
        turn, prompt = self._turn, self._accepted
        if turn is not None and prompt is not None and turn.message_id is None:
            turn.title, turn.by, turn.message_id = prompt.title, prompt.by, prompt.message_id or prompt.id
            turn.prompt_request_id = prompt.prompt_request_id

    def _tool_called(self, update: _Update, id: str, event: Event) -> None:
        if event.at == self._copied:
            return
        item = self._items.get(("tool", id))
        if item is None:
            item = self._begin("tool", id, event, status="pending", tool_call_id=id)
        item.title = _line(update.title) or item.title
        if isinstance(update.status, str):
            item.status = _line(update.status)
            item.end = event.at if update.status in FINAL else None

    # --- prompts -----------------------------------------------------------------------------------

    def _queued(self, body: PromptQueued, event: Event) -> None:
        by = None if body.sender is None else who_of(body.sender)
        item = self._begin("prompt", body.message_id, event, title=_said(body.raw_content), status="queued")
        item.by, item.prompt_request_id = by, body.request_id

    def _edited(self, body: PromptEdited, event: Event) -> None:
        item = self._items.get(("prompt", body.message_id))
        if item is not None:
            item.title = _said(body.raw_content)

    def _moved(self, body: Any, event: Event) -> None:
        """Set the status of a prompt by the kind of its event."""
        item = self._items.get(("prompt", body.message_id))
        if item is None:
            return
        item.status = _PROMPT_STATUS[type(body)]
        item.end = None if isinstance(body, PromptSent) else event.at
        if isinstance(body, PromptAccepted):
            item.message_id = body.became or body.message_id
            self._accepted = item
            self._name_turn()

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
        item.end, item.status, item.cause = event.at, str(body.end), body.cause
        item.by = None if body.by is None else who_of(body.by)
        given = _object(_read(_plain, body.result, None))
        chosen = _object(given.get("outcome")).get("optionId")
        item.outcome = _line(given.get("action") or names.get(str(chosen))) or None


_PROMPT_STATUS: dict[type, str] = {
    PromptSent: "sent",
    PromptWithdrawn: "withdrawn",
    PromptRejected: "rejected",
    PromptAccepted: "accepted",
}
_HANDLERS: dict[type, Callable[[Timeline, Any, Event], None]] = {
    Updated: Timeline._updated,
    Translated: Timeline._updated,
    PromptQueued: Timeline._queued,
    PromptEdited: Timeline._edited,
    **dict.fromkeys(_PROMPT_STATUS, Timeline._moved),
    QuestionOpened: Timeline._opened,
    QuestionClosed: Timeline._closed,
}


def _read(decode: Callable[[Any], Any], raw: Raw, otherwise: Any) -> Any:
    """Decode what an agent wrote, which may be anything."""
    try:
        return decode(raw)
    except UNREADABLE:
        return otherwise


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _line(text: Any, *, most: int = TITLE) -> str:
    """Return a text as one short line; an empty one for anything else."""
    return " ".join(text[: 8 * most].split())[:most] if isinstance(text, str) else ""


def _said(content: Raw) -> str:
    blocks = _read(_plain, content, None)
    said = [_line(_object(block).get("text")) for block in blocks] if isinstance(blocks, list) else []
    return next(filter(None, said), "")


def _names(options: Any) -> dict[str, str]:
    named = [_object(option) for option in options] if isinstance(options, list) else []
    return {str(option.get("optionId")): _line(option.get("name")) for option in named}
