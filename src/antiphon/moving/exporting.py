"""Exporting: a session's journal, read from a store as it is now, whoever works in it meanwhile."""

from __future__ import annotations

import msgspec

from antiphon.errors import SessionUnknown
from antiphon.moving.parts import PartWriter, Write
from antiphon.stores.base import SessionRecord, Store

PART_BYTES = 1024 * 1024
"""About as much goes into one part; so much is held at a time, however long the session."""


async def export_session(store: Store, session_id: str, write: Write) -> SessionRecord:
    """Write the file of a session, piece by piece, with the events it has now: those that come meanwhile are
    not in it. Raises `SessionUnknown`."""
    record = await store.get(session_id)
    if record is None or not record.last:  # without its first event it is still being made
        raise SessionUnknown(session_id)
    writer = PartWriter(write)
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
    writer.end()
    return record
