"""SearchIndex: the search of a SQLite store, and what keeps its index up to date.

An append does not index. The index catches up when the store was idle for a moment, at a slow pace when it is
never idle, and before each search. Journals are read on a thread and a connection of their own; the writer
commits the changes in small transactions, each of which moves the session's cursor in the index.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from antiphon.errors import SessionUnknown, StoreCorrupt, StoreError
from antiphon.stores.base import Number
from antiphon.stores.search.base import Match, Matches, check_search_arguments, search_cursor, search_place
from antiphon.stores.search.texts import ITEMS, TextChange, read_item, text_changes
from antiphon.stores.search.words import PART, Term, fts5_query, read_query, snippet_of
from antiphon.stores.sqlite import journal
from antiphon.stores.sqlite import search_tables as tables
from antiphon.stores.sqlite.errors import store_errors
from antiphon.stores.sqlite.schema import open_reader
from antiphon.stores.sqlite.search_tables import Found, Pending

logger = logging.getLogger("antiphon.stores")

T = TypeVar("T")

IDLE = 1.0
"""Seconds without a write after which the index catches up."""
MOST_WAIT = 30.0
"""Seconds after which it catches up although there are writes."""
SHARE = 50
"""Then it waits for that many times as long as it worked."""
PAGE = 128 * 1024
"""About how many bytes of events are indexed in one transaction."""
STEPS = 1000
"""Instructions of SQLite between two looks at the clock."""
REBUILDS = 3
"""How often one process makes a damaged index anew."""


class Write(Protocol):
    """Commits a change of the index in the writer; a `single` one gets no transaction around it."""

    def __call__(
        self, apply: Callable[[sqlite3.Connection], T], /, *, single: bool = False
    ) -> Awaitable[T]: ...


class Step(NamedTuple):
    """The changes of a page of a journal."""

    upto: int
    changes: Mapping[str, TextChange]


class SearchIndex:
    def __init__(
        self, path: Path, write: Write, *, commits: Callable[[], int], patience: float, read_only: bool
    ) -> None:
        """`commits` returns how many transactions the writer has committed."""
        self._path = path
        self._commit = write
        self._commits = commits
        self._patience = patience
        self._read_only = read_only
        self._thread: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection | None = None
        self._ready = False
        self._own = 0
        """How many of the commits were ours."""
        self._rebuilds = 0
        self._searching = 0
        self._hurry = asyncio.Event()
        """Set while a search waits for the index."""
        self.due = False
        """Whether something was written since the index caught up last."""
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    # --- catching up -------------------------------------------------------------------------------

    def touch(self) -> None:
        """Note that something was written. It costs an append nothing but this call, if `due` is not set."""
        if not self.due and not self._closed and tables.has_fts5():
            self.due = True
            self._wait(time.monotonic() + MOST_WAIT, self._commits())

    def _wait(self, until: float, commits: int) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(IDLE, self._look, until, commits)

    def _look(self, until: float, before: int) -> None:
        """Catch up if nothing was written since the last look, or writes never end."""
        self._timer = None
        commits = self._commits()
        if commits != before and time.monotonic() < until:
            self._wait(until, commits)
        elif not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._catch_up_slowly())

    async def _catch_up_slowly(self) -> None:
        self.due = False
        try:
            await self._catch_up(None, until=None)
        except StoreError as error:
            if not self._closed:
                logger.warning("search index not updated: %s", error)
        except Exception:
            logger.exception("search index not updated")

    async def _catch_up(self, session_ids: Collection[str] | None, *, until: float | None) -> bool:
        """Index what is not indexed. Return whether all is; without `until`, make way for other writes."""
        if self._read_only:
            return True
        try:
            return await self._catch_up_once(session_ids, until)
        except StoreCorrupt:
            await self._mend()
            return await self._catch_up_once(session_ids, until)

    async def _catch_up_once(self, session_ids: Collection[str] | None, until: float | None) -> bool:
        if not self._ready:
            await self._write(tables.ensure_words)
            self._ready = True
        if session_ids is None:
            for key in await self._in_thread(tables.orphans):
                await self.forget(key)
        for of in await self._in_thread(_pending, session_ids):
            indexed: Pending | None = of
            while indexed is not None and (
                indexed.upto < indexed.last or indexed.title != indexed.indexed_title
            ):
                if self._closed or (until is not None and time.monotonic() >= until):
                    return False
                began, commits = time.monotonic(), self._commits() - self._own
                step = await self._in_thread(_read_step, str(self._path), indexed)
                indexed = await self._apply(indexed, step)
                if until is None and self._commits() - self._own != commits:
                    with suppress(TimeoutError):
                        pause = SHARE * (time.monotonic() - began)
                        await asyncio.wait_for(self._hurry.wait(), pause)
        return True

    async def _apply(self, of: Pending, step: Step) -> Pending | None:
        """Commit a step. Return what is left of the session; `None` if another process indexes it."""
        done = await self._write(lambda connection: tables.apply(connection, of, step.upto, step.changes))
        return of._replace(upto=step.upto, indexed_title=of.title) if done else None

    async def _write(self, apply: Callable[[sqlite3.Connection], T]) -> T:
        self._own += 1
        return await self._commit(apply)

    async def forget(self, key: int) -> None:
        """Remove the texts of a session that is gone, and their words."""
        try:
            forgotten, done = 0, False
            while not done:
                removed, done = await self._write(lambda connection: tables.forget(connection, key))
                forgotten += removed
            if forgotten and await self._write(tables.begin_merge):
                while await self._write(tables.merge):
                    pass
        except StoreCorrupt:
            await self._mend()

    async def _mend(self) -> None:
        """Make a damaged index anew. Raises `StoreCorrupt` if it is not the index that is damaged."""
        # FTS5 keeps a transaction in which it found damage from being committed.
        if self._rebuilds >= REBUILDS or await self._commit(tables.is_sound, single=True):
            raise StoreCorrupt(f"{self._path} is damaged, so it cannot be searched", found="it is damaged")
        self._rebuilds += 1
        logger.warning("search index damaged: %s; it is made anew, sessions are not affected", self._path)
        try:
            await self._write(tables.make_anew)
        except StoreCorrupt:
            await self._write(tables.abandon)
        self.touch()

    # --- searching ---------------------------------------------------------------------------------

    async def search(
        self, query: str, *, sessions: Collection[str] | None, limit: int, after: str | None, seconds: float
    ) -> Matches:
        check_search_arguments(query, limit)
        before = None if after is None else search_place(after, Number)
        terms = read_query(query)
        if not tables.has_fts5():
            await self._write(tables.ensure_words)  # it says what is missing
        if not terms:
            return Matches(())
        began = time.monotonic()
        self._searching += 1
        self._hurry.set()
        try:
            complete = await self._catch_up(sessions, until=began + seconds / 2)
            left = max(seconds / 2, began + seconds - time.monotonic())
            found, whole, until = await self._query(fts5_query(terms), sessions, before, limit + 1, left)
        finally:
            self._searching -= 1
            if not self._searching:
                self._hurry.clear()
        page, more = found[:limit], bool(found) and (len(found) > limit or not whole)
        matches = await self._in_thread(matches_of, page, terms, until)
        return Matches(matches, search_cursor(page[-1].place) if more else None, complete and whole)

    async def _query(
        self, query: str, sessions: Collection[str] | None, before: int | None, limit: int, seconds: float
    ) -> tuple[list[Found], bool, float]:
        try:
            return await self._in_thread(self._find, query, sessions, before, limit, seconds)
        except StoreCorrupt:
            if self._read_only:
                raise
            await self._mend()
            return [], False, 0.0

    def _find(
        self,
        connection: sqlite3.Connection,
        query: str,
        sessions: Collection[str] | None,
        before: int | None,
        limit: int,
        seconds: float,
    ) -> tuple[list[Found], bool, float]:
        """Run in the thread: return matches, whether there was time to look for all of them, and when the
        time is over."""
        found: list[Found] = []
        keys = None if sessions is None else tables.keys_of(connection, list(sessions))
        # The time begins here: the job may have waited for those of other searches.
        until = time.monotonic() + seconds
        connection.set_progress_handler(lambda: time.monotonic() > until, STEPS)
        try:
            with closing(tables.find(connection, query, keys, before)) as rows:
                for row in rows:
                    if row[0] is None:
                        raise StoreCorrupt(f"the search index of {self._path} has lost a text")
                    whole = isinstance(row[1], str) and isinstance(row[2], str | None)
                    if whole and str(row[3]).startswith(ITEMS) and isinstance(row[6], str):
                        found.append(Found(*row))
                    if len(found) >= limit:
                        break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
            return found, False, until
        finally:
            connection.set_progress_handler(None, 0)
        return found, True, until

    async def _in_thread(self, job: Callable[..., T], *given: Any) -> T:
        """Run a job on the connection of the index."""
        if self._closed:
            raise StoreError(f"the store of {self._path} is closed")
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="antiphon-store-search")
        run = asyncio.get_running_loop().run_in_executor
        with store_errors(self._path):
            return await run(self._thread, self._run, job, *given)

    def _run(self, job: Callable[..., T], *given: Any) -> T:
        if self._connection is None:
            self._connection = open_reader(self._path, patience=self._patience)
        return job(self._connection, *given)

    async def aclose(self) -> None:
        """Stop, and close the connection. A step that is being committed is finished."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._hurry.set()
        if self._task is not None:
            await asyncio.wait([self._task])
        if self._thread is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
            self._thread.shutdown()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def _pending(connection: sqlite3.Connection, session_ids: Collection[str] | None) -> list[Pending]:
    keys = None if session_ids is None else tables.keys_of(connection, list(session_ids))
    return tables.pending(connection, keys)


