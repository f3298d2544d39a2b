"""The check of a SQLite store for damage, on a separate connection and thread while the store is in use."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from antiphon.errors import SessionUnknown
from antiphon.stores.base import CheckReport, Fault, FaultKind
from antiphon.stores.sqlite.errors import is_damage
from antiphon.stores.sqlite.journal import fault_in
from antiphon.stores.sqlite.records import key_of, list_sessions
from antiphon.stores.sqlite.schema import open_read_only

PROBLEMS = 20
"""How many problems of the file are reported."""
PAGE = 200


class DamageCheck:
    """One check. `PRAGMA quick_check` reads every page of the file and holds no lock of the interpreter
    meanwhile; then each journal is read, batch by batch."""

    def __init__(self, path: Path, *, patience: float) -> None:
        self._path = path
        self._patience = patience
        self._connection: sqlite3.Connection | None = None
        self._stopped = False

    async def run(self, seconds: float) -> CheckReport:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(seconds, self.stop)
        thread = ThreadPoolExecutor(1, thread_name_prefix="antiphon-store-check")
        checking = loop.run_in_executor(thread, self._check)
        try:
            return await asyncio.shield(checking)
        finally:
            timer.cancel()
            self.stop()
            await asyncio.wait([checking])
            thread.shutdown()

    def stop(self) -> None:
        """End the check soon; its report is not whole then."""
        self._stopped = True
        connection = self._connection
        if connection is not None:
            connection.interrupt()

    # The methods below run in the thread of the check.

    def _check(self) -> CheckReport:
        problems: list[str] = []
        faults: dict[str, Fault] = {}
        with closing(open_read_only(self._path, patience=self._patience)) as connection:
            self._connection = connection
            try:
                if not self._stopped:
                    problems += _quick_check(connection)
                for session_id, fault in self._faults(connection):
                    faults[session_id] = fault
            except sqlite3.Error as error:
                if is_damage(error):
                    problems.append(str(error))
                elif not self._stopped:
                    raise
            finally:
                self._connection = None
            whole = not self._stopped
        return CheckReport(tuple(problems[:PROBLEMS]), faults, whole)

    def _faults(self, connection: sqlite3.Connection) -> Iterator[tuple[str, Fault]]:
        place: tuple[int, str] | None = None
        while not self._stopped:
            listing = list_sessions(connection, None, place, PAGE)
            for record in listing.records:
                if self._stopped:
                    return
                if record.fault is not None:
                    yield record.session_id, record.fault
                    continue
                found = self._journal_fault(connection, record.session_id)
                if found is not None:
                    yield record.session_id, Fault(FaultKind.DAMAGED, found)
            if listing.next is None:
                return
            place = listing.records[-1].created_at, listing.records[-1].session_id

    def _journal_fault(self, connection: sqlite3.Connection, session_id: str) -> str | None:
        try:
            return fault_in(connection, key_of(connection, session_id))
        except SessionUnknown:
            return None  # it was deleted meanwhile


def _quick_check(connection: sqlite3.Connection) -> list[str]:
    """Return the problems that SQLite finds in the file as a whole."""
    try:
        found = connection.execute(f"PRAGMA quick_check({PROBLEMS})").fetchall()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return [str(error)]
    lines = [str(line) for (text,) in found for line in str(text).splitlines()]
    return [line for line in lines if line != "ok" and not line.startswith("*** in database")]
