"""Importing: a file becomes a session of a store, with those that work for it, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

import msgspec
from msgspec import structs

from antiphon.engine.events import FORMAT, Event, SessionCreated, UnreadableEvent, decode_event, encode_event
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.errors import LocalError, SessionExists
from antiphon.jsonrpc.nesting import EVENT_DEPTH, is_too_deep
from antiphon.moving.families import rename_in
from antiphon.moving.parts import FileRefused, PartReader, SessionHead
from antiphon.stores.base import HIGHEST, Arrival, Batch, SessionRecord, Store

ID_LIMIT = 200

Settle = Callable[[SessionRecord], SessionRecord]
"""What becomes of a session's record in its new place."""
Check = Callable[[], object]
Begun = tuple[SessionHead, bytes]
"""The first part of a session."""


async def import_session(
    store: Store,
    file: BinaryIO,
    *,
    session_id: str | None = None,
    cwd: str | None = None,
    settle: Settle = lambda record: record,
    check: Check = lambda: None,
) -> SessionRecord:
    """Read a session into a store, under its own id or another one, and the sessions of its subagents with
    it; `check` is called with each part and may raise. Raises `FileRefused`, or `SessionExists`."""
    reading = _Reading(PartReader(file), check)
    begun = reading.parts.begin()
    record = _record(begun)
    moving = _Moving(record, session_id or record.session_id, cwd or record.cwd, settle)
    wanted = moving.wanted(record)
    await _refuse_twice(store, wanted)
    async with store.arrival(wanted) as arriving:
        last, child = await reading.session(begun, arriving, _Rewriting(record, wanted, moving))
        while child is not None:
            was = _record(child)
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
    """What changes on the way: ids, folders, and what the new place makes of a record."""

    def __init__(self, root: SessionRecord, session_id: str, cwd: str, settle: Settle) -> None:
        _check_id(session_id)
        self._root = root
        self._names = {root.session_id: session_id}
        self._cwd = cwd
        self._settle = settle
        self._known: set[str] = set()
        """The sessions that the file has told of."""

    @property
    def copies(self) -> bool:
        return self._names[self._root.session_id] != self._root.session_id

    def name(self, id: str) -> str:
        """What a session is called here: in a copy, its subagents are counted."""
        if self.copies and id not in self._names:
            self._names[id] = f"{self._names[self._root.session_id]}.{len(self._names)}"
        return self._names.get(id, id)

    def wanted(self, record: SessionRecord, *, child: bool = False) -> SessionRecord:
        """The record as it is to be. Raises `FileRefused` for a session that does not belong here."""
        meta = record.meta
        if child:
            parent = meta.get(SUBAGENT_OF)
            if parent not in self._known or record.session_id in self._known:
                raise FileRefused("a session in it works for none of the others, or is there twice")
            meta = {**meta, SUBAGENT_OF: self.name(str(parent))}
        self._known.add(record.session_id)
        cwd = self._cwd if record.cwd == self._root.cwd else record.cwd
        changed = {"session_id": self.name(record.session_id), "cwd": cwd, "meta": meta, "last": 0}
        return self._settle(structs.replace(record, **changed))


class _Rewriting:
    """The first event names the session, its folder and whom it works for; in a copy, others name sessions,
    too. All else is as it was."""

    def __init__(self, was: SessionRecord, becomes: SessionRecord, moving: _Moving) -> None:
        self._was = was
        self._becomes = becomes
        self._moving = moving

    def first(self, event: Event, line: bytes) -> bytes:
        body, was, becomes = event.body, self._was, self._becomes
        if not isinstance(body, SessionCreated) or body.session_id != was.session_id:
            raise FileRefused("its journal does not begin with the creation of the session")
        if body.format > FORMAT:
            raise FileRefused(f"its journal is of format {body.format}, which a later Antiphon wrote")
        if becomes.session_id == was.session_id and becomes.cwd == was.cwd:
            return line
        meta = dict(body.meta)
        if SUBAGENT_OF in meta:
            meta[SUBAGENT_OF] = self._moving.name(str(meta[SUBAGENT_OF]))
        cwd = body.cwd if becomes.cwd == was.cwd else becomes.cwd
        changed = structs.replace(body, session_id=becomes.session_id, cwd=cwd, meta=meta)
        return encode_event(structs.replace(event, body=changed))

    def later(self, line: bytes) -> bytes:
        return rename_in(line, self._moving.name) if self._moving.copies else line


class _Reading:
    def __init__(self, parts: PartReader, check: Check) -> None:
        self.parts = parts
        self._check = check

    async def session(
        self, begun: Begun, arrival: Arrival, rewriting: _Rewriting
    ) -> tuple[int, Begun | None]:
        """Take in one session; the number of its last event, and how the next one begins, if one does."""
        last = 0
        while (part := self.parts.next()) is not None:
            self._check()
            head, body = part
            if isinstance(head, SessionHead):
                _check_end(begun[0], last)
                return last, (head, body)
            lines = body.split(b"\n")
            if head.first != last + 1 or head.last - head.first + 1 != len(lines):
                raise FileRefused(f"events {last + 1} and following are missing, or there twice")
            for at, line in enumerate(lines):
                event = _event(line, head.first + at)
                lines[at] = rewriting.first(event, line) if event.seq == 1 else rewriting.later(line)
            await arrival.append(Batch(head.first, tuple(lines)))
            last = head.last
        _check_end(begun[0], last)
        return last, None


def _check_end(head: SessionHead, last: int) -> None:
    if last != head.last:
        raise FileRefused(f"it ends with event {last} and should end with {head.last}")


def _event(line: bytes, seq: int) -> Event:
    try:
        event = decode_event(line)
    except UnreadableEvent as error:
        raise FileRefused(f"event {seq} cannot be read here ({error}): a later Antiphon wrote it") from None
    if is_too_deep(line, bound=EVENT_DEPTH):
        raise FileRefused(f"event {seq} is nested deeper than {EVENT_DEPTH} levels")
    if event.seq != seq:
        raise FileRefused(f"where event {seq} should stand is event {event.seq}")
    return event


def _record(begun: Begun) -> SessionRecord:
    head, body = begun
    try:
        record = msgspec.json.decode(body, type=SessionRecord)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FileRefused(f"the session's record cannot be read: {error}") from None
    if not (0 <= record.created_at <= HIGHEST and 0 <= record.updated_at <= HIGHEST):
        raise FileRefused("the session's record has a time that is none")
    if record.session_id != head.session_id or head.last < 1:
        raise FileRefused("its beginning contradicts itself")
    return record


def _check_id(session_id: str) -> None:
    if not (0 < len(session_id) <= ID_LIMIT and session_id.isprintable() and " " not in session_id):
        raise LocalError("an id of a session is one printable word")
