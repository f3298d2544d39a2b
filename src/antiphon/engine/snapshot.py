"""Snapshots: a session folded up to a cursor, kept in parts; and replay, made from the same parts.

The part of an item is the one update that contains all of it, with its position. So a snapshot is updated
item by item, a replay needs no fold, and a session is restored by folding the replay at those positions. The
names of the parts sort the items first, by position: read page by page, they are a replay.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from antiphon.engine.events import Cursor, Event, SessionCreated, Translated, Updated
from antiphon.engine.items import Item, is_from_v1
from antiphon.engine.json_values import UPDATES, Reader, encode
from antiphon.engine.prompts import Entry, QueuePart
from antiphon.engine.questions import Question
from antiphon.engine.session import Session
from antiphon.engine.tools import FINAL
from antiphon.engine.turn import TurnPart
from antiphon.schema.v2.compaction import CompactionStatus, CompactionUpdate
from antiphon.schema.v2.terminals import TerminalUpdate
from antiphon.schema.v2.tool_calls import SessionToolCallUpdate
from antiphon.schema.wire import Wire

SESSION, TURN, QUEUE, OPERATIONS = "session", "turn", "queue", "operations"
PROMPT, QUESTION = "prompt/", "question/"
ITEM = "item/{:015d}"
"""By its place, so wide that the order of the names is that of the numbers."""


ENDED = FINAL | {CompactionStatus.COMPLETED, CompactionStatus.FAILED, CompactionStatus.CANCELLED}


class SessionPart(Wire, frozen=True, kw_only=True):
    created: SessionCreated | None = None
    closed: bool = False


class ItemPart(Wire, frozen=True, kw_only=True):
    position: int
    update: Raw
    from_v1: bool = False
    """Whether it is an unknown one of a v1 agent's."""


_sessions: Reader[SessionPart] = Reader(SessionPart)
_turns: Reader[TurnPart] = Reader(TurnPart)
_queues: Reader[QueuePart] = Reader(QueuePart)
_entries: Reader[Entry] = Reader(Entry)
_questions: Reader[Question] = Reader(Question)
_items = msgspec.json.Decoder(ItemPart)


def parts(session: Session) -> dict[str, bytes]:
    """Return all parts, by name."""
    made = {key: _part(session, key) for key in (SESSION, TURN, QUEUE)}
    if session.operations.part():
        made[OPERATIONS] = _part(session, OPERATIONS)
    made |= {f"{PROMPT}{id}": encode(entry) for id, entry in session.prompts.entries.items()}
    made |= {f"{QUESTION}{id}": encode(question) for id, question in session.questions.all.items()}
    made |= {ITEM.format(item.position): _item_part(item) for item in session.items}
    return made


def take_dirty(session: Session) -> dict[str, bytes | None]:
    """Return the parts that changed since the last call; `None` for one that was removed."""
    made: dict[str, bytes | None] = {ITEM.format(position): None for position in session._gone}
    for key in session._dirty:
        item = session._items.get(key)
        if item is None:
            made[key] = _part(session, key)
        else:
            made[ITEM.format(item.position)] = _item_part(item)
    for id in session.prompts.changed:
        entry = session.prompts.get(id)
        made[f"{PROMPT}{id}"] = None if entry is None else encode(entry)
    for id in session.questions.changed:
        question = session.questions.get(id)
        made[f"{QUESTION}{id}"] = None if question is None else encode(question)
    _clean(session)
    return made


def _part(session: Session, key: str) -> bytes:
    match key:
        case "session":
            return encode(SessionPart(created=session.created, closed=session.closed))
        case "turn":
            return encode(session.turns.part())
        case "queue":
            return encode(session.prompts.part())
    return encode(session.operations.part())


class SessionRestorer:
    """Restores a session from its parts, page by page."""

    def __init__(self) -> None:
        self._session = Session()
        self._others: dict[str, bytes] = {}
        self.at_work = False
        """Whether an item is in progress: if its agent is gone, it ends once all parts are there."""

    def add(self, parts: Mapping[str, bytes]) -> list[bytes]:
        """Add a page of parts, in the order of the pages; return the updates that replay its items."""
        session, shown = self._session, []
        for part in _in_order(parts):
            # Events are folded in order, and a part has the number of the event that created its item.
            session.last_seq = part.position - 1
            update = UPDATES.read(part.update)  # a journal may hold malformed updates, a snapshot may not
            body = Updated.of(update, raw=part.update)
            if part.from_v1:
                body = Translated.make(update, origin=bytes(part.update))
                self.at_work = True  # not every client gets it, and none of them in this form
            session.apply(Event(part.position, 0, body))
            shown.append(bytes(part.update))
            if isinstance(update, SessionToolCallUpdate | CompactionUpdate):
                self.at_work = self.at_work or update.status not in ENDED
            elif isinstance(update, TerminalUpdate):
                self.at_work = self.at_work or update.exit_status is None
        self._others |= {key: part for key, part in parts.items() if not _is_item(key)}
        return shown

    def finish(self, cursor: Cursor) -> Session:
        """Return the session as of `cursor`, after all parts were added."""
        session, parts = self._session, self._others
        if SESSION in parts:
            about = _sessions.read(parts[SESSION])
            session.created, session.closed = about.created, about.closed
        if TURN in parts:
            session.turns.restore(_turns.read(parts[TURN]))
        if QUEUE in parts:
            entries = [_entries.read(part) for key, part in parts.items() if key.startswith(PROMPT)]
            session.prompts.restore(_queues.read(parts[QUEUE]), entries)
        if OPERATIONS in parts:
            session.operations.restore(msgspec.json.decode(parts[OPERATIONS], type=list[str]))
        session.questions.restore(
            [_questions.read(part) for key, part in parts.items() if key.startswith(QUESTION)]
        )
        session.last_seq = cursor
        _clean(session)
        return session


def state_update(session: Session) -> bytes:
    """Return the update that closes every replay, also an empty one (SESS-21)."""
    return encode(session.turns.snapshot())


def state_word(session: Session) -> str:
    """Return the state alone, as on the wire."""
    shown = session.turns.snapshot()
    return str(shown.get("state") if isinstance(shown, dict) else shown.state)


def _is_item(key: str) -> bool:
    return key not in (SESSION, TURN, QUEUE, OPERATIONS) and not key.startswith((PROMPT, QUESTION))


def _in_order(parts: Mapping[str, bytes]) -> list[ItemPart]:
    made = [_items.decode(part) for key, part in parts.items() if _is_item(key)]
    return sorted(made, key=lambda part: part.position)


def _item_part(item: Item) -> bytes:
    raw = Raw(encode(item.materialize()))
    return encode(ItemPart(position=item.position, update=raw, from_v1=is_from_v1(item)))


def _clean(session: Session) -> None:
    session._dirty.clear()
    session._gone.clear()
    session.prompts.changed.clear()
    session.questions.changed.clear()
