"""Exporting: the journals of a session and of its subagents, read from a store as they are now, whoever works
in them meanwhile."""

from __future__ import annotations

import msgspec

from antiphon.errors import SessionUnknown
from antiphon.moving.families import Journals, family_of
from antiphon.moving.parts import PartWriter, Write
from antiphon.stores.base import SessionRecord

PART_BYTES = 1024 * 1024
"""About as much goes into one part; so much is held at a time, however long the session."""


async def export_session(store: Journals, session_id: str, write: Write) -> SessionRecord:
    """Write the file of a session, piece by piece, with the events it has now: those that come meanwhile are
    not in it. The sessions of its subagents are in it, too. Raises `SessionUnknown`."""
    record = await store.get(session_id)
    if record is None or not record.last:  # without its first event it is still being made
        raise SessionUnknown(session_id)
    family = await family_of(store, record)
    writer = PartWriter(write, version=1 if len(family) == 1 else 2)
    for one in family:
        await _write_session(store, one, writer)
    writer.end()
    return record


async def _write_session(store: Journals, record: SessionRecord, writer: PartWriter) -> None:
    session_id = record.session_id
    writer.begin(session_id, record.last, msgspec.json.encode(record))
    cursor, gathered, size = 0, list[bytes](), 0
    while cursor < record.last:
        page = await store.read(session_id, cursor, limit_bytes=PART_BYTES)
        for batch in page.batches:
            for event in batch.events[: record.last - cursor]:
                if gathered and size + len(event) > PART_BYTES:
                    writer.events(cursor - len(gathered) + 1, gathered)
                    gathered, size = [], 0
                gathered.append(event)
                cursor += 1
                size += len(event) + 1
    writer.events(cursor - len(gathered) + 1, gathered)
