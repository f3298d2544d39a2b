"""Export: the journals of a session and of its subagents, read from a store while others may work in them. A
damaged session is written as far as it can be read, with notes of its gaps."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from antiphon.errors import SessionUnknown, StoreCorrupt
from antiphon.session_files.families import family_of
from antiphon.session_files.format import PartWriter, Write
from antiphon.session_files.salvage import Journals, Missing, salvage
from antiphon.stores.base import SessionRecord

PART_BYTES = 1024 * 1024
"""About as much goes into one part; so much is held at a time, however long the session."""

Report = Callable[[Missing], object]


async def export_session(
    store: Journals, session_id: str, write: Write, *, report: Report = lambda _: None
) -> SessionRecord:
    """Write the file of a session, piece by piece, with the events it has now and the sessions of its
    subagents. Events that come meanwhile are not in it. `report` is called with the gaps of a damaged
    session. Raises `SessionUnknown`."""
    record = await store.get(session_id)
    if record is None:
        raise SessionUnknown(session_id)
    family, damaged = await family_of(store, record)
    writer = PartWriter(write, version=3 if damaged else 1 if len(family) == 1 else 2)
    for one in family:
        await _Session(store, one, writer, report, damaged).write()
    writer.end()
    return record


class _Session(msgspec.Struct, eq=False):
    """One session on its way into a file."""

    _store: Journals
    _record: SessionRecord
    _writer: PartWriter
    _report: Report
    _damaged: bool
    _gathered: list[bytes] = []
    _first: int = 1
    _size: int = 0

    async def write(self) -> None:
        record = self._record
        kept = msgspec.to_builtins(record)
        del kept["fault"]
        self._writer.begin(record.session_id, record.last, msgspec.json.encode(kept))
        if record.fault is not None and record.fault.in_record:
            self._missing(Missing(record.session_id, 0, 0, record.fault.found))
        if not record.last:
            self._missing(Missing(record.session_id, 0, 0, "it has no events"))
        async for found in salvage(self._store, record, limit_bytes=PART_BYTES):
            if isinstance(found, Missing):
                self._flush()
                self._missing(found)
                self._first = found.last + 1
                continue
            for line in found.lines:
                if self._gathered and self._size + len(line) > PART_BYTES:
                    self._flush()
                self._gathered.append(line)
                self._size += len(line) + 1
        self._flush()

    def _flush(self) -> None:
        if self._gathered:
            self._writer.events(self._first, self._gathered)
            self._first += len(self._gathered)
            self._gathered, self._size = [], 0

    def _missing(self, missing: Missing) -> None:
        if not self._damaged:
            raise StoreCorrupt(f"session {missing.session_id} was damaged while it was exported: {missing}")
        self._writer.missing(missing.first, missing.last, missing.found)
        self._report(missing)
