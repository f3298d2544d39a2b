"""Story: the keys of all entries of a transcript, in order, and the entries that an event changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from antiphon.client import ClientSession, SessionEvent
from antiphon.engine import (
    ANNOTATION_UPDATES,
    TYPE_OF,
    Compaction,
    Message,
    MessageType,
    Plan,
    ToolCall,
    TurnState,
)
from antiphon.schema import Unknown, v2
from antiphon.transcripts import call_title, content_text, notice_text
from antiphon.tui.story.endings import PastTurn, ending_of, places
from antiphon.tui.story.entries import Entry, MessageEntry, NoteEntry, PlanEntry, ThoughtEntry
from antiphon.tui.story.tool_calls import CallEntry
from antiphon.tui.text.plain import plain_line

SHOWN = (Message, ToolCall, Plan, Compaction)
COMPACTED = "the agent has compacted its context"
TONES = {"error": "bad", "warning": "wait"}


class Story:
    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self.keys: list[str] = []
        self._known: set[str] = set()
        self._notes: dict[str, NoteEntry] = {}
        self._items: dict[str, Any] = {}
        for item in session.fold.items:
            if isinstance(item, SHOWN):
                self._items[item.key] = item
                self._add(item.key)
        self._replayed = len(self.keys)
        latest = session.fold.turns.latest
        self._open = session.state is not TurnState.IDLE
        self._closed = False
        """Whether the end of the last turn was part of the replay."""
        self._state: v2.State | None = None
        if self.keys and not self._open and isinstance(latest, v2.StateUpdate):
            self._closed = any(True for _ in self._ended(latest))

    def recall(self, turns: Sequence[PastTurn]) -> bool:
        """Add notes about how earlier turns ended. Return whether there are any."""
        found = places(self.keys, turns, before=self._replayed, open=self._open, closed=self._closed)
        for at, ending in reversed(found):
            self.keys.insert(at, self._make_note(*ending))
        return bool(found)

    def take(self, event: SessionEvent) -> Iterable[str]:
        """Yield the keys of the entries that an event has changed."""
        update: Any = event.update
        kind = TYPE_OF.get(type(update))
        if kind is not None:
            yield self._add(f"message/{kind}/{update.message_id}")
        elif isinstance(update, Unknown) and update.get("sessionUpdate") in ANNOTATION_UPDATES:
            key = f"message/{update.get('role')}/{update.get('messageId')}"
            if key in self._known:
                yield key
        elif isinstance(update, v2.SessionToolCallUpdate | v2.ToolCallContentChunk):
            yield self._add(f"tool/{update.tool_call_id}")
        elif isinstance(update, v2.TerminalUpdate | v2.TerminalOutputChunk):
            yield from self._showing(update.terminal_id)
        elif isinstance(update, v2.PlanUpdate):
            plan: Any = update.plan
            yield self._add(f"plan/{plan['planId'] if isinstance(plan, dict) else plan.plan_id}")
        elif isinstance(update, v2.Notice):
            yield self.note(plain_line(notice_text(update)), tone=TONES.get(str(update.severity), "soft"))
        elif isinstance(update, v2.CompactionUpdate) and update.status == "completed":
            yield self.note(COMPACTED)
        elif isinstance(update, v2.SubagentUpdate) and update.title:
            yield self.note(f"subagent {plain_line(update.title)}")
        elif isinstance(update, v2.StateUpdate):
            before, self._state = self._state, update.state
            if update.state == v2.State.IDLE != before:  # a hub repeats the end of a prompt that is repeated
                yield from self._ended(update)

    def note(self, words: str, *, tone: str = "soft") -> str:
        """Add a note at the end, and return its key."""
        key = self._make_note(words, tone)
        self.keys.append(key)
        return key

    def _make_note(self, words: str, tone: str) -> str:
        key = f"note/{len(self._notes)}"
        self._notes[key] = NoteEntry(key, words, tone=tone)
        self._known.add(key)
        return key

    def _ended(self, state: v2.StateUpdate) -> Iterable[str]:
        ending = ending_of(state)
        if ending is not None:
            yield self.note(ending.words, tone=ending.tone)

    def _add(self, key: str) -> str:
        if key not in self._known:
            self._known.add(key)
            self.keys.append(key)
        return key

    def _showing(self, terminal_id: str) -> Iterable[str]:
        """Yield the tool calls among the latest entries that show a terminal."""
        for key in self.keys[:-40:-1]:
            call = self._item(key) if key.startswith("tool/") else None
            if call is not None and any(
                isinstance(part, v2.Terminal) and part.terminal_id == terminal_id for part in call.content
            ):
                yield key

    def _item(self, key: str) -> Any:
        fold = self.session.fold
        kind, _, id = key.partition("/")
        if kind == "tool":
            return fold.tools.get(id)
        if kind == "plan":
            return fold.plans.get(id)
        if kind == "message":
            type, _, id = id.partition("/")
            return fold.message(MessageType(type), id)
        return None

    def entry(self, key: str) -> Entry:
        """Make the entry for a key."""
        if key in self._notes:
            return self._notes[key]
        find = partial(self._item, key)
        if key.startswith("tool/"):
            return CallEntry(key, find, self.session)
        if key.startswith("plan/"):
            return PlanEntry(key, find)
        if key.startswith("compaction/"):
            return NoteEntry(key, COMPACTED)
        message = find() or self._items.get(key)
        if message is None:
            return NoteEntry(key, "")
        if message.type is MessageType.THOUGHT:
            return ThoughtEntry(key, message)
        return MessageEntry(key, message, **self._whose(message))

    def _whose(self, message: Message) -> dict[str, Any]:
        sender = message.sender
        if message.type is not MessageType.USER or sender is None:
            return {"mine": True}
        mine = sender.client_id == self.session.client.who.client_id
        return {"mine": mine, "name": "" if mine else plain_line(sender.name, limit=64)}

    def text(self, key: str) -> str:
        """Return the whole text of an entry, for a search."""
        if key in self._notes:
            return self._notes[key].text
        item = self._item(key) or self._items.get(key)
        if isinstance(item, Message):
            return content_text(item.content)
        if isinstance(item, ToolCall) and not item.content:
            return call_title(item)
        return self.entry(key).text

    def forkable(self, key: str) -> str | None:
        """Return the id of the message after which the session can be forked."""
        kind, _, rest = key.partition("/")
        type, _, id = rest.partition("/")
        return id if kind == "message" and type != MessageType.THOUGHT else None
