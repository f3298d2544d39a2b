"""Importing: a file becomes a session of a store, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

import msgspec
from msgspec import structs

from antiphon.engine.events import FORMAT, Event, SessionCreated, UnreadableEvent, decode_event, encode_event
from antiphon.errors import LocalError, SessionExists
from antiphon.moving.parts import FileRefused, PartReader
from antiphon.stores.base import HIGHEST, Arrival, Batch, SessionRecord, Store

ID_LIMIT = 200

Settle = Callable[[SessionRecord], SessionRecord]
"""What becomes of a session's record in its new place."""
Check = Callable[[], object]


async def import_session(
    store: Store,
    file: BinaryIO,
    *,
    session_id: str | None = None,
    cwd: str | None = None,
    settle: Settle = lambda record: record,
    check: Check = lambda: None,
) -> SessionRecord:
    """Read a session into a store, under its own id or another one; `check` is called with each part and may
    raise. Raises `FileRefused`, or `SessionExists`."""
    parts = PartReader(file)
    head, body = parts.begin()
    record = _record(body)
    if record.session_id != head.session_id or head.last < 1:
        raise FileRefused("its beginning contradicts itself")
    wanted = structs.replace(
        record, session_id=session_id or record.session_id, cwd=cwd or record.cwd, last=0
    )
    _check_id(wanted.session_id)
    wanted = settle(wanted)
    if await store.get(wanted.session_id) is not None:
        raise SessionExists(f"session {wanted.session_id} is already there")
    async with store.arrival(wanted) as arrival:
        last = await _take_in(parts, arrival, _Rewriting(record, wanted), check)
        if last != head.last:
            raise FileRefused(f"it ends with event {last} and should end with {head.last}")
        await arrival.finish()
    return structs.replace(wanted, last=last)


class _Rewriting:
    """The first event names the session and its folder; all others are as they were."""

    def __init__(self, was: SessionRecord, becomes: SessionRecord) -> None:
        self._was = was
        self._becomes = becomes

    def first(self, event: Event, line: bytes) -> bytes:
        body = event.body
        if not isinstance(body, SessionCreated) or body.session_id != self._was.session_id:
            raise FileRefused("its journal does not begin with the creation of the session")
        if body.format > FORMAT:
            raise FileRefused(f"its journal is of format {body.format}, which a later Antiphon wrote")
        was, becomes = self._was, self._becomes
        if becomes.session_id == was.session_id and becomes.cwd == was.cwd:
            return line
        cwd = body.cwd if becomes.cwd == was.cwd else becomes.cwd
        return encode_event(
            structs.replace(event, body=structs.replace(body, session_id=becomes.session_id, cwd=cwd))
        )


async def _take_in(parts: PartReader, arrival: Arrival, rewriting: _Rewriting, check: Check) -> int:
    last = 0
    while (part := parts.next()) is not None:
        check()
        head, body = part
        lines = body.split(b"\n")
        if head.first != last + 1 or head.last - head.first + 1 != len(lines):
            raise FileRefused(f"events {last + 1} and following are missing, or there twice")
        for seq, line in enumerate(lines, start=head.first):
            event = _event(line, seq)
            if seq == 1:
                lines[0] = rewriting.first(event, line)
        await arrival.append(Batch(head.first, tuple(lines)))
        last = head.last
    return last


def _event(line: bytes, seq: int) -> Event:
    try:
        event = decode_event(line)
    except UnreadableEvent as error:
        raise FileRefused(f"event {seq} cannot be read here ({error}): a later Antiphon wrote it") from None
    if event.seq != seq:
        raise FileRefused(f"where event {seq} should stand is event {event.seq}")
    return event


def _record(body: bytes) -> SessionRecord:
    try:
        record = msgspec.json.decode(body, type=SessionRecord)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FileRefused(f"the session's record cannot be read: {error}") from None
    if not (0 <= record.created_at <= HIGHEST and 0 <= record.updated_at <= HIGHEST):
        raise FileRefused("the session's record has a time that is none")
    return record


def _check_id(session_id: str) -> None:
    if not (0 < len(session_id) <= ID_LIMIT and session_id.isprintable() and " " not in session_id):
        raise LocalError("an id of a session is one printable word")
