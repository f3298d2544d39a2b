"""What a SQLite store does to its tables, as plain functions of a connection.

A function that writes runs in a transaction which is not its own and may hold other writes: it refuses before
it writes, never after.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from antiphon.errors import SessionClaimed, SessionExists, SessionUnknown, StaleWriter
from antiphon.stores.base import Batch, Listing, Parts, RecordPatch, SessionRecord, list_cursor
from antiphon.stores.sqlite_presence import Presence

PURGE_BATCHES = 64

_LAST_OF_KEY = "coalesce((SELECT max(last) FROM batches WHERE session = key), 0)"
# Compare and set in one statement: where the journal ends elsewhere, the session is NULL and the row ignored.
# (INSERT … SELECT would read the table it writes to, and copy every batch through a temporary one.)
_APPEND = f"""
    INSERT OR IGNORE INTO batches (session, first, last, events)
    VALUES ((SELECT key FROM sessions WHERE id = ?1 AND ?2 - 1 = {_LAST_OF_KEY}), ?2, ?3, ?4)
"""
_RECORD = f"""
    SELECT id, cwd, additional_directories, title, created_at, updated_at, state, meta, {_LAST_OF_KEY}
    FROM sessions
"""
_LAST = f"SELECT key, {_LAST_OF_KEY} FROM sessions WHERE id = ?"
_CLAIM = """
    SELECT key, owner, pid, presence FROM sessions LEFT JOIN claims ON claims.session = key WHERE id = ?
"""


def append(
    connection: sqlite3.Connection, session_id: str, batch: Batch, events: bytes, patch: RecordPatch | None
) -> None:
    if connection.execute(_APPEND, (session_id, batch.first, batch.last, events)).rowcount != 1:
        raise StaleWriter(session_id, expected=batch.first - 1, actual=last(connection, session_id))
    if patch is not None:
        update(connection, session_id, patch)


def create(connection: sqlite3.Connection, record: SessionRecord, *, key: int | None = None) -> None:
    values = (
        key,
        record.session_id,
        record.cwd,
        _json(record.additional_directories),
        record.title,
        record.created_at,
        record.updated_at,
        record.state,
        _json(record.meta),
    )
    insert = (
        "INSERT INTO sessions "
        "(key, id, cwd, additional_directories, title, created_at, updated_at, state, meta) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
    )
    if connection.execute(insert, values).rowcount != 1:
        raise SessionExists(f"session {record.session_id} is already there")


def update(connection: sqlite3.Connection, session_id: str, patch: RecordPatch) -> None:
    changes = patch.changes()
    for name in changes.keys() & {"additional_directories", "meta"}:
        changes[name] = _json(changes[name])
    columns = ", ".join(f"{name} = ?" for name in changes) or "id = id"
    updated = connection.execute(
        f"UPDATE sessions SET {columns} WHERE id = ?", (*changes.values(), session_id)
    )
    if updated.rowcount != 1:
        raise SessionUnknown(session_id)


def last(connection: sqlite3.Connection, session_id: str) -> int:
    return _key_and_last(connection, session_id)[1]


def lasts(connection: sqlite3.Connection, session_ids: Iterable[str]) -> dict[str, int | None]:
    """Where several journals end; None for a session that is not there."""
    found = {}
    for session_id in session_ids:
        row = connection.execute(_LAST, (session_id,)).fetchone()
        found[session_id] = row[1] if row is not None else None
    return found


def _key_and_last(connection: sqlite3.Connection, session_id: str) -> tuple[int, int]:
    row: tuple[int, int] | None = connection.execute(_LAST, (session_id,)).fetchone()
    if row is None:
        raise SessionUnknown(session_id)
    return row


def key_of(connection: sqlite3.Connection, session_id: str) -> int:
    row = connection.execute("SELECT key FROM sessions WHERE id = ?", (session_id,)).fetchone()
    if row is None:
        raise SessionUnknown(session_id)
    return int(row[0])


def save_parts(
    connection: sqlite3.Connection, session_id: str, upto: int, parts: Mapping[str, bytes | None]
) -> None:
    key, end = _key_and_last(connection, session_id)
    (kept,) = connection.execute("SELECT snapshot FROM sessions WHERE key = ?", (key,)).fetchone()
    if upto < kept:
        raise StaleWriter(session_id, expected=upto, actual=kept)
    if upto > end:
        raise ValueError(f"a snapshot up to {upto} of a journal that ends at {end}")
    connection.execute("UPDATE sessions SET snapshot = ? WHERE key = ?", (upto, key))
    connection.executemany(
        "INSERT INTO parts (session, name, part) VALUES (?, ?, ?) "
        "ON CONFLICT (session, name) DO UPDATE SET part = excluded.part",
        [(key, name, part) for name, part in parts.items() if part is not None],
    )
    connection.executemany(
        "DELETE FROM parts WHERE session = ? AND name = ?",
        [(key, name) for name, part in parts.items() if part is None],
    )


def load_parts(connection: sqlite3.Connection, session_id: str, after: str, limit_bytes: int) -> Parts:
    # One statement, so that the cursor and the parts are of one moment.
    rows = connection.execute(
        "SELECT snapshot, name, part FROM sessions LEFT JOIN parts ON session = key AND name > ? "
        "WHERE id = ? ORDER BY name",
        (after, session_id),
    )
    page: dict[str, bytes] = {}
    upto, size = None, 0
    for upto, name, part in rows:
        if size >= limit_bytes:
            rows.close()  # a statement that is not read to its end would keep the file's old pages alive
            return Parts(upto, page, next(reversed(page)))
        if name is not None:
            page[name] = part
            size += len(part)
    if upto is None:
        raise SessionUnknown(session_id)
    return Parts(upto, page, None)


def get(connection: sqlite3.Connection, session_id: str) -> SessionRecord | None:
    row = connection.execute(_RECORD + "WHERE id = ?", (session_id,)).fetchone()
    return _record(row) if row is not None else None


def list_sessions(
    connection: sqlite3.Connection, cwd: str | None, place: tuple[int, str] | None, limit: int
) -> Listing:
    conditions, values = ["1"], list[Any]()
    if cwd is not None:
        conditions.append("cwd = ?")
        values.append(cwd)
    if place is not None:
        conditions.append("(created_at, id) < (?, ?)")
        values += place
    rows = connection.execute(
        f"{_RECORD} WHERE {' AND '.join(conditions)} ORDER BY created_at DESC, id DESC LIMIT ?",
        (*values, limit + 1),
    ).fetchall()
    records = tuple(map(_record, rows[:limit]))
    return Listing(records, list_cursor(records[-1]) if len(rows) > limit else None)


def delete(connection: sqlite3.Connection, session_id: str, presence: Presence) -> int | None:
    """Take a session away; its journal is still to be purged. Its key, if it was there."""
    found = connection.execute(_CLAIM, (session_id,)).fetchone()
    if found is None:
        return None
    key, holder, pid, name = found
    if name is not None and name != presence.name and presence.alive(name):
        raise SessionClaimed(session_id, owner=holder, pid=pid)
    row = (key,)
    connection.execute("INSERT INTO deletions (session) VALUES (?)", row)
    connection.execute("DELETE FROM sessions WHERE key = ?", row)
    connection.execute("DELETE FROM claims WHERE session = ?", row)
    connection.execute("DELETE FROM parts WHERE session = ?", row)
    return int(key)


def deletions(connection: sqlite3.Connection, presence: Presence) -> tuple[int, ...]:
    """The keys of deleted sessions whose journals are not all purged, and of those that arrived in part."""
    rows = connection.execute(
        "SELECT deletions.session, presence FROM deletions LEFT JOIN claims USING (session)"
    ).fetchall()
    return tuple(key for key, name in rows if name is None or not presence.alive(name))


def purge(connection: sqlite3.Connection, key: int) -> bool:
    """Remove some of a deleted session's journal, so that nobody waits for long; whether all is gone."""
    some = "SELECT rowid FROM batches WHERE session = ? LIMIT ?"
    removed = connection.execute(f"DELETE FROM batches WHERE rowid IN ({some})", (key, PURGE_BATCHES))
    if removed.rowcount == PURGE_BATCHES:
        return False
    connection.execute("DELETE FROM deletions WHERE session = ?", (key,))
    connection.execute("DELETE FROM claims WHERE session = ?", (key,))
    return True


