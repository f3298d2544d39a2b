"""Reading a journal out of its table, also one that is damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from antiphon.errors import StoreCorrupt
from antiphon.stores.base import Batch, Page
from antiphon.stores.sqlite_errors import is_damage
from antiphon.stores.sqlite_statements import key_of, last

_AFTER = "SELECT first, last, events FROM batches WHERE session = ? AND last > ? ORDER BY last"
_END_AFTER = "SELECT min(last) FROM batches WHERE session = ? AND last > ?"


def read(connection: sqlite3.Connection, path: str, session_id: str, after: int, limit_bytes: int) -> Page:
    """A page after a cursor. Up to a damage all is returned; at the damage it is raised."""
    key = key_of(connection, session_id)
    batches: list[Batch] = []
    cursor, size = after, 0
    damage: tuple[str, int | None] | None = None
    try:
        for first, end, blob in _rows(connection, key, after):
            damage = _fault(first, end, blob, cursor, whole=not batches)
            if damage is not None:
                break
            batches.append(Batch(first, tuple(blob.split(b"\n"))).after(cursor))
            cursor = end
            size += len(blob)
            if size >= limit_bytes:
                break
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        damage = f"event {cursor + 1}: {error}", _end_after(connection, key, cursor)
    if damage is None:
        return Page(tuple(batches), cursor, max(cursor, last(connection, session_id)))
    if batches:
        # The page says that there is more: reading on then tells what.
        return Page(tuple(batches), cursor, cursor + 1)
    what, resume = damage
    raise StoreCorrupt(f"{path} is damaged in session {session_id}: {what}", resume=resume)


def _fault(first: int, end: int, blob: object, cursor: int, *, whole: bool) -> tuple[str, int | None] | None:
    """What is wrong with a row that should go on after `cursor`, and where reading goes on behind it.

    Only the first row of a page may begin before the cursor.
    """
    if first > cursor + 1:
        return f"events {cursor + 1} to {first - 1} are missing", first - 1
    if not isinstance(blob, bytes) or blob.count(b"\n") != end - first or first < 1:
        return f"the batch of events {first} to {end} is torn", end
    if first <= cursor and not whole:
        return f"event {first} is there twice", end
    return None


def _rows(connection: sqlite3.Connection, key: int, after: int) -> Iterator[tuple[int, int, bytes]]:
    """The rows after a cursor, up to one that cannot be read."""
    rows = connection.cursor()
    try:
        for row in rows.execute(_AFTER, (key, after)):
            yield row
            after = row[1]
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        # The module reads one row ahead and drops the good one before the damage: one by one from here.
        while row := rows.execute(f"{_AFTER} LIMIT 1", (key, after)).fetchone():
            yield row
            after = row[1]
    finally:
        rows.close()


def _end_after(connection: sqlite3.Connection, key: int, cursor: int) -> int | None:
    """The end of the batch after `cursor`, from the index alone: its row cannot be read."""
    try:
        (end,) = connection.execute(_END_AFTER, (key, cursor)).fetchone()
    except sqlite3.DatabaseError:
        return None
    return int(end) if end is not None else None
