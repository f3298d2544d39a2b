"""The tables of a SQLite store, how older ones become these, and how a connection to them is opened."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from antiphon.errors import StoreCorrupt, StoreError, StoreTooNew
from antiphon.private_files import open_private, tighten_file
from antiphon.stores.sqlite.errors import damaged_schema, is_busy, is_damage
from antiphon.stores.sqlite.records import decode_text

logger = logging.getLogger("antiphon.stores")

JUST_NOW = 60.0
"""Seconds within which another process may be about to fill an empty file."""
APPLICATION_ID = 0x414E5450  # "ANTP": distinguishes our files from those of other programs


class Durability(StrEnum):
    """What a committed batch survives."""

    PROCESS = "process"
    """The end of the process, kill -9 included. A loss of power may take the last moments, never the file."""

    POWER = "power"
    """A loss of power as well: every commit waits for the disk."""


# In WAL mode a commit is in the operating system's hands before it returns, whatever `synchronous` says: that
# is what survives kill -9. NORMAL syncs at checkpoints only, which keeps the file whole through a power cut;
# OFF would save those few syncs and risk the file.
_SYNCHRONOUS = {Durability.PROCESS: "NORMAL", Durability.POWER: "FULL"}

SEARCH_TABLES = """
    CREATE TABLE search_texts (
        place INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        item TEXT NOT NULL,
        seq INTEGER NOT NULL,
        at INTEGER NOT NULL,
        text TEXT NOT NULL
    );
    CREATE UNIQUE INDEX search_texts_by_item ON search_texts (session, item);
    CREATE TABLE search_sessions (session INTEGER PRIMARY KEY, upto INTEGER NOT NULL, title TEXT);
"""
"""The texts that are searched, and up to which event each session is indexed. The table of their words is
made by the search (`search_tables`): a SQLite without FTS5 opens the store as well."""

MIGRATIONS: tuple[str, ...] = (
    # A session's key is never used again, so what is left of a deleted session can be removed later, in
    # slices (`deletions`). A batch is one row, its events joined by newlines: one row per event takes three
    # times as long. It is found by its last number: the newest batch and the one after a cursor are then each
    # one seek away. Rows lie in the order of arrival; laid out by session, an append touches one tree instead
    # of two, but the trees of many sessions writing at once are rebuilt all the time (half the speed).
    """
    CREATE TABLE sessions (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        cwd TEXT NOT NULL,
        additional_directories TEXT NOT NULL,
        title TEXT,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        state TEXT NOT NULL,
        meta TEXT NOT NULL,
        snapshot INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX sessions_by_creation ON sessions (created_at, id);
    CREATE TABLE batches (
        session INTEGER NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        events BLOB NOT NULL,
        PRIMARY KEY (session, last)
    );
    CREATE TABLE parts (
        session INTEGER NOT NULL,
        name TEXT NOT NULL,
        part BLOB NOT NULL,
        PRIMARY KEY (session, name)
    );
    CREATE TABLE claims (
        session INTEGER PRIMARY KEY,
        owner TEXT NOT NULL,
        pid INTEGER NOT NULL,
        presence TEXT NOT NULL
    );
    CREATE TABLE deletions (session INTEGER PRIMARY KEY);
    """,
    SEARCH_TABLES,
)


def create_file(path: Path) -> None:
    """Create the file, and its directory if that is missing, readable for this user only; restrict an
    existing one. SQLite gives the files it adds (-wal, -shm) the permissions of the database."""
    if path.exists():
        for ending in ("", "-wal", "-shm"):
            tighten_file(path.with_name(path.name + ending))
        _warn_of_empty(path)
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.close(open_private(path, os.O_CREAT | os.O_EXCL | os.O_RDWR))
    except FileExistsError:
        return  # another process was faster
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # a journal that survives a power cut needs a file that does
    finally:
        os.close(folder)


def _warn_of_empty(path: Path) -> None:
    """Warn of an empty file that is not new: it may have lost its content."""
    found = path.stat()
    if found.st_size == 0 and time.time() - found.st_mtime > JUST_NOW:
        logger.warning(
            "store file empty: %s has 0 bytes, a new store begins in it; restore a backup if it had more",
            path,
        )


def open_writer(path: Path, durability: Durability, *, patience: float) -> sqlite3.Connection:
    """Open a connection that writes, to a file that has the present tables then."""
    create_file(path)
    check_log(path, patience=patience)
    connection = _connect(path, patience)
    try:
        version = _refuse_foreign(connection, path)
        _use_wal(connection, patience)
        _set_syncing(connection, durability)
        # The writer decides when to checkpoint: never on the event loop.
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        # Some builds zero freed pages by default; a replaced part would then be written twice.
        connection.execute("PRAGMA secure_delete = FAST")
        if version < len(MIGRATIONS):
            migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def open_checkpointer(path: Path, durability: Durability, *, patience: float) -> sqlite3.Connection:
    """Open a connection that moves the log into the database, and syncs as a writer's would."""
    connection = _connect(path, patience)
    _set_syncing(connection, durability)
    return connection


def _set_syncing(connection: sqlite3.Connection, durability: Durability) -> None:
    connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
    if durability is Durability.POWER:
        connection.execute("PRAGMA fullfsync = ON")  # macOS: a plain fsync does not reach the disk
        connection.execute("PRAGMA checkpoint_fullfsync = ON")


def open_read_only(path: Path, *, patience: float) -> sqlite3.Connection:
    """Open a file that may be damaged. Nothing is written to it, and a missing end raises only when it is
    read."""
    if not path.exists():
        raise StoreError(f"there is no file {path}")
    connection = _connect(path, patience, mode="ro")
    try:
        connection.execute("PRAGMA query_only = ON")
        # Without this, SQLite refuses every query of a file that is shorter than its header claims.
        connection.execute("PRAGMA writable_schema = ON")
        _refuse_foreign(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: Path, *, patience: float) -> sqlite3.Connection:
    connection = _connect(path, patience)
    connection.execute("PRAGMA query_only = ON")
    return connection


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the tables to the present version, in one transaction; two processes may try at once."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _refuse_foreign(connection, path)
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            for statement in script.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _connect(path: Path, patience: float, *, mode: str = "rw") -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=patience,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=64,
    )
    connection.text_factory = decode_text
    return connection


