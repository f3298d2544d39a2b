"""FirstAgent: starts a hub's default agent with the hub, to learn what it can do before a client asks."""

from __future__ import annotations

import asyncio
import logging

from antiphon.errors import AntiphonError
from antiphon.hub.context import HubContext
from antiphon.server.tasks import Tasks

logger = logging.getLogger("antiphon.hub")

RETRY = 2.0
"""Seconds that a client waits for an agent of which nothing is known and that could not be started before."""


class FirstAgent:
    def __init__(self, context: HubContext, tasks: Tasks) -> None:
        self._context = context
        self._tasks = tasks
        self._learning: asyncio.Task[None] | None = None

    def offer_what_is_known(self) -> None:
        """Offer what the agents could do when they were last started."""
        for name in self._context.agents:
            known = self._context.known_agents.get(name)
            if known is not None:
                self._context.announce(name, known)

    def begin(self) -> asyncio.Task[None] | None:
        """Start the agent, unless that was done; `None` where what it can do is known. One that could not
        be started is tried again."""
        context = self._context
        if not context.default or context.stopping or context.known_agents.is_current(context.default):
            return None
        if self._learning is None or self._learning.done():
            self._learning = self._tasks.start_soon(self._learn())
        return self._learning

    async def known(self) -> None:
        """Wait until it is known what the agent can do (invariant 10). If nothing is known from before,
        that takes as long as the agent may take to start."""
        failed = self._learning is not None and self._learning.done()
        learning = self.begin()
        if learning is not None and self._context.known_agents.get(self._context.default) is None:
            await asyncio.wait([learning], timeout=RETRY if failed else None)

    async def _learn(self) -> None:
        name = self._context.default
        try:
            spare = await self._context.upstreams.spare(name)
        except (AntiphonError, OSError) as error:
            self._context.failure(name, error)
            logger.warning("agent %s could not be started; it is tried again when needed: %s", name, error)
            return
        self._context.learn(spare)
