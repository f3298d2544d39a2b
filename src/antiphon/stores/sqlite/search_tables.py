"""The tables of the search index in a SQLite store, as functions of a connection.

A migration makes the plain tables, and `ensure_words` the table of words, because a SQLite without FTS5 opens
the store as well. The index holds nothing that the journals do not: if it is damaged, it is made anew.

A text's place is made of its time, so the newest matches come first without sorting, and a search reads no
more than it returns.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from antiphon.errors import StoreError
from antiphon.stores.search.base import MOST_TEXT
from antiphon.stores.search.texts import TITLE, TextChange
from antiphon.stores.search.words import searchable
from antiphon.stores.sqlite.errors import damaged_schema, is_damage
from antiphon.stores.sqlite.records import LAST_OF_KEY
from antiphon.stores.sqlite.schema import SEARCH_TABLES

_WORDS = """
    CREATE VIRTUAL TABLE IF NOT EXISTS search_words USING fts5(
        text, content = 'search_texts', content_rowid = 'place', tokenize = 'unicode61 remove_diacritics 2'
    )
"""
PLACES = 1 << 16
"""How many texts of one second have places of their own; more take those of the seconds behind."""
MOST_SECONDS = 1 << 40
FORGET_TEXTS = 64
"""Texts of a deleted session that are removed in one transaction."""
MERGE_PAGES = 64
SECURE_DELETE = (3, 42)
"""The first SQLite whose FTS5 removes the words of a deleted text at once, if it is told to."""


@cache
def has_fts5() -> bool:
    connection = sqlite3.connect(":memory:")
    try:
        return bool(connection.execute("SELECT sqlite_compileoption_used('ENABLE_FTS5')").fetchone()[0])
    finally:
        connection.close()


def ensure_words(connection: sqlite3.Connection) -> None:
    """Make the table of words if it is missing."""
    if not has_fts5():
        raise StoreError("the SQLite of this Python has no FTS5, so sessions cannot be searched")
    if _has_words(connection):
        return
    connection.execute(_WORDS)
    connection.execute("DELETE FROM search_texts")
    connection.execute("DELETE FROM search_sessions")
    if sqlite3.sqlite_version_info >= SECURE_DELETE:
        connection.execute("INSERT INTO search_words (search_words, rank) VALUES ('secure-delete', 1)")


def _has_words(connection: sqlite3.Connection) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'search_words'").fetchone()
    return found is not None


class Pending(NamedTuple):
    """A session that has more than the index knows."""

    key: int
    upto: int
    last: int
    updated_at: int
    title: str | None
    indexed_title: str | None


_PENDING = f"""
    SELECT key, coalesce(upto, 0), {LAST_OF_KEY} AS last, sessions.updated_at, sessions.title,
        search_sessions.title
    FROM sessions LEFT JOIN search_sessions ON session = key
    WHERE last > coalesce(upto, 0) OR sessions.title IS NOT search_sessions.title
"""


def pending(connection: sqlite3.Connection, keys: list[int] | None) -> list[Pending]:
    """Return the sessions that are to be indexed, of these keys, those that changed last first."""
    only = None if keys is None else set(keys)
    rows = connection.execute(_PENDING)
    found = [
        Pending(*row)
        for row in rows
        if all(isinstance(number, int) for number in row[:4])
        and all(isinstance(title, str | None) for title in row[4:])
        and (only is None or row[0] in only)
    ]
    return sorted(found, key=lambda each: each.updated_at, reverse=True)


def orphans(connection: sqlite3.Connection) -> list[int]:
    """Return the keys of sessions that are gone without their texts: a program that cannot index deleted
    them."""
    rows = connection.execute(
        "SELECT session FROM search_sessions WHERE session NOT IN (SELECT key FROM sessions)"
    )
    return [key for (key,) in rows.fetchall()]


def keys_of(connection: sqlite3.Connection, session_ids: list[str]) -> list[int]:
    found = (
        connection.execute("SELECT key FROM sessions WHERE id = ?", (id,)).fetchone() for id in session_ids
    )
    return [row[0] for row in found if row is not None]


# --- writing -----------------------------------------------------------------------------------------


def apply(connection: sqlite3.Connection, of: Pending, upto: int, changes: Mapping[str, TextChange]) -> bool:
    """Index the changes of a session up to the event `upto`, and its title. Return `False`, and change
    nothing, if another process did that, or the session is gone."""
    known = connection.execute("SELECT upto FROM search_sessions WHERE session = ?", (of.key,)).fetchone()
    there = connection.execute("SELECT 1 FROM sessions WHERE key = ?", (of.key,)).fetchone()
    if there is None or (0 if known is None else known[0]) != of.upto:
        return False
    connection.execute(
        "INSERT INTO search_sessions VALUES (?1, ?2, ?3) "
        "ON CONFLICT (session) DO UPDATE SET upto = ?2, title = ?3",
        (of.key, upto, of.title),
    )
    if of.title != of.indexed_title:
        title = TextChange(TITLE, 0, of.updated_at, True, [of.title or ""])
        changes = {**changes, TITLE: title}
    # FTS5 writes a segment whenever a row is before the last one, so the rows are written in order.
    written = [row for change in changes.values() if (row := _change_text(connection, of.key, change))]
    for place, before, text in sorted(written):
        if before:
            _forget_words(connection, place, before)
        if text:
            connection.execute("INSERT INTO search_words (rowid, text) VALUES (?, ?)", (place, text))
    return True


def _change_text(connection: sqlite3.Connection, key: int, change: TextChange) -> tuple[int, str, str] | None:
    """Change a text; return its place, and the text before and now. `None` if nothing changes."""
    row = connection.execute(
        "SELECT place, text FROM search_texts WHERE session = ? AND item = ?", (key, change.item)
    ).fetchone()
    before = "" if row is None else row[1]
    room = MOST_TEXT if change.replaces else MOST_TEXT - len(before)
    text = ("" if change.replaces else before) + searchable(change.text[: max(0, room)])
    if text == before:
        return None
    if row is None:
        place = _free_place(connection, change.at)
        values = (place, key, change.item, change.seq, change.at, text)
        connection.execute("INSERT INTO search_texts VALUES (?, ?, ?, ?, ?, ?)", values)
        return place, "", text
    if text:
        connection.execute("UPDATE search_texts SET text = ? WHERE place = ?", (text, row[0]))
    else:
        connection.execute("DELETE FROM search_texts WHERE place = ?", (row[0],))
    return row[0], before, text


def _free_place(connection: sqlite3.Connection, at: int) -> int:
    start = min(max(at, 0) // 1000, MOST_SECONDS) * PLACES
    while True:
        (highest,) = connection.execute(
            "SELECT max(place) FROM search_texts WHERE place >= ? AND place < ?", (start, start + PLACES)
        ).fetchone()
        place: int = start if highest is None else highest + 1
        if place < start + PLACES:
            return place
        start += PLACES


def _forget_words(connection: sqlite3.Connection, place: int, text: str) -> None:
    connection.execute(
        "INSERT INTO search_words (search_words, rowid, text) VALUES ('delete', ?, ?)", (place, text)
    )


def forget(connection: sqlite3.Connection, key: int) -> tuple[int, bool]:
    """Remove a slice of a deleted session's texts; return how many, and whether all are gone."""
    if not has_fts5() or not _has_words(connection):
        return 0, True  # without FTS5 they are orphans, until a program that has it comes
    rows = connection.execute(
        "SELECT place, text FROM search_texts WHERE session = ? ORDER BY place LIMIT ?", (key, FORGET_TEXTS)
    ).fetchall()
    for place, text in rows:
        _forget_words(connection, place, text)
        connection.execute("DELETE FROM search_texts WHERE place = ?", (place,))
    if len(rows) == FORGET_TEXTS:
        return len(rows), False
    connection.execute("DELETE FROM search_sessions WHERE session = ?", (key,))
    return len(rows), True


