"""Extension methods through the hub, both ways: what client and agent have agreed on is none of its business
but for the ids of sessions, which each side knows by its own (EXT-01, 24.2).

What names a session goes to its agent, or to the clients attached to it; what names none goes to the agent
that works unless another is chosen, or to all clients of the agent's sessions. Our own methods stay here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from antiphon.client import Client
from antiphon.connection import Connection
from antiphon.errors import AntiphonError, CallFailed, MethodNotFound, RequestError
from antiphon.hub.upstream.errors import to_request_error
from antiphon.hub.upstream.feed import LONGEST_WAIT, UpstreamFeed
from antiphon.hub.upstream.pool import UpstreamPool
from antiphon.hub.upstream.upstream import Upstream
from antiphon.jsonrpc.peer import Inbound
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.server.client_calls import ask_first
from antiphon.server.connection import ClientConnection
from antiphon.server.method import OURS
from antiphon.server.request import FindSession
from antiphon.server.session import ServedSession

OwnMethods = Callable[[str, Any], Awaitable[Any]]
"""Answers a method of our own, which no agent has anything to do with. Raises `MethodNotFound`."""


class Reachable(Protocol):
    """A session that is worked on at an agent."""

    async def bring(self) -> UpstreamFeed:
        """The session at its agent, which is started if it does not run."""


class ExtensionRelay:
    """Passes extension methods and notifications of clients on to the agents."""

    def __init__(
        self,
        upstreams: UpstreamPool,
        default: str,
        own: OwnMethods,
        reachable: Callable[[ServedSession], Reachable],
    ) -> None:
        """`default`: the agent for what names no session. `reachable` returns how a session is reached."""
        self._upstreams = upstreams
        self._default = default
        self._own = own
        self._reachable = reachable

    async def call(self, find: FindSession, method: str, params: Any) -> Any:
        if method.startswith(OURS):
            return await self._own(method, params)
        named = find()
        try:
            connection, there = await self._reach(named)
            result = await connection.call(method, _renamed(params, there))
        except (AntiphonError, OSError) as error:
            raise to_request_error(error) from error
        return _renamed(result, _back(params, there))

    async def notified(self, find: FindSession, method: str, params: Any) -> None:
        if not method.startswith(OURS):
            connection, there = await self._reach(find())
            await connection.notify(method, _renamed(params, there))

    async def _reach(self, named: ServedSession | None) -> tuple[Connection, str | None]:
        """Return the agent, and the id that it has for the session, if one is named."""
        if named is not None:
            feed = await self._reachable(named).bring()
            return feed.session.client.connection, feed.session.id
        return (await self._upstreams.spare(self._default)).client.connection, None


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
            result = await ask_first(links, here, inbound.method, _renamed(params, here))
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
        feed = self._upstream.find(named)
        if feed is not None:
            feed.notified(method, params)
        else:
            self._client._opener.keep(named, lambda: self._notified(method, params))

    def _tell_all(self, method: str, params: Any) -> None:
        """To every client once, behind what it is sent of each of the agent's sessions that it follows."""
        places: dict[ClientConnection, list[tuple[AttachmentWriter, int]]] = {}
        for session in self._upstream.sessions:
            for client in session.clients():
                places.setdefault(client, []).append((client.voices[session.id], session.fold.last_seq))
        for voices in places.values():
            _notify_behind(voices, method, params)
        if places:
            return
        for feed in self._upstream.feeds:  # the client that begins one may not be there yet
            feed.notified(method, params)
        if not self._upstream.feeds:
            self._client._opener.keep_unnamed(lambda: self._tell_all(method, params))

    async def _clients(
        self, method: str, params: Any
    ) -> tuple[str | None, str | None, list[ClientConnection]]:
        """The session that is named there, and here, and who is attached to it."""
        if method.startswith(OURS):
            raise MethodNotFound(method)
        named = params.get("sessionId") if isinstance(params, dict) else None
        if not isinstance(named, str):
            if not _unique(self._upstream.sessions):
                await self._wait_for_clients(lambda: self._upstream.feeds)
            return None, None, _unique(self._upstream.sessions)
        await self._wait_for_clients(lambda: _present(self._upstream.find(named)))
        feed = self._upstream.find(named)
        session = None if feed is None or feed.reader is None else feed.reader.session
        if session is None:
            raise MethodNotFound(method)  # no client is there that could know it
        return named, session.id, session.askable()

    async def _wait_for_clients(self, feeds: Callable[[], list[UpstreamFeed]]) -> None:
        """Wait for the client that begins a session: an agent may ask before that client is attached. The
        wait is bounded, because the agent may need the answer to open the session."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_WAIT):
                await self._client._opener.wait_until(lambda: bool(feeds()))
                for feed in feeds():
                    await feed.followed()


def _present(feed: UpstreamFeed | None) -> list[UpstreamFeed]:
    return [] if feed is None else [feed]


def _notify_behind(places: Sequence[tuple[AttachmentWriter, int]], method: str, params: Any) -> None:
    """Notify one client behind the events that are given of each of its sessions."""
    (voice, seq), *others = places
    if others:
        voice.send_at(seq, 0, lambda: _notify_behind(others, method, params))
    else:
        voice.notify_at(seq, method, params)


def _unique(sessions: Iterable[ServedSession]) -> list[ClientConnection]:
    clients = {client.serial: client for session in sessions for client in session.askable()}
    return [clients[serial] for serial in sorted(clients)]


def _back(params: Any, there: str | None) -> str | None:
    return None if there is None else params["sessionId"]


def _renamed(value: Any, session_id: str | None, *, only: str | None = None) -> Any:
    """Params, or a result, that name a session: by the id that it has on the other side."""
    if session_id is None or not isinstance(value, dict) or not isinstance(value.get("sessionId"), str):
        return value
    return value if only not in (None, value["sessionId"]) else {**value, "sessionId": session_id}
