"""The one writer of a SQLite store: writes that come while it is busy are committed together.

Small writes are committed in place, on the event loop's thread: that takes a third of the time of a trip to
another thread, which would also compete with the loop for the interpreter at every statement. A write goes to
the writer's thread when it is large, when it has to wait for the disk (`power`) or for another process, when
a commit in place was slow a moment ago, and when it is the first after a checkpoint, which syncs. The loop
and the thread never use the connection at once.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, Generic, TypeVar

from msgspec import Struct

from antiphon.errors import AntiphonError, StoreError
from antiphon.stores.sqlite.checkpointer import Checkpointer, checkpoint
from antiphon.stores.sqlite.errors import is_busy, store_error

T = TypeVar("T")

IN_PLACE_BYTES = 128 * 1024
"""More than this is not written on the loop's thread: about a tenth of a millisecond."""

UNKNOWN_BYTES = IN_PLACE_BYTES + 1
"""The size of a write of unknown size."""

GROUP_BYTES = 8 << 20
"""More than this is not gathered into one transaction, unless one write alone is larger."""

CHECKPOINT_BYTES = 8 << 20
"""After this much was written, the log is moved into the database, while more is written."""

LOG_BYTES = 4 * CHECKPOINT_BYTES
"""After this much was written without a pause, writing waits until the rest of the log is moved: SQLite
begins the log anew only when nothing is left in it."""

ROW_BYTES = 8 * 1024
"""Bytes that a write adds to the log besides its own: the pages it touches."""

SLOW_COMMIT = 0.02
"""Seconds that a commit in place may take. A longer one means that the disk is slow or overloaded."""

SLOW_FOR = 1.0
"""Seconds for which commits then go through the thread."""


class Write(Struct, Generic[T], eq=False):
    """One write, done in a transaction with others."""

    apply: Callable[[sqlite3.Connection], T]
    """Raises an `AntiphonError` before it has written anything, to refuse; after any other exception the
    transaction is rolled back."""
    size: int = 0
    single: bool = False
    """Whether it is one statement, which needs no transaction around it."""
    future: asyncio.Future[T] | None = None


Outcome = tuple[Any, Exception | None]


