"""DistantSession: a session that another server owns, served here to clients of this one.

Its feed is read from the store. What its clients ask for goes to the owner.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack
from typing import Any, final

from antiphon.engine.session import Session
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.live.followed_session import FollowedSession
from antiphon.server.connection import ClientConnection
from antiphon.server.control.control import Control
from antiphon.server.session_clients import SessionClients


@final
class DistantSession:
    start = None
    new = False
    closing = False
    parent = None
    cancellable = True
    """What methods ask of sessions that are owned here, and what is never so of this one."""

    def __init__(
        self, feed: FollowedSession, control: Control, connections: Collection[ClientConnection]
    ) -> None:
        """`connections`: all clients of the server."""
        self.feed = feed
        self.control = control
        self.id = feed.session_id
        self.gone = False
        """Whether it is not served any more."""
        self.opened_meta: dict[str, Any] = {}
        self._clients = SessionClients(self.id, connections)
        self.prompters = self._clients.prompters
        self._open = AsyncExitStack()

    async def begin(self) -> None:
        """Follow the journal."""
        await self._open.enter_async_context(self.feed)

    async def stop(self) -> None:
        """Follow it no more."""
        self.gone = True
        await self._open.aclose()

    @property
    def fold(self) -> Session:
        return self.feed.fold

    @property
    def subagent_of(self) -> str | None:
        created = self.fold.created
        return None if created is None else created.meta.get(SUBAGENT_OF)

    @property
    def askable_ids(self) -> Collection[str]:
        return {client.client_id for client in self._clients.askable()}

    def clients(self) -> list[ClientConnection]:
        return self._clients.all()

    def attached(self) -> list[AttachmentWriter]:
        return self._clients.attached()
