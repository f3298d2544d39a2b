"""Importing: a file becomes a session of a store, with those that work for it, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, NamedTuple

import msgspec
from msgspec import structs

from antiphon.engine.events import Event, SessionCreated, decode_event, encode_event
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.errors import SessionExists
from antiphon.jsonrpc.frames import UNREADABLE
from antiphon.session_files.families import rename_in
from antiphon.session_files.format import FileRefused, MissingHead, PartReader, SessionHead
from antiphon.session_files.validation import (
    RECORD_BYTES,
    SESSIONS,
    JournalCheck,
    check_depth,
    check_id,
    check_record,
    without_parent,
)
from antiphon.stores.base import Arrival, Batch, SessionRecord, Store

Settle = Callable[[SessionRecord], SessionRecord]
"""Changes the record of a session for its new store."""
Check = Callable[[], object]
Begun = tuple[SessionHead, bytes]
"""The first part of a session."""


async def import_session(
    store: Store,
    file: BinaryIO,
    *,
    session_id: str | None = None,
    cwd: str | None = None,
    partial: bool = False,
    settle: Settle = lambda record: record,
    check: Check = lambda: None,
) -> SessionRecord:
    """Read a session into a store, under its own id or another one, with the sessions of its subagents.
    Everything in the file is checked before any of it is visible. Raises `FileRefused`, or `SessionExists`.

    partial: take the events before the first missing one, of a session that was damaged when it was exported
    check: called with each part; may raise
    """
    reading = _Reading(PartReader(file), check, partial)
    begun = reading.parts.begin()
    record = _record(begun, cwd)
    moving = _Moving(record, session_id or record.session_id, cwd or record.cwd, settle)
    wanted = moving.wanted(record)
    await _refuse_twice(store, wanted)
    async with store.arrival(wanted) as arriving:
        last, child = await reading.session(begun, arriving, _Rewriting(record, wanted, moving))
        while child is not None:
            was = _record(child, cwd)
            becomes = moving.wanted(was, child=True)
            await _refuse_twice(store, becomes)
            beside = await arriving.beside(becomes)
            _, child = await reading.session(child, beside, _Rewriting(was, becomes, moving))
        await arriving.finish()
    return structs.replace(wanted, last=last)


async def _refuse_twice(store: Store, record: SessionRecord) -> None:
    if await store.get(record.session_id) is not None:
        raise SessionExists(f"session {record.session_id} is already there")


class _Moving:
    """What an import changes: ids, folders, and the record."""

    def __init__(self, root: SessionRecord, session_id: str, cwd: str, settle: Settle) -> None:
        check_id(session_id)
        self._root = root
        self._names = {root.session_id: session_id}
        self._cwd = cwd
        self._settle = settle
        self._known: set[str] = set()
        """The sessions of the file so far."""

    @property
    def copies(self) -> bool:
        return self._names[self._root.session_id] != self._root.session_id

    def name(self, id: str) -> str:
        """Return the id of a session in the store: in a copy, its subagents are numbered."""
        if self.copies and id not in self._names:
            self._names[id] = f"{self._names[self._root.session_id]}.{len(self._names)}"
        return self._names.get(id, id)

    def wanted(self, record: SessionRecord, *, child: bool = False) -> SessionRecord:
        """Return the record for the store. Raises `FileRefused` for a session that does not belong to the
        file.

        A child follows its parent, so they form no circle. The first session gets no parent: another file
        could bring a session that works for it.
        """
        meta = {key: value for key, value in record.meta.items() if key != SUBAGENT_OF}
        if child:
            parent = record.meta.get(SUBAGENT_OF)
            if parent not in self._known or record.session_id in self._known:
                raise FileRefused("a session in it has no parent in the file, or is in it twice")
            meta = {**meta, SUBAGENT_OF: self.name(str(parent))}
        if len(self._known) == SESSIONS:
            raise FileRefused(f"it holds more than {SESSIONS} sessions")
        self._known.add(record.session_id)
        cwd = self._cwd if record.cwd == self._root.cwd else record.cwd
        changed = {"session_id": self.name(record.session_id), "cwd": cwd, "meta": meta, "last": 0}
        wanted = self._settle(structs.replace(record, **changed, fault=None))
        check_record(wanted)
        return wanted


class _Rewriting(NamedTuple):
    """Changes events for the store. The first event names the session, its folder and its parent; in a copy,
    later events may name sessions, too. All others stay as they are."""

    was: SessionRecord
    becomes: SessionRecord
    moving: _Moving

    def first(self, event: Event, line: bytes) -> bytes:
        body, was, becomes = event.body, self.was, self.becomes
        assert isinstance(body, SessionCreated)
        parent = becomes.meta.get(SUBAGENT_OF)
        if (becomes.session_id, becomes.cwd) == (was.session_id, was.cwd) and (
            body.meta.get(SUBAGENT_OF) == parent
        ):
            return line
        changed = without_parent(body)
        if parent is not None:
            changed = structs.replace(changed, meta={**changed.meta, SUBAGENT_OF: parent})
        cwd = body.cwd if becomes.cwd == was.cwd else becomes.cwd
        changed = structs.replace(changed, session_id=becomes.session_id, cwd=cwd)
        return encode_event(structs.replace(event, body=changed))

    def later(self, line: bytes) -> bytes:
        return rename_in(line, self.moving.name) if self.moving.copies else line


class _Reading(NamedTuple):
    parts: PartReader
    check: Check
    partial: bool

    async def session(
        self, begun: Begun, arrival: Arrival, rewriting: _Rewriting
    ) -> tuple[int, Begun | None]:
        """Take in one session; the number of its last event, and how the next one begins, if one does."""
        last, broken, whole, following = 0, False, True, None
        checking = JournalCheck(rewriting.was)
        while (part := self.parts.next()) is not None:
            self.check()
            head, body = part
            if isinstance(head, SessionHead):
                following = (head, body)
                break
            if isinstance(head, MissingHead):
                self._check_missing(head, last)
                broken = broken or head.last > 0
                whole = False
                continue
            if broken:
                continue
            lines = body.split(b"\n")
            if head.first != last + 1 or head.last - head.first + 1 != len(lines):
                raise FileRefused(f"events {last + 1} and following are missing, or are in it twice")
            for at, line in enumerate(lines):
                event = checking.read(line, head.first + at)
                lines[at] = rewriting.first(event, line) if event.seq == 1 else rewriting.later(line)
                checking.fold(event if lines[at] is line else decode_event(lines[at]))
            await arrival.append(Batch(head.first, tuple(lines)))
            last = head.last
        if not last:
            raise FileRefused("it has no event that can be imported")
        if whole and last != begun[0].last:
            raise FileRefused(f"it ends with event {last} and should end with {begun[0].last}")
        checking.finish()
        return last, following

    def _check_missing(self, head: MissingHead, last: int) -> None:
        """Something of the session was damaged when it was exported. Raises `FileRefused`, unless the events
        before it are wanted."""
        which = f"events {head.first} to {head.last} are missing" if head.last else "it is not whole"
        found = f"it is of a session that was damaged when it was exported: {which} ({head.found})"
        if head.last and not last:
            raise FileRefused(f"{found}; without the first event there is nothing to import")
        if not self.partial:
            raise FileRefused(f"{found}; --partial imports the events before what is missing")


def _record(begun: Begun, cwd: str | None) -> SessionRecord:
    head, body = begun
    if len(body) > RECORD_BYTES:
        raise FileRefused(f"the session's record has {len(body)} bytes; the limit is {RECORD_BYTES}")
    check_depth(body, "the session's record")
    try:
        record = msgspec.json.decode(body, type=SessionRecord)
    except UNREADABLE as error:
        raise FileRefused(f"the session's record cannot be read: {error}") from None
    if record.session_id != head.session_id or head.last < 0:
        raise FileRefused("the head of the session and its record contradict each other")
    if not record.cwd and cwd is not None:  # it was damaged
        record = structs.replace(record, cwd=cwd)
    check_record(record)
    return record