@contextmanager
def _one_snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Let all reads see the file at one moment: another process may be creating its tables."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _refuse_foreign(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of the tables (0: none yet). Refuse the file of another program, or of a later
    version."""
    with _one_snapshot(connection):
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        with damaged_schema():
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application != APPLICATION_ID and (tables or version or application):
        raise StoreError(f"{path} is a database of another program")
    if version > len(MIGRATIONS):
        raise StoreTooNew(
            f"{path} was written by a later Antiphon (version {version} of the tables, "
            f"this one knows {len(MIGRATIONS)})"
        )
    return int(version)


def _use_wal(connection: sqlite3.Connection, patience: float) -> None:
    """Switch the file to a write-ahead log. If two processes open a new file at once, one of them switches
    it, and SQLite does not wait."""
    deadline = time.monotonic() + patience
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            if mode != "wal":
                raise StoreError(f"a write-ahead log is not possible here (SQLite stays in mode {mode})")
            return


# SQLite applies whatever write-ahead log lies beside a file. The log of another file (from before a backup
# was restored, or from a folder that was copied in part) would replace pages of this one for good. Session
# keys distinguish the two: a key is given out once and keeps its id, and the highest one never decreases.

HEADER_BYTES = 32
COMPARED = 1000
"""How many sessions are compared, the newest ones."""


class _Seen(NamedTuple):
    highest: int
    """The highest key that was ever given out."""
    ids: dict[int, object]


def check_log(path: Path, *, patience: float) -> None:
    """Raise `StoreCorrupt` if the log does not belong to this file. Nothing is changed."""
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
    """Return the newest sessions of a file; `None` if it is too damaged."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, timeout=patience)) as connection:
            connection.text_factory = decode_text
            with damaged_schema():
                made = connection.execute(
                    "SELECT count(*) FROM sqlite_schema WHERE name = 'sessions'"
                ).fetchone()
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
