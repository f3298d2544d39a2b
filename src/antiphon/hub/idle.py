"""IdleReaper: stops agents that were idle for a while, and releases sessions without clients.

Only where nothing is lost by it: nothing is open, and the agent can bring the session back.
"""

from __future__ import annotations

import asyncio
import logging
import time

from antiphon.hub.context import HubContext
from antiphon.hub.worker.worker import UpstreamWorker, worker_of
from antiphon.server.registry import SessionRegistry
from antiphon.server.session import ServedSession

logger = logging.getLogger("antiphon.hub")

LONGEST_LOOK = 30.0


class IdleReaper:
    def __init__(self, registry: SessionRegistry, hub: HubContext, idle: float) -> None:
        """`idle`: seconds without an event after which an agent is stopped; 0 for never."""
        self._registry = registry
        self._hub = hub
        self._idle = idle
        self._quiet: dict[ServedSession, tuple[tuple[int, int], float]] = {}
        """Since when nothing has happened, and what had happened by then: events and uses."""

    async def run(self) -> None:
        """Look at the sessions from time to time, until this is cancelled."""
        while self._idle:
            await asyncio.sleep(min(self._idle / 4, LONGEST_LOOK))
            await self.look(time.monotonic())

    async def look(self, now: float) -> None:
        """Stop and release what has been idle for long enough by `now`."""
        sessions = [session for session in self._registry.sessions if session.parent is None]
        before, self._quiet = self._quiet, {}
        for session in sessions:
            happened, since = before.get(session, ((-1, -1), now))
            if happened != _happened(session) or not is_quiet(session):
                happened, since = _happened(session), now
            self._quiet[session] = (happened, since)
        for session, (happened, since) in tuple(self._quiet.items()):
            still = happened == _happened(session) and is_quiet(session)
            if still and now - since >= self._idle:
                await self._rest(session)
        self._hub.upstreams.let_spares_go(before=now - self._idle)

    async def _rest(self, session: ServedSession) -> None:
        worker = worker_of(session)
        if worker.binding.at_agent is not None:
            if not self._comes_back(worker):
                return
            logger.info("session %s idle: its agent is stopped", session.id)
            worker.leave_agent()
        if not session.clients():
            self._quiet.pop(session, None)
            await self._registry.release(session)

    def _comes_back(self, worker: UpstreamWorker) -> bool:
        at_agent = worker.binding.at_agent
        if at_agent is None or worker.binding.agent in self._hub.upstreams.forgetful:
            return False
        able = at_agent.abilities
        return (able.resume or able.load) and able.ours.keeps


def _happened(session: ServedSession) -> tuple[int, int]:
    return session.fold.last_seq, worker_of(session).uses


def is_quiet(session: ServedSession) -> bool:
    """Whether nothing of a session is open."""
    fold, worker = session.fold, worker_of(session)
    return not (
        session.new  # the client that begins it is not attached yet
        or fold.turn is not None
        or fold.background
        or fold.questions.open
        or fold.prompts.queued
        or fold.prompts.sent
        or worker.dispatcher.busy
        or worker.binding.busy
        or any(subagent.working for subagent in fold.subagents)
        or any(not terminal.exited for terminal in fold.terminals)
    )
