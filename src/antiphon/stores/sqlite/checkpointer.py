"""Moving the write-ahead log of a SQLite file into its database."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def checkpoint(connection: sqlite3.Connection) -> bool:
    """Move into the database what no reader needs in the log. Return whether that is all that was in the log
    when this began. If it fails, the log stays for the next time."""
    try:
        _, frames, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error:
        return False
    return bool(frames == moved)


class Checkpointer:
    """Has a connection and a thread, so that the writer can commit meanwhile. Most of the time of a
    checkpoint is a wait for the disk."""

    def __init__(self, open: Callable[[], sqlite3.Connection]) -> None:
        self._open = open
        self._connection: sqlite3.Connection | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="antiphon-store-checkpoint")

    def start(self) -> asyncio.Future[bool]:
        """Start a checkpoint. The result is that of `checkpoint`."""
        return asyncio.get_running_loop().run_in_executor(self._thread, self._run)

    async def aclose(self) -> None:
        """Wait for the checkpoint that is in progress, and close the connection."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    def _run(self) -> bool:
        try:
            self._connection = self._connection or self._open()
        except sqlite3.Error:
            return False
        return checkpoint(self._connection)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
