"""UpstreamPool: the agents that run behind a hub, each owned here from its start to its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from antiphon.errors import InvalidParams, RequestError
from antiphon.hub.upstream.agent_states import AgentStates
from antiphon.hub.upstream.session import UpstreamSession
from antiphon.hub.upstream.target import Target
from antiphon.hub.upstream.upstream import Upstream

Start = Callable[[str], Upstream]


class UpstreamPool:
    """A process for each session, or with `share` one for all sessions of an agent."""

    def __init__(self, targets: Mapping[str, Target], start: Start, *, share: bool) -> None:
        self.targets = targets
        """The agents by name, the default first."""
        self.states = AgentStates()
        self._start = start
        self._share = share
        self.forgetful: set[str] = set()
        """Agents that could not open a session again."""
        self._apart: set[str] = set()
        """Agents that cannot tell several sessions apart."""
        self._running: set[Upstream] = set()

    def __len__(self) -> int:
        return len(self._running)

    def of(self, name: str) -> list[Upstream]:
        """Return the initialized, running processes of one agent."""
        return [upstream for upstream in self._alive(name) if upstream.ready]

    def _alive(self, name: str) -> list[Upstream]:
        return [upstream for upstream in self._running if upstream.name == name and upstream.alive]

    async def take(self, name: str) -> Upstream:
        """Return an initialized agent for one more session: an unused one, unless agents are shared. Raises
        the error that kept it from starting."""
        upstream = self._find(name)
        upstream.users += 1
        try:
            await upstream.started()
        except BaseException:
            self.let_go(upstream)
            raise
        return upstream

    async def spare(self, name: str) -> Upstream:
        """Return a running agent that can take another session, without reserving it."""
        upstream = self._find(name)
        upstream.touched = time.monotonic()
        try:
            await upstream.started()
        except BaseException:
            if not upstream.users:
                self._end(upstream)
            raise
        return upstream

    def _find(self, name: str) -> Upstream:
        if name not in self.targets:
            raise RequestError(InvalidParams.code, f"this hub has no agent {name!r} (any more)")
        for upstream in self._alive(name):
            if upstream.mixes:
                self._apart.add(name)
            if not upstream.users or (self._share and name not in self._apart):
                return upstream
        made = self._start(name)
        made.launch()
        self._running.add(made)
        return made

    def let_spares_go(self, *, before: float) -> None:
        """End the processes that no session uses and that were last used `before` this time."""
        for upstream in tuple(self._running):
            idle = not upstream.users and upstream.ready and upstream.asks is None
            if idle and upstream.alive and upstream.touched <= before and not upstream.logged_in:
                self._end(upstream)

    def join(self, upstream: Upstream) -> None:
        """Count one more session of a process: a fork of a session that it works for."""
        upstream.users += 1

    def let_go(self, upstream: Upstream, session: UpstreamSession | None = None) -> None:
        """Count one session less, leave it if it was opened, and end the agent after the last one."""
        if session is not None:
            upstream.leave(session)
        upstream.users -= 1
        if not upstream.users:
            self._end(upstream)

    def _end(self, upstream: Upstream) -> None:
        upstream.stop().add_done_callback(lambda _: self._running.discard(upstream))

    async def aclose(self) -> None:
        """End all agents at once: a slow one does not delay the others."""
        tasks = [upstream.stop() for upstream in self._running]
        if tasks:
            await asyncio.wait(tasks)
