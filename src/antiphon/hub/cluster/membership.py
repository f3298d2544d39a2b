"""Membership: what a hub does as one of several on a store. It tells the others of itself and its sessions,
and notices when one of them is gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from antiphon.errors import StoreError
from antiphon.hub.cluster.cluster import Cluster
from antiphon.hub.cluster.distant_subagents import DistantSubagents
from antiphon.hub.cluster.session_news import SessionNews
from antiphon.hub.cluster.shared_limits import SharedLimits
from antiphon.hub.cluster.shared_tokens import SharedTokens
from antiphon.hub.cluster.takeovers import Takeovers
from antiphon.server.tasks import Tasks

logger = logging.getLogger("antiphon.hub")

LOOK = 2.0
"""Seconds between two looks at the other hubs."""


class Membership:
    def __init__(
        self,
        cluster: Cluster,
        tasks: Tasks,
        news: SessionNews,
        takeovers: Takeovers,
        tokens: SharedTokens,
        limits: SharedLimits,
        subagents: DistantSubagents,
        *,
        about: Callable[[], Mapping[str, Any]],
        lose: Callable[[str], None],
    ) -> None:
        """`about` returns what the other hubs, and operators, see of this one. `lose` gets the id of a
        session that another hub has taken over from this one."""
        self._cluster = cluster
        self._store = cluster.store
        self._tasks = tasks
        self._news = news
        self._takeovers = takeovers
        self._tokens = tokens
        self._limits = limits
        self._subagents = subagents
        self._about = about
        self._lose = lose
        self._joined = False

    async def begin(self, handle: Callable[[bytes], Awaitable[bytes]]) -> None:
        """Join the other hubs. `handle` does what they ask for."""
        self._joined = True
        self.describe()
        await self._store.begin_lease()
        await self._cluster.look()
        await self._store.serve(handle)
        await self._news.begin()
        await self._takeovers.begin()
        await self._tokens.begin()
        await self._limits.begin()
        self._tasks.start_soon(self._limits.run())
        self._tasks.start_soon(self._watch())
        self._tasks.start_soon(self._lose_claims())

    async def end(self) -> None:
        """Say goodbye, if this hub has joined. All sessions were released."""
        if self._joined:
            self._joined = False
            await self._news.end()

    def describe(self) -> None:
        """Tell the other hubs what this one is, as soon as its address is known."""
        self._store.describe(self._about())

    def session_changed(self, session_id: str) -> None:
        self._news.note(session_id)
        self._subagents.session_changed(session_id)

    async def _lose_claims(self) -> None:
        """Follow the sessions that other hubs took over while this one was paused or cut off."""
        while True:
            self._lose(await self._store.lost_claim())

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                await self._look()
            except StoreError as error:
                logger.warning("look at the other hubs failed: %s", error)

    async def _look(self) -> None:
        self.describe()
        await self._news.beat()
        gone = await self._cluster.look()
        there = {peer.store_id for peer in self._cluster.peers}
        self._news.keep_only(there, silence=2 * LOOK)
        for hub in gone:
            self._limits.forget(hub)
        if gone:
            self._tasks.start_soon(self._takeovers.sweep(gone))
        await self._tokens.merge()
        await self._takeovers.look()
