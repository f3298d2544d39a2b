"""JetStreamStore: sessions in NATS JetStream, for hubs on several hosts."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import islice
from typing import Any, TypeVar

from msgspec import UNSET, structs

from antiphon.errors import SessionExists, SessionUnknown, StoreCorrupt, StoreError
from antiphon.stores.base import (
    LIST_LIMIT,
    PAGE_BYTES,
    Arrival,
    Batch,
    Fault,
    FaultKind,
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
from antiphon.stores.jetstream.claims import Claims
from antiphon.stores.jetstream.engine import Engine
from antiphon.stores.jetstream.exchange import Exchange
from antiphon.stores.jetstream.index import SessionIndex
from antiphon.stores.jetstream.journal import JournalMissing, SessionJournal
from antiphon.stores.jetstream.layout import JetStreamOptions
from antiphon.stores.jetstream.messages import IndexEntry, new_key
from antiphon.stores.jetstream.notes import Notes
from antiphon.stores.jetstream.snapshot import SessionSnapshot
from antiphon.stores.shared import Claim, Owner, Peer, StreamStatus

T = TypeVar("T")
MOST_KNOWN = 4096
"""Sessions that a store remembers without a claim on them."""


class _Kept:
    """One session that this store has used."""

    def __init__(self, entry: IndexEntry, journal: SessionJournal, snapshot: SessionSnapshot) -> None:
        self.entry = entry
        self.journal = journal
        self.snapshot = snapshot


class JetStreamStore:
    """Keeps sessions in NATS JetStream: `JetStreamStore("nats://a,b,c", JetStreamOptions(replicas=3))`.

    An append is confirmed by the server, or by a majority of the replicas. Servers confirm before they sync
    their disks, unless they run with `sync_interval: always`.
    """

    def __init__(self, servers: str, options: JetStreamOptions = JetStreamOptions()) -> None:
        self._engine = Engine(servers, options)
        self._index = SessionIndex(self._engine)
        self._claims = Claims(self._engine, lease=options.lease, lost=self._lose)
        self._exchange = Exchange(self._engine, self._claims.store_id)
        self._notes = Notes(self._engine)
        self._sessions: dict[str, _Kept] = {}
        self._faults: dict[str, Fault] = {}
        self._waiters = Waiters()
        self._lost: asyncio.Queue[str] = asyncio.Queue()
        """Sessions whose claims other stores have taken over."""
        self._closed = False
        self._calls = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    @property
    def servers(self) -> str:
        """The servers as text for people: without users and passwords."""
        return self._engine.servers

    @property
    def replicas(self) -> int:
        """How many servers keep each session; 0 until the store is open."""
        return self._engine.replicas

    @property
    def lease(self) -> float:
        return self._claims.lease

    async def __aenter__(self) -> JetStreamStore:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def open(self) -> None:
        """Connect now, to learn now if that cannot be done."""
        async with self._call():
            pass

    @asynccontextmanager
    async def _call(self) -> AsyncIterator[None]:
        """A call under way: closing waits for it."""
        if self._closed:
            raise StoreError("the store is closed")
        self._calls += 1
        self._quiet.clear()
        try:
            await self._engine.open()
            yield
        finally:
            self._calls -= 1
            if not self._calls:
                self._quiet.set()

    # --- finding -----------------------------------------------------------------------------------

    def _keep(self, entry: IndexEntry) -> _Kept:
        journal = SessionJournal(
            self._engine,
            entry.session_id,
            entry.key,
            grew=self._waiters.wake,
            deleted=self._forget,
            awaited=lambda: entry.session_id in self._waiters.sessions,
        )
        snapshot = SessionSnapshot(self._engine, entry.session_id, entry.key)
        return _Kept(entry, journal, snapshot)

    def _forget(self, session_id: str) -> None:
        """A session is gone."""
        self._sessions.pop(session_id, None)
        self._faults.pop(session_id, None)
        self._waiters.fail(session_id, SessionUnknown(session_id))

    def _forget_unused(self) -> None:
        """Keep what is remembered bounded."""
        if len(self._sessions) > MOST_KNOWN:
            unused = (id for id, kept in self._sessions.items() if kept.journal.is_at_rest)
            for session_id in tuple(islice(unused, MOST_KNOWN // 2)):
                del self._sessions[session_id]

    async def _with(self, session_id: str, act: Callable[[_Kept], Awaitable[T]]) -> T:
        """Do something with a session. What is known of it may be outdated: then it is looked up again."""
        known = self._sessions.get(session_id)
        if known is not None:
            try:
                return await act(known)
            except (JournalMissing, SessionUnknown):
                self._sessions.pop(session_id, None)
        entry = await self._index.find(session_id)
        if entry is None:
            raise SessionUnknown(session_id)
        kept = self._sessions.setdefault(session_id, self._keep(entry))
        self._forget_unused()
        try:
            return await act(kept)
        except JournalMissing:
            found = "its journal is missing"
            raise StoreCorrupt(f"session {session_id} is damaged: {found}", found=found) from None

    # --- writing -----------------------------------------------------------------------------------

    async def create(self, record: SessionRecord, *, batch: Batch | None = None) -> None:
        async with self._call():
            if await self._index.find(record.session_id) is not None:
                raise SessionExists(f"session {record.session_id} is already there")
            kept = self._keep(new_entry(record))
            try:
                await kept.journal.begin(record, batch)
                await self._index.add(kept.entry)
            except BaseException:
                await kept.journal.purge()
                raise
            self._sessions[record.session_id] = kept

    async def append(self, session_id: str, batch: Batch, *, record: RecordPatch | None = None) -> None:
        async with self._call():
            await self._with(session_id, lambda kept: kept.journal.append(batch, record))
            await self._move(session_id, record)

    async def update(self, session_id: str, record: RecordPatch) -> None:
        async with self._call():
            await self._with(session_id, lambda kept: kept.journal.update(record))
            await self._move(session_id, record)

    async def _move(self, session_id: str, record: RecordPatch | None) -> None:
        """Note another working directory in the index, where lists look for it."""
        kept = self._sessions.get(session_id)
        if (
            record is not None
            and record.cwd is not UNSET
            and kept is not None
            and kept.entry.cwd != record.cwd
        ):
            await self._index.move(kept.entry, record.cwd)
            kept.entry.cwd = record.cwd

    @asynccontextmanager
    async def arrival(self, record: SessionRecord) -> AsyncIterator[Arrival]:
        async with self._call():
            arriving = JetStreamArrival(record, self._keep, self._index)
            try:
                yield arriving
            finally:
                await arriving.clear()

    async def delete(self, session_id: str) -> bool:
        async with self._call():
            entry = await self._index.find(session_id)
            if entry is None:
                return False
            await self._claims.refuse_foreign(session_id, entry.key)
            kept = self._sessions.get(session_id)
            if kept is None or kept.entry.key != entry.key:
                kept = self._keep(entry)
            with suppress(JournalMissing, StoreCorrupt, SessionUnknown):  # what cannot be read is deleted too
                await kept.journal.end()
            await self._index.remove(entry)
            self._forget(session_id)
            await kept.journal.leave()
            await self._claims.release(entry.key)
            await kept.journal.purge()
            await kept.snapshot.drop()
            return True

    # --- reading -----------------------------------------------------------------------------------

    async def read(self, session_id: str, after: int, *, limit_bytes: int = PAGE_BYTES) -> Page:
        check_reading(after, limit_bytes)
        async with self._call():
            return await self._with(session_id, lambda kept: kept.journal.read(after, limit_bytes))

    async def grown(self, session_id: str, after: int) -> int:
        async with self._call():
            tip = await self._with(session_id, lambda kept: kept.journal.watched_tip())
            if tip.last > after:
                return tip.last
            waiting = self._waiters.add(session_id, after)
            kept = self._sessions[session_id]
            if not kept.journal.is_held:
                await kept.journal.follow()
        return await waiting

    async def get(self, session_id: str) -> SessionRecord | None:
        async with self._call():
            try:
                tip = await self._with(session_id, lambda kept: kept.journal.tip())
            except SessionUnknown:
                return None
            except StoreCorrupt as error:
                return self._damaged(await self._index.find(session_id), error)
            return structs.replace(tip.record, last=tip.last, fault=self._faults.get(session_id))

    def _damaged(self, entry: IndexEntry | None, error: StoreCorrupt) -> SessionRecord | None:
        if entry is None:
            return None
        return SessionRecord(
            session_id=entry.session_id,
            cwd=entry.cwd,
            created_at=entry.created_at,
            updated_at=entry.created_at,
            fault=Fault(FaultKind.DAMAGED, error.found, in_record=True),
        )

    async def list(
        self, *, cwd: str | None = None, after: str | None = None, limit: int = LIST_LIMIT
    ) -> Listing:
        check_reading(0, limit)
        async with self._call():
            place = list_place(after) if after is not None else None
            entries, more = await self._index.page(cwd=cwd, after=place, limit=limit)
            found = await asyncio.gather(*(self.get(entry.session_id) for entry in entries))
            records = tuple(record for record in found if record is not None)
            if not more:
                return Listing(records, None)
            last = entries[-1]
            return Listing(records, list_cursor(_place_of(last)))

    # --- snapshots ---------------------------------------------------------------------------------

    async def save_parts(self, session_id: str, upto: int, parts: Mapping[str, bytes | None]) -> None:
        async def save(kept: _Kept) -> None:
            tip = await kept.journal.tip()
            if upto > tip.last:
                raise ValueError(f"a snapshot up to {upto} of a journal that ends at {tip.last}")
            await kept.snapshot.save(upto, parts, journal_seq=tip.seq if upto == tip.last else 0)

        async with self._call():
            await self._with(session_id, save)

    async def load_parts(self, session_id: str, *, after: str = "", limit_bytes: int = PAGE_BYTES) -> Parts:
        check_reading(0, limit_bytes)

        async def load(kept: _Kept) -> Parts:
            if not after:
                await kept.journal.tip()  # whether the session is there
            parts = await kept.snapshot.load(after, limit_bytes)
            kept.journal.note_position(parts.upto, kept.snapshot.journal_seq)
            return parts

        async with self._call():
            return await self._with(session_id, load)

    async def drop_snapshot(self, session_id: str) -> None:
        async def drop(kept: _Kept) -> None:
            await kept.journal.tip()
            await kept.snapshot.drop()

        async with self._call():
            await self._with(session_id, drop)

    async def note_fault(self, session_id: str, fault: Fault | None) -> None:
        async with self._call():
            await self._with(session_id, lambda kept: kept.journal.tip())
            if fault is None:
                self._faults.pop(session_id, None)
            else:
                self._faults[session_id] = fault

    # --- claims ------------------------------------------------------------------------------------

    async def claim(self, session_id: str, owner: str) -> None:
        async def take(kept: _Kept) -> None:
            await kept.journal.tip()
            await kept.journal.fence(await self._claims.take(session_id, kept.entry.key, owner))
            await kept.journal.leave()

        async with self._call():
            await self._with(session_id, take)

    async def release(self, session_id: str, owner: str) -> None:
        async with self._call():
            kept = self._sessions.get(session_id)
            if kept is not None and await self._claims.release(kept.entry.key, owner):
                kept.journal.release()

    async def _lose(self, session_id: str) -> None:
        """Another store has taken over a claim of this one."""
        kept = self._sessions.get(session_id)
        if kept is not None:
            with suppress(JournalMissing, StoreError):  # whoever waits for the journal learns it by itself
                await kept.journal.lose()
        self._lost.put_nowait(session_id)

    async def lost_claim(self) -> str:
        return await self._lost.get()

    async def owner(self, session_id: str) -> Owner | None:
        async with self._call():
            entry = await self._index.find(session_id)
            if entry is None:
                raise SessionUnknown(session_id)
            return await self._claims.owner(entry.key)

    async def owners(self) -> builtins.list[Claim]:
        async with self._call():
            return await self._claims.owners()

    # --- other stores ------------------------------------------------------------------------------

    @property
    def store_id(self) -> str:
        return self._claims.store_id

    def describe(self, about: Mapping[str, Any]) -> None:
        self._claims.describe(about)

    async def begin_lease(self) -> None:
        async with self._call():
            await self._claims.begin()

    async def end_lease(self, store_id: str) -> None:
        async with self._call():
            await self._claims.end_lease(store_id)

    async def peers(self) -> builtins.list[Peer]:
        async with self._call():
            return await self._claims.peers()

    async def request(self, store_id: str, data: bytes, *, timeout: float) -> bytes:
        await self.open()
        return await self._exchange.request(store_id, data, timeout=timeout)

    async def serve(self, handle: Callable[[bytes], Awaitable[bytes]]) -> None:
        async with self._call():
            await self._exchange.serve(handle)

    async def announce(self, topic: str, data: bytes) -> None:
        async with self._call():
            await self._exchange.announce(topic, data)

    async def listen(self, topic: str, receive: Callable[[str, bytes], None]) -> None:
        async with self._call():
            await self._exchange.listen(topic, receive)

    async def add_note(self, topic: str, key: str, data: bytes, *, seconds: float | None = None) -> None:
        async with self._call():
            await self._notes.add(topic, key, data, seconds=seconds)

    async def replace_note(self, topic: str, key: str, data: bytes, *, seconds: float | None = None) -> None:
        async with self._call():
            await self._notes.replace(topic, key, data, seconds=seconds)

    async def notes(self, topic: str) -> builtins.list[bytes]:
        async with self._call():
            return await self._notes.all(topic)

    async def status(self) -> builtins.list[StreamStatus]:
        async with self._call():
            return await self._engine.status()

    # --- closing -----------------------------------------------------------------------------------

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._exchange.close()
        await self._quiet.wait()
        for session_id in list(self._waiters.sessions):
            self._waiters.fail(session_id, StoreError("the store is closed"))
        for kept in self._sessions.values():
            await kept.journal.leave()
        await self._index.close()
        await self._claims.close()
        await self._engine.close()


class JetStreamArrival:
    """Sessions that are being imported. Their journals are written under keys that no entry names yet."""

    def __init__(
        self, record: SessionRecord, keep: Callable[[IndexEntry], _Kept], index: SessionIndex
    ) -> None:
        self._record = record
        self._make = keep
        self._index = index
        self._kept = keep(new_entry(record))
        self._begun = False
        self._whole = [self]
        self._finished = False

    async def append(self, batch: Batch) -> None:
        joined_events(batch)
        if self._begun:
            await self._kept.journal.append(batch)
        else:
            await self._kept.journal.begin(self._record, batch)
            self._begun = True

    async def beside(self, record: SessionRecord) -> Arrival:
        other = JetStreamArrival(record, self._make, self._index)
        self._whole.append(other)
        return other

    async def finish(self) -> None:
        for each in self._whole:
            if not each._begun:
                await each._kept.journal.begin(each._record)
                each._begun = True
        await self._index.add(*(each._kept.entry for each in self._whole))
        self._finished = True

    async def clear(self) -> None:
        """Remove what was written, unless it was finished."""
        if not self._finished:
            for each in self._whole:
                await each._kept.journal.purge()


def new_entry(record: SessionRecord) -> IndexEntry:
    return IndexEntry(
        session_id=record.session_id, key=new_key(), created_at=record.created_at, cwd=record.cwd
    )


def _place_of(entry: IndexEntry) -> SessionRecord:
    return SessionRecord(
        session_id=entry.session_id, cwd=entry.cwd, created_at=entry.created_at, updated_at=entry.created_at
    )
