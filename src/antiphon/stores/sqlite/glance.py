"""A glance into a SQLite store: the newest sessions in the file.

It waits for almost nothing, and creates and migrates nothing, so it is quick whatever other processes do
there.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from antiphon.stores.sqlite.errors import damaged_schema

WAIT = 0.2
"""Seconds to wait for a process that writes."""


class Glimpse(NamedTuple):
    session_id: str
    title: str | None
    cwd: str
    meta: dict[str, Any]


def glance(path: Path, *, limit: int = 200) -> list[Glimpse]:
    """Return the newest sessions of a file. Raises `sqlite3.Error` if it cannot be read."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=WAIT)) as connection:
        with damaged_schema():
            rows = connection.execute(
                "SELECT id, title, cwd, meta FROM sessions ORDER BY created_at DESC, id DESC LIMIT ?",
                (limit,),
            )
        return [_glimpse(*row) for row in rows]


def _glimpse(id: str, title: str | None, cwd: str, meta: str) -> Glimpse:
    """Read a row, also one whose `meta` is damaged."""
    try:
        return Glimpse(id, title, cwd, msgspec.json.decode(meta, type=dict[str, Any]))
    except (msgspec.MsgspecError, TypeError, RecursionError):
        return Glimpse(id, title, cwd, {})