def begin_merge(connection: sqlite3.Connection) -> bool:
    """Begin to remove the words of deleted texts. Return whether `merge` has to be called until it is
    done."""
    if sqlite3.sqlite_version_info >= SECURE_DELETE:
        return False
    return _merge(connection, -MERGE_PAGES)


def merge(connection: sqlite3.Connection) -> bool:
    """Go on with it; return whether there is more."""
    return _merge(connection, MERGE_PAGES)


def _merge(connection: sqlite3.Connection, pages: int) -> bool:
    before = connection.total_changes
    connection.execute("INSERT INTO search_words (search_words, rank) VALUES ('merge', ?)", (pages,))
    return connection.total_changes - before >= 2


# --- damage ------------------------------------------------------------------------------------------


def is_sound(connection: sqlite3.Connection) -> bool:
    """Whether the index can be read, and its words are those of its texts."""
    try:
        for table in ("search_texts", "search_sessions"):
            if connection.execute(f"PRAGMA quick_check({table})").fetchone() != ("ok",):
                return False
        connection.execute("INSERT INTO search_words (search_words, rank) VALUES ('integrity-check', 1)")
    except sqlite3.Error as error:
        if not is_damage(error) and not isinstance(error, sqlite3.OperationalError):
            raise
        return False
    return True


def make_anew(connection: sqlite3.Connection) -> None:
    """Replace the index by an empty one."""
    for table in ("search_words", "search_texts", "search_sessions"):
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    _make(connection)


def abandon(connection: sqlite3.Connection) -> None:
    """Replace the index by an empty one if its pages cannot be read, so they cannot be freed either: the file
    forgets the tables. This is the first statement of a transaction; one that met the damage cannot go on."""
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(r"DELETE FROM sqlite_schema WHERE tbl_name LIKE 'search\_%' ESCAPE '\'")
    connection.execute("PRAGMA writable_schema = RESET")
    _make(connection)


def _make(connection: sqlite3.Connection) -> None:
    for statement in SEARCH_TABLES.split(";"):
        connection.execute(statement)
    ensure_words(connection)


# --- reading -----------------------------------------------------------------------------------------


class Found(NamedTuple):
    place: int
    session_id: str
    title: str | None
    item: str
    seq: int
    at: int
    text: str


def find(
    connection: sqlite3.Connection, query: str, keys: list[int] | None, before: int | None
) -> sqlite3.Cursor:
    """Return the matches of a query in the syntax of FTS5, the newest first, as rows of `Found`.

    The place is NULL for words without a text, which a sound index does not have. The id is NULL for a
    session that is being deleted."""
    only, beyond = "", ""
    given: list[object] = [query]
    if before is not None:
        beyond = "AND search_words.rowid < ?"
        given.append(before)
    if keys is not None:
        only = f"AND session IN ({', '.join(map(str, keys))})"
    with damaged_schema():
        return connection.execute(
            f"""
            SELECT place, id, sessions.title, item, seq, at, search_texts.text
            FROM search_words LEFT JOIN search_texts ON place = search_words.rowid
                LEFT JOIN sessions ON key = session
            WHERE search_words MATCH ? {beyond} {only} ORDER BY search_words.rowid DESC
            """,
            given,
        )