class Writer:
    """Commits writes through one connection. To be used from one event loop."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: str,
        executor: Executor,
        checkpointer: Checkpointer,
        *,
        in_place: bool,
        patience: float,
    ) -> None:
        self._connection = connection
        self._path = path
        self._executor = executor
        self._checkpointer = checkpointer
        self._in_place = in_place
        self._patience = patience
        self._queue: list[Write[Any]] = []
        self._in_thread = False
        self._scheduled = False
        self._crowded = False
        self._fresh_log = True
        self._checkpointing = False
        self._since_checkpoint = 0
        self._log_bytes = 0
        self._slow_until = 0.0
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()
        self.commits = 0
        """How many transactions there were; `bench/session_store.py` compares with as many."""

    @property
    def free(self) -> bool:
        """Whether a small write may be committed in place: no other one is in progress, or was in this turn
        of the loop. Writes that come together are committed together, and no writer keeps the others from
        running."""
        return not (self._in_thread or self._scheduled or self._crowded or self._closed or self._is_held)

    @property
    def _is_held(self) -> bool:
        """Whether writing waits for a checkpoint, which takes longer than to write as much again."""
        return self._checkpointing and self._since_checkpoint >= CHECKPOINT_BYTES and not self._closed

    def do_in_place(self, write: Write[Any]) -> Outcome | None:
        """Commit a write now and return its outcome; `None` if it has to wait, and then nothing was done."""
        if not self.free or not self._may_be_in_place(write.size):
            return None
        self._schedule(asyncio.get_running_loop())
        outcomes = self._try_in_place([write])
        return None if outcomes is None else outcomes[0]

    async def do(self, write: Write[T]) -> T:
        """Commit a write and return its result. It may be committed even if the caller stops waiting."""
        if self._closed:
            raise StoreError(f"the store of {self._path} is closed")
        outcome = self.do_in_place(write)
        if outcome is not None:
            value, error = outcome
            if error is not None:
                raise error
            return value  # type: ignore[no-any-return]
        loop = asyncio.get_running_loop()
        write.future = loop.create_future()
        self._queue.append(write)
        self._idle.clear()
        if not self._in_thread:
            self._schedule(loop)
        return await write.future

    async def aclose(self) -> None:
        """Accept no more writes, and finish those that are queued or in progress. The connection stays
        open."""
        self._closed = True
        await self._idle.wait()

    def _may_be_in_place(self, size: int) -> bool:
        if not self._in_place or self._fresh_log or size > IN_PLACE_BYTES:
            return False
        return not self._slow_until or time.monotonic() >= self._slow_until

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Run at the end of a turn of the loop in which something was written or queued."""
        self._scheduled = False
        if not self._in_thread:
            self._next()

    def _next(self) -> None:
        if not self._checkpointing and not self._closed:
            if self._since_checkpoint >= CHECKPOINT_BYTES:
                self._start_checkpoint()
            elif self._log_bytes >= LOG_BYTES:
                self._run_in_thread(self._empty_log, [])
                return
        if self._is_held:
            return
        if not self._queue:
            self._crowded = False
            self._idle.set()
            return
        group = self._take()
        self._crowded = len(group) > 1
        if self._may_be_in_place(sum([write.size for write in group])):
            outcomes = self._try_in_place(group)
            if outcomes is not None:
                self._resolve(group, outcomes)
                if self._queue or self._since_checkpoint >= CHECKPOINT_BYTES:
                    self._schedule(asyncio.get_running_loop())
                else:
                    self._idle.set()
                return
        self._run_in_thread(lambda: self._commit_patiently(group), group)

    def _start_checkpoint(self) -> None:
        self._checkpointing, self._since_checkpoint = True, 0
        self._checkpointer.start().add_done_callback(self._checkpointed)

    def _checkpointed(self, done: asyncio.Future[bool]) -> None:
        self._checkpointing = False
        if done.result() and not self._since_checkpoint:
            self._fresh_log, self._log_bytes = True, 0
        if not self._in_thread:
            self._next()

    def _take(self) -> list[Write[Any]]:
        """Take the next group: all that is queued, as far as it fits into one transaction."""
        size, most = 0, IN_PLACE_BYTES if self._may_be_in_place(self._queue[0].size) else GROUP_BYTES
        for count, write in enumerate(self._queue):
            size += write.size
            if size > most and count:
                group, self._queue = self._queue[:count], self._queue[count:]
                return group
        group, self._queue = self._queue, []
        return group

    def _try_in_place(self, group: Sequence[Write[Any]]) -> list[Outcome] | None:
        """Commit without waiting; None if another process is writing."""
        began = time.monotonic()
        try:
            return self._commit(group)
        except sqlite3.OperationalError as error:
            if is_busy(error):
                return None
            raise
        finally:
            ended = time.monotonic()
            self._slow_until = ended + SLOW_FOR if ended - began > SLOW_COMMIT else 0.0

    def _run_in_thread(self, job: Callable[[], list[Outcome]], group: list[Write[Any]]) -> None:
        self._in_thread = True
        self._idle.clear()
        future = asyncio.get_running_loop().run_in_executor(self._executor, job)
        future.add_done_callback(lambda done: self._came_back(done, group))

    def _came_back(self, done: asyncio.Future[list[Outcome]], group: list[Write[Any]]) -> None:
        self._in_thread = False
        error = done.exception()
        if isinstance(error, Exception):  # an unexpected error; the callers get it
            self._resolve(group, [(None, error)] * len(group))
        else:
            self._resolve(group, done.result())
        self._next()

    def _resolve(self, group: Sequence[Write[Any]], outcomes: Sequence[Outcome]) -> None:
        for write, (value, error) in zip(group, outcomes, strict=True):
            assert write.future is not None
            if write.future.done():
                continue  # the caller stopped waiting
            if error is not None:
                write.future.set_exception(error)
            else:
                write.future.set_result(value)

    # The methods below run on the thread that has the connection.

    def _commit_patiently(self, group: Sequence[Write[Any]]) -> list[Outcome]:
        self._connection.execute(f"PRAGMA busy_timeout = {round(self._patience * 1000)}")
        try:
            outcomes = self._commit(group)
        except sqlite3.OperationalError as error:
            return [(None, self._as_store_error(error)) for _ in group]
        finally:
            self._connection.execute("PRAGMA busy_timeout = 0")
        self._fresh_log = False
        return outcomes

    def _commit(self, group: Sequence[Write[Any]]) -> list[Outcome]:
        """Commit a group; raises only if another process is in the way, and then nothing was done."""
        try:
            if len(group) == 1 and group[0].single:
                outcomes = [_outcome(group[0], self._connection)]
            else:
                outcomes = _transaction(self._connection, group)
        except Exception as error:
            if is_busy(error):
                raise
            if len(group) > 1:
                # One of them is the cause, or there is room for some: try each alone.
                return [self._commit_alone(write) for write in group]
            return [(None, self._as_store_error(error))]
        self.commits += 1
        written = sum([write.size + ROW_BYTES for write in group])
        self._since_checkpoint += written
        self._log_bytes += written
        return outcomes

    def _commit_alone(self, write: Write[Any]) -> Outcome:
        try:
            return self._commit([write])[0]
        except sqlite3.OperationalError as error:
            return None, self._as_store_error(error)

    def _as_store_error(self, error: Exception) -> Exception:
        return store_error(error, self._path) if isinstance(error, sqlite3.Error) else error

    def _empty_log(self) -> list[Outcome]:
        # A reader may keep some of the log in use: then it stays for the next time.
        checkpoint(self._connection)
        self._since_checkpoint = self._log_bytes = 0
        self._fresh_log = True
        return []


def _outcome(write: Write[Any], connection: sqlite3.Connection) -> Outcome:
    try:
        return write.apply(connection), None
    except AntiphonError as refusal:
        return None, refusal


def _transaction(connection: sqlite3.Connection, group: Sequence[Write[Any]]) -> list[Outcome]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        outcomes = [_outcome(write, connection) for write in group]
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return outcomes
