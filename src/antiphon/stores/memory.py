"""A store in memory: for sessions that need not outlive their process, and for tests."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from operator import attrgetter

import msgspec

from antiphon.errors import (
    SessionClaimed,
    SessionExists,
    SessionUnknown,
    StaleWriter,
    StoreCorrupt,
    StoreError,
)
from antiphon.stores.base import (
    LIST_LIMIT,
    PAGE_BYTES,
    Arrival,
    Batch,
    Fault,
    Listing,
    Page,
    Parts,
    RecordPatch,
    SessionRecord,
    Waiters,
    check_reading,
    joined_events,
    list_cursor,
    list_place,
)
from antiphon.stores.search.base import MATCHES, SECONDS, Matches
from antiphon.stores.search.scan import Scanned, ScannedSession, scan


class _Kept(msgspec.Struct, eq=False):
    """One session. The batches are the callers' own objects: nothing is copied."""

    record: SessionRecord
    last: int = 0
    batches: list[Batch] = []
    snapshot: int = 0
    parts: dict[str, bytes] = {}
    names: list[str] | None = None
    """The parts' names in order, made when they are read."""
    owner: str | None = None
    fault: Fault | None = None
    scanned: ScannedSession = msgspec.field(default_factory=ScannedSession)

    def append(self, batch: Batch) -> None:
        joined_events(batch)
        if self.last != batch.first - 1:
            raise StaleWriter(self.record.session_id, expected=batch.first - 1, actual=self.last)
        self.batches.append(batch)
        self.last = batch.last

    def listed(self) -> SessionRecord:
        return msgspec.structs.replace(self.record, last=self.last, fault=self.fault)


class _Arrival:
    def __init__(self, record: SessionRecord, take: Callable[[list[_Kept]], None]) -> None:
        self._take = take
        self._kept = _Kept(record)
        self._whole = [self._kept]

    async def append(self, batch: Batch) -> None:
        self._kept.append(batch)

    async def beside(self, record: SessionRecord) -> Arrival:
        other = _Arrival(record, self._take)
        self._whole.append(other._kept)
        return other

    async def finish(self) -> None:
        self._take(self._whole)