def claim(connection: sqlite3.Connection, session_id: str, owner: str, presence: Presence) -> None:
    row = connection.execute(_CLAIM, (session_id,)).fetchone()
    if row is None:
        raise SessionUnknown(session_id)
    key, holder, pid, name = row
    if name == presence.name and holder == owner:
        return
    if name is not None and (name == presence.name or presence.alive(name)):
        raise SessionClaimed(session_id, owner=holder, pid=pid)
    presence.show()
    connection.execute(
        "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?)", (key, owner, os.getpid(), presence.name)
    )


def release(connection: sqlite3.Connection, session_id: str, owner: str, presence: Presence) -> None:
    connection.execute(
        "DELETE FROM claims WHERE owner = ? AND presence = ? "
        "AND session = (SELECT key FROM sessions WHERE id = ?)",
        (owner, presence.name, session_id),
    )


def release_all(connection: sqlite3.Connection, presence: Presence) -> None:
    connection.execute("DELETE FROM claims WHERE presence = ?", (presence.name,))


def _record(row: tuple[Any, ...]) -> SessionRecord:
    session_id, cwd, directories, title, created_at, updated_at, state, meta, end = row
    return SessionRecord(
        session_id=session_id,
        cwd=cwd,
        additional_directories=msgspec.json.decode(directories, type=tuple[str, ...]),
        title=title,
        created_at=created_at,
        updated_at=updated_at,
        state=state,
        last=end,
        meta=msgspec.json.decode(meta, type=dict[str, Any]),
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
