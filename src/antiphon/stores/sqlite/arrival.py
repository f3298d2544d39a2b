"""A session that is imported into a SQLite store: its journal is written first, its row last.

Until then its key is in the table of deletions, held by a claim. So it is not listed, and a process that
opens the store leaves it alone while the importing process lives, and removes its rest afterwards.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from antiphon.errors import SessionExists, StaleWriter, StoreError
from antiphon.stores.base import Batch, SessionRecord, joined_events
from antiphon.stores.sqlite import statements
from antiphon.stores.sqlite.owner_file import OwnerFile
from antiphon.stores.sqlite.records import get

OWNER = "an import"

Do = Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]]
"""Commits a write, in the writer's thread."""
Purge = Callable[[int], Awaitable[None]]


class SQLiteArrival:
    def __init__(self, do: Do, record: SessionRecord, key: int, owner_file: OwnerFile) -> None:
        self._do = do
        self._record = record
        self._key = key
        self._owner_file = owner_file
        self._whole = [self]
        self.finished = False

    @property
    def keys(self) -> list[int]:
        return [each._key for each in self._whole]

    async def append(self, batch: Batch) -> None:
        events = joined_events(batch)
        await self._do(
            partial(append, key=self._key, owner_file=self._owner_file, batch=batch, events=events)
        )

    async def beside(self, record: SessionRecord) -> SQLiteArrival:
        key = await self._do(partial(begin, owner_file=self._owner_file))
        other = SQLiteArrival(self._do, record, key, self._owner_file)
        self._whole.append(other)
        return other

    async def finish(self) -> None:
        arrived = {each._key: each._record for each in self._whole}
        await self._do(partial(finish, owner_file=self._owner_file, arrived=arrived))
        self.finished = True


@asynccontextmanager
async def arrival(
    do: Do, purge: Purge, record: SessionRecord, owner_file: OwnerFile
) -> AsyncIterator[SQLiteArrival]:
    key = await do(partial(begin, owner_file=owner_file))
    made = SQLiteArrival(do, record, key, owner_file)
    try:
        yield made
    finally:
        if not made.finished:
            for key in made.keys:
                await purge(key)


def begin(connection: sqlite3.Connection, owner_file: OwnerFile) -> int:
    """Return a key for a session that is not visible."""
    owner_file.lock()
    made = connection.execute(  # a key is never used twice, so it is taken from the table of sessions
        "INSERT INTO sessions (id, cwd, additional_directories, created_at, updated_at, state, meta) "
        "VALUES (?, '', '', 0, 0, '', '')",
        (f"arriving {owner_file.name}",),
    )
    key = made.lastrowid
    connection.execute("DELETE FROM sessions WHERE key = ?", (key,))
    connection.execute("INSERT INTO deletions (session) VALUES (?)", (key,))
    connection.execute("INSERT INTO claims VALUES (?, ?, ?, ?)", (key, OWNER, os.getpid(), owner_file.name))
    assert key is not None
    return key


def append(
    connection: sqlite3.Connection, key: int, owner_file: OwnerFile, batch: Batch, events: bytes
) -> None:
    _check_held(connection, key, owner_file)
    (end,) = connection.execute("SELECT max(last) FROM batches WHERE session = ?", (key,)).fetchone()
    if batch.first != (end or 0) + 1:
        raise StaleWriter("(being imported)", expected=batch.first - 1, actual=end or 0)
    connection.execute("INSERT INTO batches VALUES (?, ?, ?, ?)", (key, batch.first, batch.last, events))


def finish(
    connection: sqlite3.Connection, owner_file: OwnerFile, arrived: Mapping[int, SessionRecord]
) -> None:
    for key, record in arrived.items():
        _check_held(connection, key, owner_file)
        if get(connection, record.session_id) is not None:
            raise SessionExists(f"session {record.session_id} is already there")
    for key, record in arrived.items():
        statements.create(connection, record, key=key)
        connection.execute("DELETE FROM deletions WHERE session = ?", (key,))
        connection.execute("DELETE FROM claims WHERE session = ?", (key,))


def _check_held(connection: sqlite3.Connection, key: int, owner_file: OwnerFile) -> None:
    held = connection.execute(
        "SELECT 1 FROM deletions JOIN claims USING (session) WHERE session = ? AND presence = ?",
        (key, owner_file.name),
    ).fetchone()
    if held is None:
        raise StoreError("another process removed the partly imported session")
