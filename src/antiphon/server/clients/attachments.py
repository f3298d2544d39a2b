"""Attachments: bind the clients of a server to sessions, and detach them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from antiphon.engine.questions import Question
from antiphon.errors import ResourceNotFound
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.server.connection import ClientConnection, ClientInfo
from antiphon.server.distant.session import AnySession
from antiphon.server.session import ServedSession
from antiphon.server.tasks import ServerTasks

LAST_UPDATES = 2.0
"""Seconds that a client gets to read the last updates of a session that is closed, or to join a subagent
whose work is over already."""
LAST_UPDATES_BEFORE_ANSWER = 20.0
"""The same for the client that asked for the close, counted from the last update that it read: its answer may
not come before the end of the work."""


class Attachments:
    def __init__(
        self,
        connections: Collection[ClientConnection],
        tasks: ServerTasks,
        *,
        find: Callable[[str], ServedSession | None],
        serving: Callable[[str], AnySession | None],
        left: Callable[[str], None],
        moves: bool,
    ) -> None:
        """Manage the attachments of all clients of a server.

        connections: all clients of the server
        find: returns a session that is open and owned here
        serving: returns a session that is open here, wherever it is worked on
        left: called with the id of a session that a client was detached from
        moves: whether a session may move to another server while its clients stay
        """
        self.connections = connections
        self._tasks = tasks
        self._find = find
        self._serving = serving
        self._left = left
        self._moves = moves
        self._closing: set[tuple[ClientConnection, str]] = set()
        """Clients that wait for the answer to a close of a session."""

    def new_voice(
        self, connection: ClientConnection, session_id: str, info: ClientInfo | None = None
    ) -> AttachmentWriter:
        def failed() -> None:
            self._tasks.ends.start_soon(self._detach_failed(connection, session_id, voice))

        voice = connection.new_voice(
            session_id, info, answers=partial(self._is_asked, connection, session_id), on_failed=failed
        )
        return voice

    def pin(self, voice: AttachmentWriter, session: AnySession, **where: Any) -> None:
        """Bind an attachment to a session (`AttachmentWriter.pin`)."""
        voice.pin(session.feed, session.control.answer, moves=self._moves, **where)

    def _is_asked(self, connection: ClientConnection, session_id: str, question: Question) -> bool:
        session = self._serving(session_id)
        return session is not None and connection.policy.answers(
            session, question, client_id=connection.client_id
        )

    def attached(self, connection: ClientConnection, session_id: str) -> tuple[AttachmentWriter, AnySession]:
        """Return a client's attachment to a session, and the session. Raises `ResourceNotFound`."""
        voice, session = connection.voices.get(session_id), self._serving(session_id)
        if voice is None or session is None or session.closing or not voice.follows(session.feed):
            # RPC-25, SESS-56: a session that was not opened here, or is being closed, is not active here.
            raise ResourceNotFound("no such session is active here", data={"sessionId": session_id})
        return voice, session

    def closing_voice(self, connection: ClientConnection, session_id: str) -> AttachmentWriter | None:
        """Return a client's attachment to a session that is being closed."""
        session = self._find(session_id)
        return connection.voices.get(session_id) if session is not None and session.closing else None

    def has_others(self, connection: ClientConnection, session_id: str) -> bool:
        """Return whether clients of other connections are attached to a session, here or elsewhere."""
        session = self._serving(session_id)
        if session is not None:
            presence = session.feed.presence
            if len(presence.clients()) > len(presence.local_clients()):
                return True
        return any(other is not connection and other.follows(session_id) for other in self.connections)

    # --- detaching ---------------------------------------------------------------------------------

    async def detach(self, connection: ClientConnection, *session_ids: str, closed: bool = False) -> None:
        """Detach a client from sessions, which are `closed` or go on without it. Its prompts are answered
        first: a client that is not attached gets no answer from its attachment."""
        async with connection.moving:  # an attachment that is being moved is left where it arrives
            await self._detach(connection, session_ids, closed=closed)

    async def _detach_failed(
        self, connection: ClientConnection, session_id: str, voice: AttachmentWriter
    ) -> None:
        """Detach a client from a session whose updates cannot be written for it, unless another attachment
        has replaced the one that failed."""
        async with connection.moving:
            if connection.voices.get(session_id) is voice:
                await self._detach(connection, [session_id], closed=False)

    async def _detach(
        self, connection: ClientConnection, session_ids: Sequence[str], *, closed: bool
    ) -> None:
        for session_id in self._with_subagents(connection, session_ids):
            voice = connection.voices.pop(session_id, None)
            if voice is not None:
                session = self._find(session_id)
                if session is not None:
                    session.worker.client_left()
                voice.part(closed=closed)
                await voice.stop()
            self._left(session_id)

    async def detach_all(self, connection: ClientConnection) -> None:
        """Detach a client whose connection has ended. It is detached also if the caller is cancelled."""
        await self._tasks.ends.share(connection, lambda: self.detach(connection, *connection.voices))

    async def clear(self, session_id: str) -> None:
        """Detach every client from a session."""
        await asyncio.gather(*(self.detach(client, session_id) for client in tuple(self.connections)))

    async def dismiss(self, clients: Collection[ClientConnection], session_id: str) -> None:
        """Detach clients from a session that is over, each once it has the last of it, if it reads."""
        await asyncio.gather(*(self._dismiss(client, session_id) for client in tuple(clients)))

    async def dismiss_all(self, session_id: str) -> None:
        """Detach every client from a session that is over, as `dismiss` does."""
        await self.dismiss(self.connections, session_id)

    async def _dismiss(self, connection: ClientConnection, session_id: str) -> None:
        voice = connection.voices.get(session_id)
        if voice is not None:
            if (connection, session_id) in self._closing:
                await _last_updates_read(voice)  # SESS-40: the last updates come before the answer
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LAST_UPDATES):
                        await voice.caught_up()
            await self.detach(connection, session_id, closed=True)

    @contextmanager
    def answers_close(self, connection: ClientConnection, session_id: str) -> Iterator[None]:
        """Hold back the answer to a close until its client has the last updates, or reads no more."""
        self._closing.add((connection, session_id))
        try:
            yield
        finally:
            self._closing.discard((connection, session_id))

    def _with_subagents(self, connection: ClientConnection, session_ids: Sequence[str]) -> list[str]:
        """Return these sessions and, of those that this client follows, the ones that work for them."""
        found = list(session_ids)
        for parent_id in found:
            for session_id in connection.voices:
                session = self._serving(session_id)
                if session is not None and session.parent is not None and session.parent.id == parent_id:
                    found.append(session_id)
        return found


async def _last_updates_read(voice: AttachmentWriter) -> None:
    """Wait until a client has the last updates. Give up when it reads nothing for a long time."""
    before = -1
    while voice.cursor > before:
        before = voice.cursor
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_UPDATES_BEFORE_ANSWER):
                await voice.caught_up()
                return
