"""Children: the sessions that work for one of the hub's at its agent. Each has a session of its own here, as
any subagent has: it is announced, followed and kept (SUB-01)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from antiphon.agent.session import new_id
from antiphon.agent.subagents import follow
from antiphon.engine.subagents import renamed
from antiphon.errors import RequestError
from antiphon.hub.course import Course
from antiphon.hub.upstream import Upstream
from antiphon.schema import v2

if TYPE_CHECKING:
    from antiphon.hub.session import HubSession
    from antiphon.hub.sessions import HubSessions


logger = logging.getLogger("antiphon.hub")


class Children:
    def __init__(self, session: HubSession, hub: HubSessions) -> None:
        self._session = session
        self._hub = hub
        self._upstream: Upstream | None = None
        self._names: dict[str, str] = {}
        """The sessions here by their ids at the agent: this one, those that work for it, and so on."""
        self._own: dict[str, HubSession] = {}

    def stand(self, upstream: Upstream, course: Course, names: dict[str, str] | None = None) -> None:
        """The session is at an agent; what it knew of another one there is over."""
        self._upstream = upstream
        self._names = {} if names is None else names
        self._names[course.session.id] = self._session.id

    def update(self, update: Any) -> Any:
        """What the agent says of its sessions, with the ids that they have here."""
        if isinstance(update, v2.SubagentUpdate):
            self._announce(update)
        return renamed(update, self._here)

    def _here(self, id: str) -> str:
        return self._names.get(id, id)

    def _announce(self, update: v2.SubagentUpdate) -> None:
        if update.session_id not in self._names:
            id = self._names[update.session_id] = new_id("sess")
            cwd = update.cwd if isinstance(update.cwd, str) else self._session.cwd
            self._session.soon(self._begin(update.session_id, id, cwd))

    def told(self, update: v2.SubagentUpdate) -> None:
        """It has been announced, or announced otherwise."""
        child, info = self._own.get(update.session_id), self._session.fold.subagents.get(update.session_id)
        if child is not None and info is not None:
            child.cancellable = info.can_cancel

    async def _begin(self, there: str, id: str, cwd: str) -> None:
        """What came of it meanwhile is kept by its course."""
        parent, upstream = self._session, self._upstream
        course = None if upstream is None else upstream.find(there)
        if upstream is None or course is None:
            return
        announced = parent.fold.last_seq
        try:
            child: Any = await self._hub.create_subagent(parent, cwd, session_id=id)
        except RequestError as error:  # the hub has no room for it: it works unseen
            logger.warning("subagent of %s is not followed: %s", parent.id, error)
            course.cut()
            return
        if upstream is not self._upstream:  # the agent was lost
            child.retire()
            return
        info = parent.fold.subagents.get(id)
        child.parent, child.cancellable = parent, info is not None and info.can_cancel
        self._own[id] = child
        child.standing.follow(course)
        child.children.stand(upstream, course, self._names)
        course.lead(child, early=True)
        for link in parent.clients():
            follow(link, parent, child, announced)

    def end(self) -> None:
        """The agent is not there any more, and nobody works for the session."""
        self._upstream = None
        children, self._own = self._own, {}
        for child in children.values():
            child.children.end()
            child.retire()
