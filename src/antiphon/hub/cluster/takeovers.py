"""Takeovers: when this hub becomes the owner of sessions that have none any more.

A session that clients follow here is taken over at once if its owner releases it, and soon if its owner is
gone and something in it is unfinished. A sweep ends what a hub that is gone has left unfinished in sessions
that nobody follows, and lets prompts that wait in them go on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Awaitable, Callable, Collection, Sequence

from antiphon.errors import AntiphonError
from antiphon.hub.cluster.announcements import RELEASED, decode, releases
from antiphon.server.distant.session import DistantSession
from antiphon.server.registry import SessionRegistry
from antiphon.server.tasks import Tasks
from antiphon.stores.base import SessionRecord
from antiphon.stores.shared import SharedStore

logger = logging.getLogger("antiphon.hub")

SPREAD = 2.0
"""Seconds over which hubs spread what any of them may do."""
AT_A_TIME = os.cpu_count() or 4
"""How many sessions a hub takes over at a time. See docs/scale.md: one at a time takes minutes, and all at
once starts more agents than the host can run."""
AT_ONCE = 0.1
"""The same for hubs with clients that wait."""

EndCut = Callable[[str], Awaitable[bool]]
"""Ends what was cut short in a session that is not open. Returns whether prompts wait to be sent in it."""


class Takeovers:
    def __init__(
        self,
        store: SharedStore,
        registry: SessionRegistry,
        tasks: Tasks,
        *,
        may_own: Callable[[SessionRecord], bool],
        end_cut: EndCut,
        stopping: Callable[[], bool],
    ) -> None:
        """`stopping` says whether this hub is about to end, and takes nothing over."""
        self._store = store
        self._registry = registry
        self._tasks = tasks
        self._may_own = may_own
        self._end_cut = end_cut
        self._stopping = stopping

    async def begin(self) -> None:
        await self._store.listen(RELEASED, self._released)

    # --- sessions that clients follow here ---------------------------------------------------------

    async def look(self) -> None:
        """Take over sessions that are followed here and have no owner, if they are at work, or if they are
        subagents: their clients have to be told that they are over."""
        sessions = self._registry.distant.sessions
        left = [session.id for session in sessions if session.parent is not None or is_at_work(session)]
        await _each(left, self._take_over)

    def _released(self, hub: str, data: bytes) -> None:
        released = decode(releases, data, sender=hub)
        if released is None:
            return
        session = self._registry.serving(released.session_id)
        if isinstance(session, DistantSession):
            if released.closed or session.parent is not None:  # a subagent is over when it is released
                self._tasks.start_soon(self._registry.distant.closed_elsewhere(session, released.seq))
            else:
                self._tasks.start_soon(self._take_over(released.session_id, within=AT_ONCE))
        elif released.waits:
            self._tasks.start_soon(self._take_over(released.session_id, within=SPREAD))

    async def _take_over(self, session_id: str, *, within: float = 0.0) -> None:
        await asyncio.sleep(random.random() * within)
        try:
            if await self._is_free(session_id):
                await self._registry.distant.take_over(session_id)
        except AntiphonError as error:
            logger.warning("session %s cannot be taken over: %s", session_id, error)

    async def _is_free(self, session_id: str) -> bool:
        """Return whether a session has no owner, and this hub may be it."""
        record = None if self._stopping() else await self._store.get(session_id)
        return record is not None and self._may_own(record) and await self._store.owner(session_id) is None

    # --- sessions that nobody follows here ---------------------------------------------------------

    async def sweep(self, gone: Collection[str]) -> None:
        """End what was at work in the sessions of hubs that are gone. Several hubs may do this at a time:
        each begins later, and with other sessions, and the claim of a session decides."""
        await asyncio.sleep(random.random() * SPREAD)
        left = [claim.session_id for claim in await self._store.owners() if claim.owner.store_id in gone]
        random.shuffle(left)
        await _each(left, self._finish)

    async def _finish(self, session_id: str) -> None:
        if self._registry.serving(session_id) is not None:
            return  # `look` takes care of it, or it was taken over
        try:
            record = await self._store.get(session_id)
            if record is None or record.state == "idle" or not await self._is_free(session_id):
                return
            if await self._end_cut(session_id):
                await self._registry.distant.take_over(session_id)
        except AntiphonError as error:  # open in another process, or unreadable
            logger.info("session %s of a hub that is gone is left as it is: %s", session_id, error)


async def _each(session_ids: Sequence[str], act: Callable[[str], Awaitable[None]]) -> None:
    """Do something with many sessions, a few at a time: each may start an agent."""
    room = asyncio.Semaphore(AT_A_TIME)

    async def one(session_id: str) -> None:
        async with room:
            await act(session_id)

    await asyncio.gather(*(one(session_id) for session_id in session_ids))


def is_at_work(session: DistantSession) -> bool:
    """Return whether something in a session is not finished, so that it needs an owner."""
    fold = session.fold
    return bool(fold.turn is not None or fold.background or fold.questions.open or fold.queue)
