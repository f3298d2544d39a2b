"""The write-ahead log beside a database: whether it belongs to it.

SQLite applies whatever log lies beside a file. The log of another file (of before a backup was restored, of a
folder that was copied in part) would replace pages of this one for good. The two are told apart by the keys
of sessions: a key is given out once and keeps its id, and the highest one given out never becomes less.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from antiphon.errors import StoreCorrupt
from antiphon.stores.sqlite_errors import is_damage
from antiphon.stores.sqlite_records import decode_text

HEADER_BYTES = 32
COMPARED = 1000
"""How many sessions are compared, the newest ones."""


class _Seen(NamedTuple):
    highest: int
    """The highest key that was ever given out."""
    ids: dict[int, object]


def check_log(path: Path, *, patience: float) -> None:
    """Raise `StoreCorrupt` where the log is not that of this file. Nothing is changed."""
    log = path.with_name(f"{path.name}-wal")
    try:
        if log.stat().st_size <= HEADER_BYTES:
            return
        empty = path.stat().st_size == 0
    except FileNotFoundError:
        return
    if empty:
        # SQLite would delete the log.
        found = f"{path.name} is empty, and its write-ahead log {log.name} is not"
        raise _refusal(path, f"{found}: put back the file that belongs to the log")
    alone = _look(path, "immutable=1", patience)
    if alone is None:
        return  # nothing to compare with
    logged = _look(path, "mode=ro", patience)
    found = f"its write-ahead log {log.name} is damaged, or belongs to another file"
    advice = "move the log away to open the file as it was without it"
    if logged is None:
        raise _refusal(path, f"{found}: {advice}")
    differ = any(key in logged.ids and logged.ids[key] != id for key, id in alone.ids.items())
    if differ or alone.highest > logged.highest:
        raise _refusal(path, f"{found}: {advice}")


def _refusal(path: Path, found: str) -> StoreCorrupt:
    return StoreCorrupt(f"{path} is not opened: {found}. Nothing was changed", found=found)


def _look(path: Path, mode: str, patience: float) -> _Seen | None:
    """The newest sessions of a file; None where it is too damaged to tell."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, timeout=patience)) as connection:
            connection.text_factory = decode_text
            made = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'sessions'").fetchone()
            if not made[0]:
                return _Seen(0, {})
            newest = "SELECT key, id FROM sessions ORDER BY key DESC LIMIT ?"
            ids = dict(connection.execute(newest, (COMPARED,)).fetchall())
            row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'sessions'").fetchone()
            highest = row[0] if row is not None and isinstance(row[0], int) else 0
            return _Seen(highest, ids)
    except sqlite3.Error as error:
        if is_damage(error):
            return None
        raise
