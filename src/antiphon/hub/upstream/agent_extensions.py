"""AgentExtensions: extension methods and notifications of an agent, for the clients of its sessions.

A method that names a session goes to the clients attached to it; one that names none goes to all clients of
the agent's sessions. Each side knows a session by its own id (EXT-01, 24.2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from antiphon.client.protocol.agent_connection import AgentConnection
from antiphon.errors import CallFailed, MethodNotFound
from antiphon.hub.upstream.errors import to_request_error
from antiphon.hub.upstream.session import UpstreamSession
from antiphon.hub.upstream.worker_feed import LONGEST_WAIT, Notified
from antiphon.jsonrpc.peer import Inbound
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.schema.methods import OWN
from antiphon.server.client_calls import ask_first
from antiphon.server.connection import ClientConnection
from antiphon.server.session import ServedSession


class AgentExtensions:
    """A request goes to all attached clients that may act, and the first answer counts. A notification goes
    to all attached clients."""

    def __init__(self, agent: AgentConnection[UpstreamSession]) -> None:
        """`agent` is initialized."""
        self._agent = agent
        handlers = agent.connection.handlers
        handlers.on_extension = self._asked
        handlers.on_extension_notified = self._notified
        handlers.in_one_stream = True

    @property
    def _open(self) -> list[UpstreamSession]:
        """The sessions of the agent that the hub has not left."""
        return [session for session in self._agent.sessions.values() if session.feed.ended is None]

    def _find(self, session_id: str) -> UpstreamSession | None:
        session = self._agent.find(session_id)
        return None if session is None or session.feed.ended is not None else session

    @property
    def _served(self) -> list[ServedSession]:
        """The hub sessions that the agent works for."""
        return [session.feed.worker.session for session in self._open if session.feed.worker is not None]

    async def _asked(self, params: Any, inbound: Inbound) -> Any:
        named, here, links = await self._clients(inbound.method, params)
        try:
            result = await ask_first(links, here, inbound.method, renamed(params, here))
        except CallFailed as error:
            raise to_request_error(error) from error
        result = renamed(result, named, only=here)
        self._agent.connection.answer(inbound, result)
        return result

    def _notified(self, method: str, params: Any) -> None:
        """Pass a notification on, in the lane of its session: after everything that the agent sent before."""
        if method.startswith(OWN):
            return
        named = params.get("sessionId") if isinstance(params, dict) else None
        if not isinstance(named, str):
            self._notify_all(method, params)
            return
        found = self._find(named)
        if found is not None:
            found.feed.add(Notified(method, params))
        else:
            self._agent.opener.keep(named, lambda: self._notified(method, params))

    def _notify_all(self, method: str, params: Any) -> None:
        """Notify every client once, after the committed events of each session that it follows."""
        places: dict[ClientConnection, list[tuple[AttachmentWriter, int]]] = {}
        for session in self._served:
            for client in session.clients():
                places.setdefault(client, []).append((client.voices[session.id], session.fold.last_seq))
        for voices in places.values():
            _notify_behind(voices, method, params)
        if places:
            return
        for found in self._open:  # the client that begins one may not be there yet
            found.feed.add(Notified(method, params))
        if not self._open:
            self._agent.opener.keep_unnamed(lambda: self._notify_all(method, params))

    async def _clients(
        self, method: str, params: Any
    ) -> tuple[str | None, str | None, list[ClientConnection]]:
        """Return the session's id at the agent and here, and the clients to ask."""
        if method.startswith(OWN):
            raise MethodNotFound(method)
        named = params.get("sessionId") if isinstance(params, dict) else None
        if not isinstance(named, str):
            if not _unique(self._served):
                await self._wait_for_clients(lambda: self._open)
            return None, None, _unique(self._served)
        await self._wait_for_clients(lambda: [*filter(None, [self._find(named)])])
        found = self._find(named)
        session = None if found is None or found.feed.worker is None else found.feed.worker.session
        if session is None:
            raise MethodNotFound(method)  # no attached client could know it
        return named, session.id, session.askable()

    async def _wait_for_clients(self, opened: Callable[[], list[UpstreamSession]]) -> None:
        """Wait for the client that begins a session: an agent may ask before that client is attached. The
        wait is bounded, because the agent may need the answer to open the session."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_WAIT):
                await self._agent.opener.wait_until(lambda: bool(opened()))
                for found in opened():
                    await found.feed.followed()


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


def renamed(value: Any, session_id: str | None, *, only: str | None = None) -> Any:
    """Params, or a result, that name a session: by the id that it has on the other side."""
    if session_id is None or not isinstance(value, dict) or not isinstance(value.get("sessionId"), str):
        return value
    return value if only not in (None, value["sessionId"]) else {**value, "sessionId": session_id}
