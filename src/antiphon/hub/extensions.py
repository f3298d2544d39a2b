"""Extension methods through the hub, both ways: what client and agent have agreed on is none of its business
but for the ids of sessions, which each side knows by its own (EXT-01, 24.2).

What names a session goes to its agent, or to the clients attached to it; what names none goes to the agent
that works unless another is chosen, or to all clients of the agent's sessions. Our own methods stay here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from antiphon.agent.extending import ask_clients, session_in
from antiphon.agent.link import Link
from antiphon.agent.permits import askable
from antiphon.agent.session import AgentSession
from antiphon.client import Client
from antiphon.connection import Connection
from antiphon.errors import AntiphonError, CallFailed, MethodNotFound, RequestError
from antiphon.hub.course import LONGEST_WAIT, Course
from antiphon.hub.faults import to_request_error
from antiphon.hub.session import HubSession
from antiphon.hub.sessions import HubSessions
from antiphon.jsonrpc.peer import Inbound
from antiphon.live.voice import Voice

if TYPE_CHECKING:
    from antiphon.hub.upstream import Upstream

OURS = "_antiphon/"


class Extended(HubSessions):
    """Clients ask, and tell, the agents."""

    async def extended(self, link: Link, method: str, params: Any) -> Any:
        if method.startswith(OURS):
            return await self.own(link, method, params)
        session = session_in(link, params)
        try:
            connection, there = await self._reach(session)
            result = await connection.call(method, _renamed(params, there))
        except (AntiphonError, OSError) as error:
            raise to_request_error(error) from error
        return _renamed(result, _back(params, there))

    async def own(self, link: Link, method: str, params: Any) -> Any:
        """One of our own, which no agent behind the hub has anything to do with."""
        raise MethodNotFound(method)

    async def extension_notified(self, link: Link, method: str, params: Any) -> None:
        if method.startswith(OURS):
            return
        connection, there = await self._reach(session_in(link, params))
        await connection.notify(method, _renamed(params, there))

    async def _reach(self, session: AgentSession | None) -> tuple[Connection, str | None]:
        """The agent, and the id that it knows the session by, if one is named."""
        if isinstance(session, HubSession):
            course = await session.standing.bring()
            return course.session.client.connection, course.session.id
        return (await self.upstreams.spare(self.default)).client.connection, None


class Passed:
    """Agents ask the clients that are attached and may act, of whom the first answer counts, and tell all
    clients that are attached."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._client: Client

    def begin(self, client: Client) -> None:
        self._client = client
        client.connection.handlers.on_extension = self._asked
        client.connection.handlers.on_extension_notified = self._notified
        client.connection.handlers.in_one_stream = True

    async def _asked(self, params: Any, inbound: Inbound) -> Any:
        named, here, links = await self._clients(inbound.method, params)
        try:
            result = await ask_clients(links, here, inbound.method, _renamed(params, here))
        except CallFailed as error:
            raise RequestError(error.error.code, error.error.message, data=error.error.data) from error
        result = _renamed(result, named, only=here)
        self._client.connection.answer(inbound, result)
        return result

    def _notified(self, method: str, params: Any) -> None:
        """In the lane of the session that is named: behind what the agent sent before, and before all
        else."""
        if method.startswith(OURS):
            return
        named = params.get("sessionId") if isinstance(params, dict) else None
        if not isinstance(named, str):
            self._tell_all(method, params)
            return
        course = self._upstream.find(named)
        if course is not None:
            course.notified(method, params)
        else:
            self._client._opener.keep(named, lambda: self._notified(method, params))

    def _tell_all(self, method: str, params: Any) -> None:
        """To every client once, behind what it is sent of each of the agent's sessions that it follows."""
        places: dict[Link, list[tuple[Voice, int]]] = {}
        for hears in self._upstream.hearers:
            for link in hears.clients():
                places.setdefault(link, []).append((link.voices[hears.id], hears.fold.last_seq))
        for voices in places.values():
            _notify_behind(voices, method, params)
        if places:
            return
        for course in self._upstream.courses:  # the client that begins one may not be there yet
            course.notified(method, params)
        if not self._upstream.courses:
            self._client._opener.keep_unnamed(lambda: self._tell_all(method, params))

    async def _clients(self, method: str, params: Any) -> tuple[str | None, str | None, list[Link]]:
        """The session that is named there, and here, and who is attached to it."""
        if method.startswith(OURS):
            raise MethodNotFound(method)
        named = params.get("sessionId") if isinstance(params, dict) else None
        if not isinstance(named, str):
            if not _unique(self._upstream.hearers):
                await self._wait_for_clients(lambda: self._upstream.courses)
            return None, None, _unique(self._upstream.hearers)
        await self._wait_for_clients(lambda: _present(self._upstream.find(named)))
        course = self._upstream.find(named)
        hears = None if course is None else course.hears
        if hears is None:
            raise MethodNotFound(method)  # nobody is there who could know it
        return named, hears.id, askable(hears)

    async def _wait_for_clients(self, courses: Callable[[], list[Course]]) -> None:
        """Wait for the client that begins a session: an agent may ask before that client is attached. The
        wait is bounded, because the agent may need the answer to open the session."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_WAIT):
                await self._client._opener.wait_until(lambda: bool(courses()))
                for course in courses():
                    await course.followed()


def _present(course: Course | None) -> list[Course]:
    return [] if course is None else [course]


def _notify_behind(places: Sequence[tuple[Voice, int]], method: str, params: Any) -> None:
    """Notify one client behind the events that are given of each of its sessions."""
    (voice, seq), *others = places
    if others:
        voice.send_at(seq, 0, lambda: _notify_behind(others, method, params))
    else:
        voice.notify_at(seq, method, params)


def _unique(sessions: Iterable[Any]) -> list[Link]:
    links = {link.serial: link for session in sessions for link in askable(session)}
    return [links[serial] for serial in sorted(links)]


def _back(params: Any, there: str | None) -> str | None:
    return None if there is None else params["sessionId"]


def _renamed(value: Any, session_id: str | None, *, only: str | None = None) -> Any:
    """Params, or a result, that name a session: by the id that it has on the other side."""
    if session_id is None or not isinstance(value, dict) or not isinstance(value.get("sessionId"), str):
        return value
    return value if only not in (None, value["sessionId"]) else {**value, "sessionId": session_id}
