"""Extension methods through the hub, both ways: what client and agent have agreed on is none of its business
but for the ids of sessions, which each side knows by its own (EXT-01, 24.2).

What names a session goes to its agent, or to the clients attached to it; what names none goes to the agent
that works unless another is chosen, or to all clients of the agent's sessions. Our own methods stay here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from antiphon.agent.extending import ask_clients, session_in, tell_clients
from antiphon.agent.link import Link
from antiphon.agent.session import AgentSession
from antiphon.client import Client
from antiphon.errors import AntiphonError, CallFailed, MethodNotFound, RequestError
from antiphon.hub.faults import told
from antiphon.hub.session import HubSession
from antiphon.hub.sessions import HubSessions
from antiphon.jsonrpc.peer import Inbound

if TYPE_CHECKING:
    from antiphon.hub.upstream import Upstream

logger = logging.getLogger("antiphon.hub")

OURS = "_antiphon/"
WAITING = 1000
"""How many notifications may wait for clients that are behind; more are dropped, as nothing keeps them."""


class Extended(HubSessions):
    """Clients ask, and tell, the agents."""

    async def extended(self, link: Link, method: str, params: Any) -> Any:
        if method.startswith(OURS):
            return await self.own(link, method, params)
        session = session_in(link, params)
        try:
            client, there = await self._reach(session)
            result = await client.connection.call(method, _renamed(params, there))
        except (AntiphonError, OSError) as error:
            raise told(error) from error
        return _renamed(result, _back(params, there))

    async def own(self, link: Link, method: str, params: Any) -> Any:
        """One of our own, which no agent behind the hub has anything to do with."""
        raise MethodNotFound(method)

    async def extension_notified(self, link: Link, method: str, params: Any) -> None:
        if method.startswith(OURS):
            return
        client, there = await self._reach(session_in(link, params))
        await client.connection.notify(method, _renamed(params, there))

    async def _reach(self, session: AgentSession | None) -> tuple[Client, str | None]:
        """The agent, and the id that it knows the session by, if one is named."""
        if isinstance(session, HubSession):
            course = await session.standing.bring()
            return course.session.client, course.session.id
        return (await self.upstreams.spare(self.default)).client, None


class Passed:
    """Agents ask, and tell, the clients: everybody who is attached, of whom the first answer counts."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._client: Client
        self._waiting = 0

    def begin(self, client: Client) -> None:
        self._client = client
        client.connection.handlers.on_extension = self._asked
        client.connection.handlers.on_extension_notified = self._told

    async def _asked(self, params: Any, inbound: Inbound) -> Any:
        named, here, links = self._clients(inbound.method, params)
        try:
            result = await ask_clients(links, here, inbound.method, _renamed(params, here))
        except CallFailed as error:
            raise RequestError(error.error.code, error.error.message, data=error.error.data) from error
        result = _renamed(result, named, only=here)
        self._client.connection.answer(inbound, result)
        return result

    def _told(self, method: str, params: Any) -> None:
        if self._waiting >= WAITING:
            logger.warning("a %s was dropped: the clients are behind", method)
            return
        with suppress(MethodNotFound):
            _, here, links = self._clients(method, params)
            self._client.connection.start_soon(self._tell(links, here, method, params))

    async def _tell(self, links: list[Link], here: str | None, method: str, params: Any) -> None:
        self._waiting += 1
        try:
            await tell_clients(links, here, method, _renamed(params, here))
        finally:
            self._waiting -= 1

    def _clients(self, method: str, params: Any) -> tuple[str | None, str | None, list[Link]]:
        """The session that is named there, and here, and who is attached to it."""
        if method.startswith(OURS):
            raise MethodNotFound(method)
        named = params.get("sessionId") if isinstance(params, dict) else None
        if not isinstance(named, str):
            return None, None, _unique(self._upstream.hearers)
        course = self._upstream.find(named)
        hears = None if course is None else course.hears
        if hears is None:
            raise MethodNotFound(method)  # nobody is there who could know it
        return named, hears.id, hears.clients()


def _unique(sessions: Iterable[Any]) -> list[Link]:
    links = {link.serial: link for session in sessions for link in session.clients()}
    return [links[serial] for serial in sorted(links)]


def _back(params: Any, there: str | None) -> str | None:
    return None if there is None else params["sessionId"]


def _renamed(value: Any, session_id: str | None, *, only: str | None = None) -> Any:
    """Params, or a result, that name a session: by the id that it has on the other side."""
    if session_id is None or not isinstance(value, dict) or not isinstance(value.get("sessionId"), str):
        return value
    return value if only not in (None, value["sessionId"]) else {**value, "sessionId": session_id}
