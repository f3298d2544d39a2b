"""Rows of the table of sessions as records. A damaged row gives the fields that can be read, and a fault.

A session whose id cannot be read is named by its key (`damaged-17`), so that it can be exported and deleted.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import msgspec

from antiphon.errors import SessionUnknown, StoreCorrupt
from antiphon.jsonrpc.frames import UNREADABLE
from antiphon.stores.base import HIGHEST, Fault, FaultKind, Listing, SessionRecord, list_cursor
from antiphon.stores.sqlite.errors import is_damage

T = TypeVar("T")

# The bound skips rows whose number is no number: SQLite sorts text and blobs after all numbers.
LAST_OF_KEY = f"coalesce((SELECT max(last) FROM batches WHERE session = key AND last <= {HIGHEST}), 0)"
_COLUMNS = (
    "id", "cwd", "additional_directories", "title", "created_at", "updated_at", "state", "meta"
)  # fmt: skip
_RECORD = f"SELECT key, {', '.join(_COLUMNS)}, {LAST_OF_KEY} FROM sessions"
_ODD_TIMES = f"(created_at > {HIGHEST} OR created_at IS NULL)"
ODD_LIMIT = 1000
"""How many sessions without a readable time are listed."""
_NAMED_BY_KEY = re.compile(r"damaged-([0-9]{1,18})\Z")
_BEHIND_ALL_TEXT = "\U0010ffff"


def decode_text(data: bytes) -> str | bytes:
    """Decode a text of the file; return damaged text as bytes, so that one value does not fail a whole
    query."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def key_of(connection: sqlite3.Connection, session_id: str) -> int:
    """Raises `SessionUnknown`."""
    key = _find(connection, session_id)
    if key is None:
        raise SessionUnknown(session_id)
    return key


def _find(connection: sqlite3.Connection, session_id: str) -> int | None:
    try:
        row = connection.execute("SELECT key FROM sessions WHERE id = ?", (session_id,)).fetchone()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        found = [key for key, known in _readable_keys(connection).items() if known.id == session_id]
        if not found:
            raise
        return found[0]
    if row is not None:
        return int(row[0])
    named = _NAMED_BY_KEY.match(session_id)
    if named is not None:
        row = connection.execute("SELECT id FROM sessions WHERE key = ?", (int(named[1]),)).fetchone()
        if row is not None and not _is_id(row[0]):
            return int(named[1])
    return None


def is_row_of(connection: sqlite3.Connection, key: int, session_id: str) -> bool:
    """Whether a row has this id or none that can be read: a damaged index may name another row."""
    row = connection.execute("SELECT id FROM sessions WHERE key = ?", (key,)).fetchone()
    return row is None or row[0] == session_id or not _is_id(row[0])


def get(connection: sqlite3.Connection, session_id: str) -> SessionRecord | None:
    key = _find(connection, session_id)
    if key is None:
        return None
    return _read_key(connection, key, lambda: _readable_keys(connection).get(key, _Known()))


def _read_key(connection: sqlite3.Connection, key: int, known: Callable[[], _Known]) -> SessionRecord | None:
    """Return the record of a row, or the fields of it that can be read."""
    try:
        row = connection.execute(f"{_RECORD} WHERE key = ?", (key,)).fetchone()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return _read_by_column(connection, key, known())
    return _read(row) if row is not None else None


def list_sessions(
    connection: sqlite3.Connection, cwd: str | None, place: tuple[int, str] | None, limit: int
) -> Listing:
    try:
        return _list(connection, cwd, place, limit)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    return _list_readable(connection, cwd, place, limit)


def _list(
    connection: sqlite3.Connection, cwd: str | None, place: tuple[int, str] | None, limit: int
) -> Listing:
    own = ("1", ()) if cwd is None else ("cwd = ?", (cwd,))
    beyond = (f"created_at <= {HIGHEST}", ()) if place is None else ("(created_at, id) < (?, ?)", place)
    rows = connection.execute(
        f"{_RECORD} WHERE {own[0]} AND {beyond[0]} ORDER BY created_at DESC, id DESC LIMIT ?",
        (*own[1], *beyond[1], limit + 1),
    ).fetchall()
    records = tuple(map(_read, rows[:limit]))
    after = None
    if len(rows) > limit:
        after = records[-1]
        if not _is_id(rows[limit - 1][1]):
            after = msgspec.structs.replace(after, session_id=_BEHIND_ALL_TEXT)
    if place is None:
        odd = connection.execute(f"{_RECORD} WHERE {own[0]} AND {_ODD_TIMES} LIMIT {ODD_LIMIT}", own[1])
        records = (*map(_read, odd.fetchall()), *records)
    return Listing(records, None if after is None else list_cursor(after))


