"""FollowedSession: a session that another process works in, read from the store that both share.

It has no claim and writes nothing. Its task waits for the journal to grow, folds the new events and publishes
them, so that attachments follow it as they follow a `LiveSession`. All of its events are committed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Self
from weakref import WeakValueDictionary

from antiphon.engine.events import Event
from antiphon.engine.session import Session
from antiphon.errors import LocalError, SessionUnknown, StoreCorrupt, StoreError, StoreTooNew
from antiphon.live.event_waiters import EventWaiters
from antiphon.live.journal import LiveJournal
from antiphon.live.presence import Presence
from antiphon.live.session import RECORD_EVERY, Clock
from antiphon.live.stored_session import Growth, Preview, read_on, read_session
from antiphon.live.tail import Stretch
from antiphon.stores.base import Store

logger = logging.getLogger("antiphon.live")

PAGE = 256 * 1024
"""Bytes of events that are folded in one step of the loop."""
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 3.0
"""Seconds between two tries to read while the store fails; each pause is twice as long as the one before."""


class FollowedSession:
    """An async context manager: the session is followed while it is open."""

    def __init__(self, store: Store, fold: Session, *, clock: Clock) -> None:
        if fold.created is None:
            raise LocalError(
                "the fold of a followed session needs its first event, session_created; it has none"
            )
        self.session_id = fold.created.session_id
        self.fold = fold
        """The session as of everything that was read."""
        self._store = store
        self._clock = clock
        self.journal = LiveJournal(store, fold, self.session_id)
        """The events that were read, for attachments."""
        self.presence = Presence(clock, on_change=lambda: self._on_change())
        """Clients that are attached now."""
        self.replays: WeakValueDictionary[int, object] = WeakValueDictionary()
        """The replays that are being sent, by the last event of each (`live.replay`)."""
        self._waiters = EventWaiters()
        self._failure: Exception | None = None
        self._left: Exception | None = None
        """The error of calls that wait after the session was put away."""
        self._on_failure: Callable[[], None] = lambda: None
        self._on_change: Callable[[], None] = lambda: None
        self._listed = self._listing()
        self._listed_at = 0
        self._following: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls, store: Store, session_id: str, *, clock: Clock, preview: Preview | None = None
    ) -> Self:
        """Read a session as `LiveSession.open` does, without claiming it. Raises `SessionUnknown`.

        If `preview` got anything, the session is as of the end of the preview until it is entered: the
        attachment has to be pinned before its task reads more.
        """
        return cls(store, await read_session(store, session_id, preview), clock=clock)

    def observe(self, *, changed: Callable[[], None], failed: Callable[[], None]) -> None:
        """Call `changed` when the session's record, its subagents or its clients change, and `failed` when it
        cannot be followed any more: it was deleted, or cannot be read."""
        self._on_change, self._on_failure = changed, failed

    async def __aenter__(self) -> Self:
        self._following = asyncio.get_running_loop().create_task(self._follow())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._following is not None
        self._following.cancel()
        await asyncio.wait((self._following,))
        self._left = StoreError(f"session {self.session_id} is no longer followed here")
        self._waiters.fail(self._left)
        self.journal.close()
        self.presence.close()

    # --- the feed of attachments -------------------------------------------------------------------

    @property
    def failed(self) -> bool:
        return self._failure is not None

    def now(self) -> int:
        """Return the time by the session's clock, in milliseconds since 1970."""
        return self._clock()

    async def durable(self, seq: int | None = None) -> None:
        """Wait until the event `seq` was read. Everything in the fold is in the store."""
        if seq is None or seq <= self.journal.last:
            return
        if (ended := self._failure or self._left) is not None:
            raise ended
        await self._waiters.wait(seq)

    async def after(self, cursor: int) -> list[Event]:
        """Wait for events after a cursor, and return the next ones, at least one."""
        await self.durable(cursor + 1)
        return [event for stretch in await self.journal.stretches(cursor) for event in stretch.events]

    # --- following ---------------------------------------------------------------------------------

    async def _follow(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                await self._read_on()
                if pause > FIRST_PAUSE:
                    logger.info("store readable again: session %s is followed", self.session_id)
                    pause = FIRST_PAUSE
                await self._store.grown(self.session_id, self.fold.last_seq)
            except (StoreCorrupt, StoreTooNew, SessionUnknown) as error:
                self._fail(error)
                return
            except StoreError as error:
                if pause == FIRST_PAUSE:
                    logger.warning("store unreadable: session %s waits: %s", self.session_id, error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            except Exception as error:
                logger.exception("store raised an unexpected exception; session %s", self.session_id)
                self._fail(StoreError(str(error)))
                return

    async def _read_on(self) -> None:
        """Read up to the end of the journal. Other tasks run between two pages."""
        while True:
            growth = await read_on(self._store, self.session_id, self.fold, limit_bytes=PAGE)
            if growth.events:
                self._publish(growth)
            if growth.whole:
                return
            await asyncio.sleep(0)

    def _publish(self, growth: Growth) -> None:
        self.journal.publish(Stretch(growth.events, size=growth.size))
        if self._waiters.waiting:
            self._waiters.wake(self.journal.last)
        listed, at = self._listing(), growth.events[-1].at
        if listed != self._listed or at - self._listed_at >= RECORD_EVERY:
            self._listed, self._listed_at = listed, at
            self._on_change()

    def _listing(self) -> tuple[str, str | None, int]:
        """Return what lists of sessions show of it, and how many subagents it has announced."""
        info = self.fold.facts.info
        return str(self.fold.state), None if info is None else info.title, len(self.fold.subagents)

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._waiters.fail(error)
        self.journal.fail(error)
        logger.error("session lost: %s can no longer be followed: %s", self.session_id, error)
        self._on_failure()