def _read_step(connection: sqlite3.Connection, path: str, of: Pending) -> Step:
    """Return the changes of the next page of a journal. What cannot be read is skipped."""
    row = connection.execute("SELECT id FROM sessions WHERE key = ?", (of.key,)).fetchone()
    if row is None or of.upto >= of.last:
        return Step(of.upto, {})
    try:
        page = journal.read(connection, path, row[0], of.upto, PAGE)
    except SessionUnknown:
        return Step(of.upto, {})
    except StoreCorrupt as damage:
        return Step(of.last if damage.resume is None else max(of.upto + 1, damage.resume), {})
    lines = [line for batch in page.batches for line in batch.events]
    return Step(page.cursor if lines else of.last, text_changes(lines, first=of.upto + 1))


def matches_of(
    _: sqlite3.Connection, found: Sequence[Found], terms: Sequence[Term], until: float
) -> tuple[Match, ...]:
    return tuple(_match(each, terms, hurry=time.monotonic() > until) for each in found)


def _match(found: Found, terms: Sequence[Term], *, hurry: bool) -> Match:
    """`hurry`: only the beginning of the text is looked at for the snippet."""
    kind, id = read_item(found.item)
    snippet, ranges = snippet_of(found.text[:PART] if hurry else found.text, terms)
    return Match(
        session_id=found.session_id,
        title=found.title,
        kind=kind,
        id=id,
        seq=found.seq,
        at=found.at,
        snippet=snippet,
        ranges=ranges,
    )
