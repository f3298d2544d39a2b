"""Reading journals from their table, also damaged ones."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from typing import Any

import msgspec

from antiphon.errors import StoreCorrupt
from antiphon.jsonrpc.frames import UNREADABLE
from antiphon.stores.base import Batch, Page
from antiphon.stores.sqlite.errors import is_damage
from antiphon.stores.sqlite.records import LAST_OF_KEY, key_of

_AFTER = "SELECT first, last, events FROM batches WHERE session = ? AND last > ? ORDER BY last"
_lines = msgspec.json.Decoder(list[msgspec.Raw])
JSON_BYTES = 1 << 20
"""Batches up to this size are checked to be JSON."""
_END_AFTER = "SELECT min(last) FROM batches WHERE session = ? AND last > ?"


def read(connection: sqlite3.Connection, path: str, session_id: str, after: int, limit_bytes: int) -> Page:
    """Read a page after a cursor. Everything before a damage is returned; reading on at the damage raises
    it."""
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
        return Page(tuple(batches), cursor, max(cursor, _last(connection, key, cursor + len(batches[:1]))))
    if batches:
        # The page announces more, and reading on raises the damage.
        return Page(tuple(batches), cursor, cursor + 1)
    what, resume = damage
    raise StoreCorrupt(f"{path} is damaged in session {session_id}: {what}", found=what, resume=resume)


def fault_in(connection: sqlite3.Connection, key: int) -> str | None:
    """Return the first fault of a journal without decoding its events; `None` if there is none."""
    cursor = 0
    try:
        for first, end, blob in _rows(connection, key, 0):
            damage = _fault(first, end, blob, cursor, whole=False)
            if damage is not None:
                return damage[0]
            if not _is_json(blob):
                return f"the batch of events {first} to {end} is no JSON"
            cursor = end
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return f"event {cursor + 1}: {error}"
    return None if cursor else "it has no events"


def _fault(first: Any, end: Any, blob: object, cursor: int, *, whole: bool) -> tuple[str, int | None] | None:
    """Return what is wrong with a row that should follow `cursor`, and where reading resumes after it.

    Only the first row of a page may begin before the cursor.
    """
    if not (isinstance(first, int) and isinstance(end, int)):
        return f"the batch after event {cursor} has no valid numbers", _number_after(end)
    if first > cursor + 1:
        return f"events {cursor + 1} to {first - 1} are missing", first - 1
    if not isinstance(blob, bytes) or blob.count(b"\n") != end - first or first < 1:
        return f"the batch of events {first} to {end} is torn", end
    if first <= cursor and not whole:
        return f"event {first} is there twice", end
    return None


def _is_json(blob: bytes) -> bool:
    """Whether every line of a batch is a JSON value. Large ones are not looked at: that would hold the
    interpreter for long, and reading them finds it."""
    if len(blob) > JSON_BYTES:
        return True
    try:
        blob.decode()  # a `Raw` is not checked for it
        _lines.decode(b"[%b]" % blob.replace(b"\n", b","))
    except UNREADABLE:
        return False
    return True


def _rows(connection: sqlite3.Connection, key: int, after: int) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the rows after a cursor, up to one that cannot be read."""
    rows = connection.cursor()
    try:
        for row in rows.execute(_AFTER, (key, after)):
            yield row
            after = row[1] if isinstance(row[1], int) else after
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        # The module reads one row ahead and drops the good one before the damage: one by one from here.
        while row := rows.execute(f"{_AFTER} LIMIT 1", (key, after)).fetchone():
            yield row
            if not isinstance(row[1], int):
                return
            after = row[1]
    finally:
        rows.close()


def _end_after(connection: sqlite3.Connection, key: int, cursor: int) -> int | None:
    """Return the end of the batch after `cursor` from the index alone, because its row cannot be read."""
    try:
        (end,) = connection.execute(_END_AFTER, (key, cursor)).fetchone()
    except sqlite3.DatabaseError:
        return None
    return end if isinstance(end, int) else None


def _number_after(end: object) -> int | None:
    """Return where reading resumes after a row with damaged numbers. Text and blobs sort after all
    numbers."""
    return math.ceil(end) if isinstance(end, int | float) and abs(end) < 2**62 else None


def _last(connection: sqlite3.Connection, key: int, otherwise: int) -> int:
    """Return the number of the last event, as far as it can be read."""
    try:
        row = connection.execute(f"SELECT {LAST_OF_KEY} FROM sessions WHERE key = ?", (key,)).fetchone()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return otherwise
    return row[0] if row is not None and isinstance(row[0], int) else 0
