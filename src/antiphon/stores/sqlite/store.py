"""A store in a SQLite file, which several processes may share."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar, TypeVarTuple

from msgspec.structs import replace

from antiphon.errors import AntiphonError, SessionUnknown, StoreError
from antiphon.stores.base import (
    LIST_LIMIT,
    PAGE_BYTES,
    Arrival,
    Batch,
    CheckReport,
    Fault,
    Listing,
    Page,
    Parts,
    RecordPatch,
    SessionRecord,
    Waiters,
    check_reading,
    joined_events,
    list_place,
)
from antiphon.stores.search.base import MATCHES, SECONDS, Matches
from antiphon.stores.sqlite import journal, records, statements
from antiphon.stores.sqlite.arrival import arrival
from antiphon.stores.sqlite.check import DamageCheck
from antiphon.stores.sqlite.checkpointer import Checkpointer
from antiphon.stores.sqlite.errors import store_error, store_errors
from antiphon.stores.sqlite.owner_file import OwnerFile
from antiphon.stores.sqlite.schema import (
    Durability,
    open_checkpointer,
    open_read_only,
    open_reader,
    open_writer,
)
from antiphon.stores.sqlite.search import SearchIndex
from antiphon.stores.sqlite.search_tables import has_fts5
from antiphon.stores.sqlite.writer import UNKNOWN_BYTES, Write, Writer

logger = logging.getLogger("antiphon.stores")

T = TypeVar("T")
Given = TypeVarTuple("Given")

PATIENCE = 10.0
POLL = 0.05


class SQLiteStore:
    """Keeps sessions in a SQLite file, which is opened by the first call. One store belongs to one event
    loop.

    path: the file, which is created if it does not exist
    durability: with `"process"` appended events survive the process, kill -9 included; with `"power"` also a
    power cut, and every commit waits for the disk
    patience: seconds that a call waits for other processes that write
    poll: seconds between two looks for what other processes wrote, while `grown` waits
    read_only: write, create and migrate nothing, so that a file can be read that is too damaged to be written
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: str = Durability.PROCESS,
        patience: float = PATIENCE,
        poll: float = POLL,
        read_only: bool = False,
    ) -> None:
        self.path = Path(path).absolute()
        self.durability = Durability(durability)
        self._patience = patience
        self._poll_every = poll
        self._read_only = read_only
        self._threads: tuple[ThreadPoolExecutor, ThreadPoolExecutor] | None = None
        self._connections: tuple[sqlite3.Connection, sqlite3.Connection] | None = None
        self._writer: Writer | None = None
        self._reader: sqlite3.Connection | None = None
        self._faults: dict[str, Fault] = {}
        """Faults of sessions, besides those that their rows show."""
        self._checking: DamageCheck | None = None
        self._checkpointer = Checkpointer(
            partial(open_checkpointer, self.path, self.durability, patience=patience)
        )
        self._owner_file = OwnerFile(self.path)
        self._opening = asyncio.Lock()
        self._checking_lock = asyncio.Lock()
        self._waiters = Waiters()
        self._timer: asyncio.TimerHandle | None = None
        self._polling = False
        self._data_version: int | None = None
        self._closed = False
        self._index = SearchIndex(
            self.path, self._write_index, commits=self._commits, patience=patience, read_only=read_only
        )

    async def __aenter__(self) -> SQLiteStore:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def open(self) -> None:
        """Open the file now, to learn now if that cannot be done."""
        await self._opened_reader()

    async def _opened(self) -> Writer:
        if self._writer is None or self._closed:
            if self._read_only:
                raise StoreError(f"{self.path} was opened for reading only")
            await self._opened_reader()
        assert self._writer is not None
        return self._writer

    async def _opened_reader(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreError(f"the store of {self.path} is closed")
        if self._reader is not None:
            return self._reader
        async with self._opening:
            if self._threads is None:
                self._threads = (
                    ThreadPoolExecutor(1, thread_name_prefix="antiphon-store-write"),
                    ThreadPoolExecutor(1, thread_name_prefix="antiphon-store-read"),
                )
            if self._reader is None:
                await self._open(*self._threads)
        assert self._reader is not None
        return self._reader

    async def _open(self, write: ThreadPoolExecutor, read: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        if self._read_only:
            self._reader = await loop.run_in_executor(read, self._open_read_only)
            return
        unpurged = await loop.run_in_executor(write, self._open_connections)
        assert self._connections is not None
        writer = self._writer = Writer(
            self._connections[0],
            str(self.path),
            write,
            self._checkpointer,
            in_place=self.durability is Durability.PROCESS,
            patience=self._patience,
        )
        for key in unpurged:
            await self._purge(writer, key)
        self._reader = self._connections[1]
        self._index.touch()

    def _open_read_only(self) -> sqlite3.Connection:
        """Run in the reader's thread."""
        with store_errors(self.path):
            return open_read_only(self.path, patience=self._patience)

    def _open_connections(self) -> tuple[int, ...]:
        """Run in the writer's thread. A caller that was cancelled may have opened them before."""
        with store_errors(self.path):
            if self._connections is None:
                writer = open_writer(self.path, self.durability, patience=self._patience)
                try:
                    self._connections = writer, open_reader(self.path, patience=self._patience)
                except BaseException:
                    writer.close()
                    raise
            return statements.deletions(self._connections[1], self._owner_file)

    async def _write(
        self, apply: Callable[[sqlite3.Connection, *Given], T], *given: *Given, size: int = 0
    ) -> T:
        return await self._do(Write(lambda connection: apply(connection, *given), size=size))

    async def _do(self, write: Write[T]) -> T:
        writer = self._writer
        if writer is None or self._closed:
            writer = await self._opened()
        self._index.touch()
        return await writer.do(write)

    async def _write_index(self, apply: Callable[[sqlite3.Connection], T], *, single: bool = False) -> T:
        writer = self._writer or await self._opened()
        return await writer.do(Write(apply, size=UNKNOWN_BYTES, single=single))

    def _commits(self) -> int:
        return 0 if self._writer is None else self._writer.commits

    async def _read(self, query: Callable[[sqlite3.Connection, *Given], T], *given: *Given) -> T:
        reader = await self._opened_reader()
        assert self._threads is not None
        with store_errors(self.path):
            return await asyncio.get_running_loop().run_in_executor(self._threads[1], query, reader, *given)

    async def create(self, record: SessionRecord, *, batch: Batch | None = None) -> None:
        events = b"" if batch is None else joined_events(batch)
        create = partial(statements.create, batch=batch, events=events)
        await self._write(create, record, size=len(events))

    async def append(self, session_id: str, batch: Batch, *, record: RecordPatch | None = None) -> None:
        await self._do(_append(session_id, batch, record))
        self._waiters.wake(session_id, batch.last)

    @property
    def free(self) -> bool:
        return self._writer is not None and self._writer.free

    def append_in_place(self, session_id: str, batch: Batch, *, record: RecordPatch | None = None) -> bool:
        if self._writer is None or self._closed:
            return False
        outcome = self._writer.do_in_place(_append(session_id, batch, record))
        if outcome is None:
            return False
        self._index.touch()
        if outcome[1] is not None:
            raise outcome[1]
        self._waiters.wake(session_id, batch.last)
        return True

    @asynccontextmanager
    async def arrival(self, record: SessionRecord) -> AsyncIterator[Arrival]:
        writer = await self._opened()
        do = partial(self._write, size=UNKNOWN_BYTES)
        async with arrival(do, partial(self._purge, writer), record, self._owner_file) as made:
            yield made

    async def update(self, session_id: str, record: RecordPatch) -> None:
        await self._write(statements.update, session_id, record)

    async def read(self, session_id: str, after: int, *, limit_bytes: int = PAGE_BYTES) -> Page:
        check_reading(after, limit_bytes)
        return await self._read(journal.read, str(self.path), session_id, after, limit_bytes)

    async def save_parts(self, session_id: str, upto: int, parts: Mapping[str, bytes | None]) -> None:
        size = sum([len(part) for part in parts.values() if part is not None])
        await self._write(statements.save_parts, session_id, upto, parts, size=size)

    async def load_parts(self, session_id: str, *, after: str = "", limit_bytes: int = PAGE_BYTES) -> Parts:
        check_reading(0, limit_bytes)
        return await self._read(statements.load_parts, session_id, after, limit_bytes)

    async def get(self, session_id: str) -> SessionRecord | None:
        record = await self._read(records.get, session_id)
        return None if record is None else self._with_fault(record)

    async def list(
        self, *, cwd: str | None = None, after: str | None = None, limit: int = LIST_LIMIT
    ) -> Listing:
        check_reading(0, limit)
        place = list_place(after) if after is not None else None
        listing = await self._read(records.list_sessions, cwd, place, limit)
        return Listing(tuple(map(self._with_fault, listing.records)), listing.next)

    def _with_fault(self, record: SessionRecord) -> SessionRecord:
        noted = self._faults.get(record.session_id)
        return record if noted is None or record.fault is not None else replace(record, fault=noted)

    async def drop_snapshot(self, session_id: str) -> None:
        await self._write(statements.drop_snapshot, session_id, size=UNKNOWN_BYTES)

    async def note_fault(self, session_id: str, fault: Fault | None) -> None:
        if fault is None:
            self._faults.pop(session_id, None)
        else:
            self._faults[session_id] = fault

    async def check(self, *, seconds: float) -> CheckReport:
        await self._opened_reader()
        async with self._checking_lock:
            checking = self._checking = DamageCheck(self.path, patience=self._patience)
            try:
                with store_errors(self.path):
                    report = await checking.run(seconds)
            finally:
                self._checking = None
        self._faults.update(report.faults)
        return report

    async def delete(self, session_id: str) -> bool:
        key = await self._write(statements.delete, session_id, self._owner_file, size=UNKNOWN_BYTES)
        self._waiters.fail(session_id, SessionUnknown(session_id))
        self._faults.pop(session_id, None)
        if key is not None:
            await self._purge(await self._opened(), key)
        return key is not None

    async def _purge(self, writer: Writer, key: int) -> None:
        """Remove what is left of a deleted session. A damaged file or a full disk may prevent that, which
        keeps no other session from being served: the next opening of the store tries again."""
        try:
            await self._index.forget(key)
            while not await writer.do(Write(partial(statements.purge, key=key), size=UNKNOWN_BYTES)):
                pass
        except StoreError as error:
            logger.warning("deleted session not removed from the file: key %d: %s", key, error)

    @property
    def can_search(self) -> bool:
        return has_fts5()

    async def search(
        self,
        query: str,
        *,
        sessions: Collection[str] | None = None,
        limit: int = MATCHES,
        after: str | None = None,
        seconds: float = SECONDS,
    ) -> Matches:
        await self._opened_reader()
        return await self._index.search(query, sessions=sessions, limit=limit, after=after, seconds=seconds)

    async def claim(self, session_id: str, owner: str) -> None:
        await self._write(statements.claim, session_id, owner, self._owner_file, size=UNKNOWN_BYTES)

    async def release(self, session_id: str, owner: str) -> None:
        await self._write(statements.release, session_id, owner, self._owner_file)

    async def grown(self, session_id: str, after: int) -> int:
        await self._opened_reader()
        # Register first, then look: events that are appended in between are not missed.
        waiting = self._waiters.add(session_id, after)
        try:
            last = await self._read(statements.last, session_id)
            if last > after:
                return last
            self._look_again()
            return await waiting
        finally:
            if not waiting.cancel() and not waiting.cancelled():
                waiting.exception()  # seen, also if it was something else that ended the wait

    def _look_again(self) -> None:
        """Look for what other processes wrote, as long as calls wait for it."""
        if self._timer is None and not self._polling and not self._closed and self._waiters.sessions:
            self._timer = asyncio.get_running_loop().call_later(self._poll_every, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._waiters.sessions and self._threads is not None and not self._closed:
            self._polling = True
            job = partial(self._news, tuple(self._waiters.sessions))
            future = asyncio.get_running_loop().run_in_executor(self._threads[1], job)
            future.add_done_callback(self._looked)

    def _news(self, session_ids: tuple[str, ...]) -> dict[str, int | None]:
        """Run in the reader's thread. A counter shows whether anything was committed at all."""
        reader = self._reader
        assert reader is not None
        (version,) = reader.execute("PRAGMA data_version").fetchone()
        if version == self._data_version:
            return {}
        found = statements.lasts(reader, session_ids)
        self._data_version = version
        return found

    def _looked(self, done: asyncio.Future[dict[str, int | None]]) -> None:
        self._polling = False
        error = done.exception()
        if isinstance(error, sqlite3.Error):
            self._fail_waiters(store_error(error, str(self.path)))
        elif error is not None:
            raise error
        else:
            for session_id, last in done.result().items():
                if last is None:
                    self._waiters.fail(session_id, SessionUnknown(session_id))
                else:
                    self._waiters.wake(session_id, last)
        self._look_again()

    def _fail_waiters(self, error: AntiphonError) -> None:
        for session_id in tuple(self._waiters.sessions):
            self._waiters.fail(session_id, error)

    async def aclose(self) -> None:
        if self._closed:
            return
        async with self._opening:
            self._closed = True
        if self._checking is not None:
            self._checking.stop()
        async with self._checking_lock:
            pass  # its connection is closed before the last one, which tidies up the log
        if self._timer is not None:
            self._timer.cancel()
        self._fail_waiters(StoreError(f"the store of {self.path} is closed"))
        await self._index.aclose()
        if self._writer is not None:
            if self._owner_file.locked:
                with suppress(StoreError):  # a claim without its owner file is void
                    await self._writer.do(Write(partial(statements.release_all, owner_file=self._owner_file)))
            await self._writer.aclose()
            await self._checkpointer.aclose()
        if self._threads is not None:
            loop = asyncio.get_running_loop()
            for thread, close in zip(
                self._threads[::-1], (self._close_reader, self._close_writer), strict=True
            ):
                await loop.run_in_executor(thread, close)
                thread.shutdown()

    def _close_reader(self) -> None:
        for reader in {self._reader, None if self._connections is None else self._connections[1]}:
            if reader is not None:
                reader.close()

    def _close_writer(self) -> None:
        if self._connections is not None:
            self._connections[0].close()
        self._owner_file.close()


def _append(session_id: str, batch: Batch, record: RecordPatch | None) -> Write[None]:
    events = joined_events(batch)
    return Write(
        lambda connection: statements.append(connection, session_id, batch, events, record),
        size=len(events),
        single=record is None,
    )
