"""A session on its way into a SQLite store: its journal comes first, its row last.

Until then its key stands among the deletions, held by a claim: nobody lists it, and whoever opens the store
leaves it alone while the process that brings it lives, and removes what is left of it afterwards.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from antiphon.errors import SessionExists, StaleWriter, StoreError
from antiphon.stores import sqlite_statements as statements
from antiphon.stores.base import Batch, SessionRecord, joined_events
from antiphon.stores.sqlite_presence import Presence
from antiphon.stores.sqlite_records import get

OWNER = "an import"

Do = Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]]
"""Commits a write, in the writer's thread."""
Purge = Callable[[int], Awaitable[None]]


class SQLiteArrival:
    def __init__(self, do: Do, record: SessionRecord, key: int, presence: Presence) -> None:
        self._do = do
        self._record = record
        self._key = key
        self._presence = presence
        self._whole = [self]
        self.finished = False

    @property
    def keys(self) -> list[int]:
        return [each._key for each in self._whole]

    async def append(self, batch: Batch) -> None:
        events = joined_events(batch)
        await self._do(partial(append, key=self._key, presence=self._presence, batch=batch, events=events))

    async def beside(self, record: SessionRecord) -> SQLiteArrival:
        key = await self._do(partial(begin, presence=self._presence))
        other = SQLiteArrival(self._do, record, key, self._presence)
        self._whole.append(other)
        return other

    async def finish(self) -> None:
        arrived = {each._key: each._record for each in self._whole}
        await self._do(partial(finish, presence=self._presence, arrived=arrived))
        self.finished = True


@asynccontextmanager
async def arrival(
    do: Do, purge: Purge, record: SessionRecord, presence: Presence
) -> AsyncIterator[SQLiteArrival]:
    key = await do(partial(begin, presence=presence))
    made = SQLiteArrival(do, record, key, presence)
    try:
        yield made
    finally:
        if not made.finished:
            for key in made.keys:
                with suppress(StoreError):  # else with the next opening of the store
                    await purge(key)


def begin(connection: sqlite3.Connection, presence: Presence) -> int:
    """A key for a session that nobody sees."""
    presence.show()
    made = connection.execute(  # a key is never given out twice, so it is taken from the table of sessions
        "INSERT INTO sessions (id, cwd, additional_directories, created_at, updated_at, state, meta) "
        "VALUES (?, '', '', 0, 0, '', '')",
        (f"arriving {presence.name}",),
    )
    key = made.lastrowid
    connection.execute("DELETE FROM sessions WHERE key = ?", (key,))
    connection.execute("INSERT INTO deletions (session) VALUES (?)", (key,))
    connection.execute("INSERT INTO claims VALUES (?, ?, ?, ?)", (key, OWNER, os.getpid(), presence.name))
    assert key is not None
    return key


def append(connection: sqlite3.Connection, key: int, presence: Presence, batch: Batch, events: bytes) -> None:
    _check_held(connection, key, presence)
    (end,) = connection.execute("SELECT max(last) FROM batches WHERE session = ?", (key,)).fetchone()
    if batch.first != (end or 0) + 1:
        raise StaleWriter("on its way here", expected=batch.first - 1, actual=end or 0)
    connection.execute("INSERT INTO batches VALUES (?, ?, ?, ?)", (key, batch.first, batch.last, events))


def finish(connection: sqlite3.Connection, presence: Presence, arrived: Mapping[int, SessionRecord]) -> None:
    for key, record in arrived.items():
        _check_held(connection, key, presence)
        if get(connection, record.session_id) is not None:
            raise SessionExists(f"session {record.session_id} is already there")
    for key, record in arrived.items():
        statements.create(connection, record, key=key)
        connection.execute("DELETE FROM deletions WHERE session = ?", (key,))
        connection.execute("DELETE FROM claims WHERE session = ?", (key,))


def _check_held(connection: sqlite3.Connection, key: int, presence: Presence) -> None:
    held = connection.execute(
        "SELECT 1 FROM deletions JOIN claims USING (session) WHERE session = ? AND presence = ?",
        (key, presence.name),
    ).fetchone()
    if held is None:
        raise StoreError("another process took away what had come of the session")
