"""UpstreamSubagents: the sessions that work for a hub session at its agent. Each has a session of its own
here: it is announced, followed and kept (SUB-01)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from antiphon.engine.subagents import renamed
from antiphon.errors import RequestError
from antiphon.hub.upstream.session import UpstreamSession
from antiphon.hub.upstream.upstream import Upstream
from antiphon.schema import v2
from antiphon.server.ids import new_id
from antiphon.server.registry import SessionRegistry
from antiphon.server.session import ServedSession
from antiphon.server.subagents import follow as attach_client

logger = logging.getLogger("antiphon.hub")


Join = Callable[[ServedSession, Upstream, UpstreamSession, dict[str, str]], None]


class UpstreamSubagents:
    def __init__(
        self,
        session: ServedSession,
        registry: SessionRegistry,
        *,
        join: Join,
        leave: Callable[[ServedSession], None],
    ) -> None:
        """`join` lets a subagent's session work at the agent of this one, with the session ids here by those
        at the agent; `leave` ends that."""
        self._session = session
        self._registry = registry
        self._join = join
        self._leave = leave
        self._upstream: Upstream | None = None
        self._names: dict[str, str] = {}
        """The sessions here by their ids at the agent: this one, those that work for it, and so on."""
        self._children: dict[str, ServedSession] = {}

    def follow(
        self, upstream: Upstream, at_agent: UpstreamSession, names: dict[str, str] | None = None
    ) -> None:
        """Follow the subagents of a session at an agent; those of an earlier one are over."""
        self._upstream = upstream
        self._names = {} if names is None else names
        self._names[at_agent.id] = self._session.id

    def update(self, update: Any) -> Any:
        """Return an update with the ids that sessions have here. Begins a session that it announces."""
        if isinstance(update, v2.SubagentUpdate):
            self._announce(update)
        return renamed(update, self._here)

    def _here(self, id: str) -> str:
        return self._names.get(id, id)

    def _announce(self, update: v2.SubagentUpdate) -> None:
        if update.session_id not in self._names:
            id = self._names[update.session_id] = new_id("sess")
            cwd = update.cwd if isinstance(update.cwd, str) else self._session.cwd
            self._session.tasks.start_soon(self._begin(update.session_id, id, cwd))

    def committed(self, update: v2.SubagentUpdate) -> None:
        """Note that an announcement was committed."""
        child, info = (
            self._children.get(update.session_id),
            self._session.fold.subagents.get(update.session_id),
        )
        if child is not None and info is not None:
            child.cancellable = info.can_cancel

    async def _begin(self, there: str, id: str, cwd: str) -> None:
        """Make the session of a subagent. Its feed keeps what the agent sends meanwhile."""
        parent, upstream = self._session, self._upstream
        at_agent = None if upstream is None else upstream.agent.find(there)
        if upstream is None or at_agent is None:
            return
        announced = parent.fold.last_seq
        try:
            child = await self._registry.create_subagent(parent, cwd, session_id=id)
        except RequestError as error:  # the hub has no room for it: clients do not see it
            logger.warning("subagent of %s is not followed: %s", parent.id, error)
            at_agent.feed.cut()
            return
        if upstream is not self._upstream:  # the agent was lost
            self._registry.retire(child)
            return
        info = parent.fold.subagents.get(id)
        child.parent, child.cancellable = parent, info is not None and info.can_cancel
        self._children[id] = child
        self._join(child, upstream, at_agent, self._names)
        for client in parent.clients():
            attach_client(self._registry, client, parent, child, announced)

    def end(self) -> None:
        """Retire the subagents: the agent is gone."""
        self._upstream = None
        children, self._children = self._children, {}
        for child in children.values():
            self._leave(child)
            self._registry.retire(child)
