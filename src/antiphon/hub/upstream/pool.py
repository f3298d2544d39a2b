"""UpstreamPool: the agents that run behind a hub, each owned here from its start to its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from antiphon.errors import InvalidParams, RequestError
from antiphon.hub.upstream.target import Target
from antiphon.hub.upstream.upstream import Upstream

Start = Callable[[str], Upstream]


class UpstreamPool:
    """A process for each session, or with `share` one for all sessions of an agent."""

    def __init__(self, targets: Mapping[str, Target], start: Start, *, share: bool) -> None:
        self._targets = targets
        self._start = start
        self._share = share
        self.forgetful: set[str] = set()
        """Agents that could not bring a session back."""
        self._apart: set[str] = set()
        """Agents that cannot tell several sessions apart."""
        self._running: set[Upstream] = set()

    def __len__(self) -> int:
        return len(self._running)

    def of(self, name: str) -> list[Upstream]:
        """Those of one agent that are initialized and run."""
        return [upstream for upstream in self._alive(name) if upstream.ready]

    def _alive(self, name: str) -> list[Upstream]:
        return [upstream for upstream in self._running if upstream.name == name and upstream.alive]

    async def take(self, name: str) -> Upstream:
        """An agent for one more session, initialized: nobody else's, unless they are shared. Raises what kept
        it from starting."""
        upstream = self._find(name)
        upstream.users += 1
        try:
            await upstream.started()
        except BaseException:
            self.let_go(upstream)
            raise
        return upstream

    async def spare(self, name: str) -> Upstream:
        """One that runs and can take another session; until then it is nobody's."""
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
        if name not in self._targets:
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
        """End those that no session uses and that were last wanted `before` this time."""
        for upstream in tuple(self._running):
            idle = not upstream.users and upstream.ready and upstream.asks is None
            if idle and upstream.alive and upstream.touched <= before and not upstream.logged_in:
                self._end(upstream)

    def join(self, upstream: Upstream) -> None:
        """Another session is there, made by one that it works for."""
        upstream.users += 1

    def let_go(self, upstream: Upstream) -> None:
        """One session needs it no longer."""
        upstream.users -= 1
        if not upstream.users:
            self._end(upstream)

    def _end(self, upstream: Upstream) -> None:
        upstream.stop().add_done_callback(lambda _: self._running.discard(upstream))

    async def aclose(self) -> None:
        """Every agent at once: one that takes its time does not hold up the others."""
        tasks = [upstream.stop() for upstream in self._running]
        if tasks:
            await asyncio.wait(tasks)