def _list_readable(
    connection: sqlite3.Connection, cwd: str | None, place: tuple[int, str] | None, limit: int
) -> Listing:
    """List the sessions of a damaged table: every one of which anything can be found."""
    found: list[SessionRecord] = []
    for key, known in _readable_keys(connection).items():
        # mypy cannot infer the type of a lambda with a default; the default binds this turn of the loop.
        record = _read_key(connection, key, lambda known=known: known)  # type: ignore[misc]
        found.append(record or _read_by_column(connection, key, known))
    if not found:
        raise StoreCorrupt("the table of sessions cannot be read", found="the list of sessions is damaged")
    found.sort(key=_place, reverse=True)
    rest = [
        record for record in found if cwd in (None, record.cwd) and (place is None or _place(record) < place)
    ]
    records = tuple(rest[:limit])
    return Listing(records, list_cursor(records[-1]) if len(rest) > limit else None)


def _place(record: SessionRecord) -> tuple[int, str]:
    return record.created_at, record.session_id


class _Known(NamedTuple):
    """What the indexes have of a session, so that it keeps its place in the list without its row."""

    id: Any = None
    created_at: Any = None


def _readable_keys(connection: sqlite3.Connection) -> dict[int, _Known]:
    """Return the keys that the table and its indexes still have. Each is read up to its damage, from both
    ends."""
    by_creation = "created_at FROM sessions INDEXED BY sessions_by_creation ORDER BY created_at"
    by_key, by_id = "NULL FROM sessions NOT INDEXED ORDER BY key", "NULL FROM sessions ORDER BY id"
    found: dict[int, _Known] = {}
    for source in (by_creation, by_key, by_id):
        for order in ("ASC", "DESC"):
            for key, id, created_at in _until_damage(connection, f"SELECT key, id, {source} {order}"):
                if isinstance(key, int):
                    known = found.get(key, _Known())
                    found[key] = _Known(
                        known.id or (id if _is_id(id) else None), known.created_at or created_at
                    )
    return found


def _until_damage(connection: sqlite3.Connection, query: str) -> Iterable[Any]:
    with suppress(sqlite3.DatabaseError):
        yield from connection.execute(query)


def _read_by_column(connection: sqlite3.Connection, key: int, known: _Known) -> SessionRecord:
    """Return the record of a row that cannot be read as a whole."""

    def value(expression: str) -> Any:
        try:
            row = connection.execute(f"SELECT {expression} FROM sessions WHERE key = ?", (key,)).fetchone()
        except sqlite3.DatabaseError:
            return None
        return None if row is None else row[0]

    columns = {column: value(column) for column in _COLUMNS}
    for column, otherwise in known._asdict().items():
        columns[column] = otherwise if columns[column] is None else columns[column]
    record = _read((key, *columns.values(), value(LAST_OF_KEY)))
    if record.fault is None:
        return msgspec.structs.replace(record, fault=_fault(["the row"]))
    return record


class _Columns:
    """Reads the columns of one row, and notes which of them are damaged."""

    def __init__(self) -> None:
        self.damaged: list[str] = []

    def take(self, name: str, value: T, fits: Callable[[T], bool], otherwise: T) -> T:
        if fits(value):
            return value
        self.damaged.append(name)
        return otherwise

    def decode(self, name: str, value: Any, type: type[T], otherwise: T) -> T:
        try:
            return msgspec.json.decode(value, type=type)
        except (TypeError, *UNREADABLE):
            self.damaged.append(name)
            return otherwise


def _read(row: tuple[Any, ...]) -> SessionRecord:
    """Read a row. It raises nothing, so that one row does not fail a list."""
    key, id, cwd, directories, title, created_at, updated_at, state, meta, last = row
    read = _Columns()
    record = SessionRecord(
        session_id=read.take("id", id, _is_id, f"damaged-{key}"),
        cwd=read.take("cwd", cwd, _is_text, ""),
        additional_directories=read.decode(
            "additional_directories", directories, tuple[str, ...], tuple[str, ...]()
        ),
        title=read.take("title", title, lambda title: title is None or _is_text(title), None),
        created_at=int(read.take("created_at", created_at, _is_number, 0)),
        updated_at=int(read.take("updated_at", updated_at, _is_number, 0)),
        state=read.take("state", state, _is_text, "idle"),
        meta=read.decode("meta", meta, dict[str, Any], dict[str, Any]()),
        last=read.take("last", last, lambda last: isinstance(last, int) and last >= 0, 0),
    )
    if not read.damaged:
        return record
    return msgspec.structs.replace(record, fault=_fault(read.damaged))


def _fault(columns: Iterable[str]) -> Fault:
    found = f"its record cannot be read: {', '.join(columns)}"
    return Fault(FaultKind.DAMAGED, found, in_record=True)


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) <= HIGHEST