class MemoryStore:
    """Keeps sessions until it is closed. Nothing in it waits, except `grown`."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Kept] = {}
        self._waiters = Waiters()
        self._closed = False

    def _kept(self, session_id: str) -> _Kept:
        self._check_open()
        try:
            return self._sessions[session_id]
        except KeyError:
            raise SessionUnknown(session_id) from None

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the store is closed")

    async def create(self, record: SessionRecord, *, batch: Batch | None = None) -> None:
        self._check_open()
        self._refuse_twice(record)
        kept = _Kept(record)
        if batch is not None:
            kept.append(batch)
        self._sessions[record.session_id] = kept

    async def append(self, session_id: str, batch: Batch, *, record: RecordPatch | None = None) -> None:
        kept = self._kept(session_id)
        kept.append(batch)
        if record is not None:
            kept.record = msgspec.structs.replace(kept.record, **record.changes())
        self._waiters.wake(session_id, kept.last)

    @asynccontextmanager
    async def arrival(self, record: SessionRecord) -> AsyncIterator[Arrival]:
        self._check_open()
        yield _Arrival(record, self._take)

    def _take(self, arrived: list[_Kept]) -> None:
        """Sessions that have arrived."""
        self._check_open()
        for kept in arrived:
            self._refuse_twice(kept.record)
        self._sessions.update((kept.record.session_id, kept) for kept in arrived)

    def _refuse_twice(self, record: SessionRecord) -> None:
        if record.session_id in self._sessions:
            raise SessionExists(f"session {record.session_id} is already there")

    async def update(self, session_id: str, record: RecordPatch) -> None:
        kept = self._kept(session_id)
        kept.record = msgspec.structs.replace(kept.record, **record.changes())

    async def read(self, session_id: str, after: int, *, limit_bytes: int = PAGE_BYTES) -> Page:
        check_reading(after, limit_bytes)
        kept = self._kept(session_id)
        batches: list[Batch] = []
        cursor, size = after, 0
        at = bisect_right(kept.batches, after, key=attrgetter("last"))
        while at < len(kept.batches) and size < limit_bytes:
            first = kept.batches[at].first
            if first > cursor + 1:
                break
            batches.append(kept.batches[at].after(cursor))
            cursor = batches[-1].last
            size += sum(map(len, batches[-1].events))
            at += 1
        if not batches and cursor < kept.last:
            resume = kept.batches[at].first - 1 if at < len(kept.batches) else kept.last
            found = f"events {cursor + 1} to {resume} are missing"
            raise StoreCorrupt(f"session {session_id} is damaged: {found}", found=found, resume=resume)
        return Page(tuple(batches), cursor, kept.last)

    async def grown(self, session_id: str, after: int) -> int:
        kept = self._kept(session_id)
        return kept.last if kept.last > after else await self._waiters.add(session_id, after)

    async def save_parts(self, session_id: str, upto: int, parts: Mapping[str, bytes | None]) -> None:
        kept = self._kept(session_id)
        if upto < kept.snapshot:
            raise StaleWriter(session_id, expected=upto, actual=kept.snapshot)
        if upto > kept.last:
            raise ValueError(f"a snapshot up to {upto} of a journal that ends at {kept.last}")
        kept.snapshot, kept.names = upto, None
        for name, part in parts.items():
            if part is None:
                kept.parts.pop(name, None)
            else:
                kept.parts[name] = part

    async def load_parts(self, session_id: str, *, after: str = "", limit_bytes: int = PAGE_BYTES) -> Parts:
        check_reading(0, limit_bytes)
        kept = self._kept(session_id)
        if kept.names is None:
            kept.names = sorted(kept.parts)
        names = kept.names
        first = at = bisect_right(names, after)
        size = 0
        while at < len(names) and size < limit_bytes:
            size += len(kept.parts[names[at]])
            at += 1
        page = {name: kept.parts[name] for name in names[first:at]}
        return Parts(kept.snapshot, page, names[at - 1] if at < len(names) else None)

    async def get(self, session_id: str) -> SessionRecord | None:
        self._check_open()
        kept = self._sessions.get(session_id)
        return kept.listed() if kept is not None else None

    async def list(
        self, *, cwd: str | None = None, after: str | None = None, limit: int = LIST_LIMIT
    ) -> Listing:
        check_reading(0, limit)
        self._check_open()
        place = list_place(after) if after is not None else None
        found = sorted(
            (
                (kept.record.created_at, session_id)
                for session_id, kept in self._sessions.items()
                if cwd is None or kept.record.cwd == cwd
            ),
            reverse=True,
        )
        if place is not None:
            found = [entry for entry in found if entry < place]
        records = tuple(self._sessions[session_id].listed() for _, session_id in found[:limit])
        return Listing(records, list_cursor(records[-1]) if len(found) > limit else None)

    async def drop_snapshot(self, session_id: str) -> None:
        kept = self._kept(session_id)
        kept.snapshot, kept.parts, kept.names = 0, {}, None

    async def note_fault(self, session_id: str, fault: Fault | None) -> None:
        self._kept(session_id).fault = fault

    async def delete(self, session_id: str) -> bool:
        self._check_open()
        self._waiters.fail(session_id, SessionUnknown(session_id))
        return self._sessions.pop(session_id, None) is not None

    @property
    def can_search(self) -> bool:
        return True

    async def search(
        self,
        query: str,
        *,
        sessions: Collection[str] | None = None,
        limit: int = MATCHES,
        after: str | None = None,
        seconds: float = SECONDS,
    ) -> Matches:
        self._check_open()
        wanted = [
            Scanned(kept.record, kept.batches, kept.scanned)
            for session_id, kept in self._sessions.items()
            if sessions is None or session_id in sessions
        ]
        return await scan(wanted, query, limit=limit, after=after, seconds=seconds)

    async def claim(self, session_id: str, owner: str) -> None:
        kept = self._kept(session_id)
        if kept.owner is not None and kept.owner != owner:
            raise SessionClaimed(session_id, owner=kept.owner, pid=os.getpid())
        kept.owner = owner

    async def release(self, session_id: str, owner: str) -> None:
        self._check_open()
        kept = self._sessions.get(session_id)
        if kept is not None and kept.owner == owner:
            kept.owner = None

    async def aclose(self) -> None:
        self._closed = True
        for session_id in list(self._waiters.sessions):
            self._waiters.fail(session_id, StoreError("the store is closed"))
        self._sessions.clear()
