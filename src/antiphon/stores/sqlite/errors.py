"""Errors of SQLite as errors of ours that name the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from antiphon.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def primary_code(error: sqlite3.Error) -> int:
    """Return the result code without its details; 0 for errors of the sqlite3 module itself."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.Error) and primary_code(error) in _BUSY


def is_damage(error: BaseException) -> bool:
    return isinstance(error, sqlite3.Error) and primary_code(error) in _DAMAGED


@contextmanager
def damaged_schema() -> Iterator[None]:
    """Raise SQLite's error for a damaged schema also where it quotes text that is not UTF-8: Python cannot
    decode such a message, and raises `UnicodeDecodeError` instead."""
    try:
        yield
    except UnicodeDecodeError as error:
        damage = sqlite3.DatabaseError("malformed database schema: a name in it is not UTF-8")
        damage.sqlite_errorcode, damage.sqlite_errorname = sqlite3.SQLITE_CORRUPT, "SQLITE_CORRUPT"
        raise damage from error


def store_error(error: sqlite3.Error, path: str) -> StoreError:
    code = primary_code(error)
    if code in _DAMAGED:
        return StoreCorrupt(f"{path} is damaged: {error}")
    if code in _BUSY:
        return StoreBusy(f"{path} is held by another process: {error}")
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(f"no room to write {path}: {error}")
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if name == "SQLITE_IOERR_WRITE":
        return StoreError(f"{path}: the disk, a quota or a limit refused a write ({name})")
    return StoreError(f"{path}: {error} ({name})")


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Raise errors of SQLite and of the file system as errors of ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise store_error(error, str(path)) from error
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror}") from error
