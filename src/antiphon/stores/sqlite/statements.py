"""The statements of a SQLite store, as functions of a connection.

A function that writes runs in a transaction with other writes, so it refuses before it writes, never after.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping

import msgspec

from antiphon.errors import SessionClaimed, SessionExists, SessionUnknown, StaleWriter, StoreCorrupt
from antiphon.stores.base import Batch, Parts, RecordPatch, SessionRecord
from antiphon.stores.sqlite.owner_file import OwnerFile
from antiphon.stores.sqlite.records import LAST_OF_KEY, is_row_of, key_of

PURGE_BATCHES = 64
_SNAPSHOT = "its snapshot cannot be read"
_INDEX = "the index of sessions is damaged"

# Compare and set in one statement: where the journal ends elsewhere, the session is NULL and the row ignored.
# (INSERT … SELECT would read the table it writes to, and copy every batch through a temporary one.)
_APPEND = f"""
    INSERT OR IGNORE INTO batches (session, first, last, events)
    VALUES ((SELECT key FROM sessions WHERE id = ?1 AND ?2 - 1 = {LAST_OF_KEY}), ?2, ?3, ?4)
"""
_LAST = f"SELECT key, {LAST_OF_KEY} FROM sessions WHERE id = ?"
_CLAIM = """
    SELECT key, owner, pid, presence FROM sessions LEFT JOIN claims ON claims.session = key WHERE key = ?
"""


def append(
    connection: sqlite3.Connection, session_id: str, batch: Batch, events: bytes, patch: RecordPatch | None
) -> None:
    if connection.execute(_APPEND, (session_id, batch.first, batch.last, events)).rowcount != 1:
        raise StaleWriter(session_id, expected=batch.first - 1, actual=last(connection, session_id))
    if patch is not None:
        update(connection, session_id, patch)


def create(
    connection: sqlite3.Connection,
    record: SessionRecord,
    *,
    key: int | None = None,
    batch: Batch | None = None,
    events: bytes = b"",
) -> None:
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
    made = connection.execute(insert, values)
    if made.rowcount != 1:
        raise SessionExists(f"session {record.session_id} is already there")
    if batch is not None:
        row = (made.lastrowid, batch.first, batch.last, events)
        connection.execute("INSERT INTO batches (session, first, last, events) VALUES (?, ?, ?, ?)", row)


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
    """Return where several journals end; `None` for an unknown session."""
    rows = {id: connection.execute(_LAST, (id,)).fetchone() for id in session_ids}
    return {id: None if row is None else row[1] for id, row in rows.items()}


def _key_and_last(connection: sqlite3.Connection, session_id: str) -> tuple[int, int]:
    row: tuple[int, int] | None = connection.execute(_LAST, (session_id,)).fetchone()
    if row is None:
        raise SessionUnknown(session_id)
    return row


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
        "WHERE key = ? ORDER BY name",
        (after, key_of(connection, session_id)),
    )
    page: dict[str, bytes] = {}
    upto, size = None, 0
    for upto, name, part in rows:
        if size >= limit_bytes:
            rows.close()  # a statement that is not read to its end would keep the file's old pages alive
            return Parts(upto, page, next(reversed(page)))
        if not _is_part(upto, name, part):
            rows.close()
            raise StoreCorrupt(f"the snapshot of session {session_id} is damaged", found=_SNAPSHOT)
        if name is not None:
            page[name] = part
            size += len(part)
    if upto is None:
        raise SessionUnknown(session_id)
    return Parts(upto, page, None)


def _is_part(upto: object, name: object, part: object) -> bool:
    if not isinstance(upto, int) or upto < 0:
        return False
    return name is None or (isinstance(name, str) and isinstance(part, bytes))


def drop_snapshot(connection: sqlite3.Connection, session_id: str) -> None:
    key = key_of(connection, session_id)
    connection.execute("UPDATE sessions SET snapshot = 0 WHERE key = ?", (key,))
    connection.execute("DELETE FROM parts WHERE session = ?", (key,))


def delete(connection: sqlite3.Connection, session_id: str, owner_file: OwnerFile) -> int | None:
    """Take a session away; its journal is still to be purged. Its key, if it was there."""
    try:
        key = key_of(connection, session_id)
    except SessionUnknown:
        return None
    if not is_row_of(connection, key, session_id):
        raise StoreCorrupt(f"session {session_id} is not deleted: the index names another one", found=_INDEX)
    found = connection.execute(_CLAIM, (key,)).fetchone()
    _, holder, pid, name = (key, "", 0, None) if found is None else found
    if name is not None and name != owner_file.name and owner_file.alive(name):
        raise SessionClaimed(session_id, owner=holder, pid=pid)
    row = (key,)
    connection.execute("INSERT INTO deletions (session) VALUES (?)", row)
    connection.execute("DELETE FROM sessions WHERE key = ?", row)
    connection.execute("DELETE FROM claims WHERE session = ?", row)
    connection.execute("DELETE FROM parts WHERE session = ?", row)
    return int(key)


def deletions(connection: sqlite3.Connection, owner_file: OwnerFile) -> tuple[int, ...]:
    """Return the keys of deleted sessions whose journals are not purged yet, and of partly imported ones."""
    rows = connection.execute(
        "SELECT deletions.session, presence FROM deletions LEFT JOIN claims USING (session)"
    ).fetchall()
    return tuple(key for key, name in rows if name is None or not owner_file.alive(name))


def purge(connection: sqlite3.Connection, key: int) -> bool:
    """Delete a slice of a deleted session's journal, so that other writes wait only briefly; return whether
    all is gone. Only damage can put the key of a listed session here, whose journal stays."""
    some = "SELECT rowid FROM batches WHERE session = ?1 AND ?1 NOT IN (SELECT key FROM sessions) LIMIT ?2"
    removed = connection.execute(f"DELETE FROM batches WHERE rowid IN ({some})", (key, PURGE_BATCHES))
    if removed.rowcount == PURGE_BATCHES:
        return False
    connection.execute("DELETE FROM deletions WHERE session = ?", (key,))
    connection.execute("DELETE FROM claims WHERE session = ?", (key,))
    return True


def claim(connection: sqlite3.Connection, session_id: str, owner: str, owner_file: OwnerFile) -> None:
    row = connection.execute(_CLAIM, (key_of(connection, session_id),)).fetchone()
    if row is None:
        raise SessionUnknown(session_id)
    key, holder, pid, name = row
    if name == owner_file.name and holder == owner:
        return
    if name is not None and (name == owner_file.name or owner_file.alive(name)):
        raise SessionClaimed(session_id, owner=holder, pid=pid)
    owner_file.lock()
    connection.execute(
        "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?)", (key, owner, os.getpid(), owner_file.name)
    )


def release(connection: sqlite3.Connection, session_id: str, owner: str, owner_file: OwnerFile) -> None:
    connection.execute(
        "DELETE FROM claims WHERE owner = ? AND presence = ? "
        "AND session = (SELECT key FROM sessions WHERE id = ?)",
        (owner, owner_file.name, session_id),
    )


def release_all(connection: sqlite3.Connection, owner_file: OwnerFile) -> None:
    connection.execute("DELETE FROM claims WHERE presence = ?", (owner_file.name,))


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
