"""DistantSession: a session that another server owns, served here to clients of this one.

Its feed is read from the store. What its clients ask for goes to the owner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import AsyncExitStack
from itertools import islice
from typing import Any, final

from antiphon.engine.session import Session, Work
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.live.followed_session import FollowedSession
from antiphon.server.clients.session_clients import SessionClients
from antiphon.server.connection import ClientConnection
from antiphon.server.control.control import Control
from antiphon.server.session import ServedSession


@final
class DistantSession:
    start = None
    new = False
    closing = False
    cancellable = True
    """What methods ask of sessions that are owned here. The owner knows whether this one can be cancelled."""

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
        self.parent: DistantSession | None = None
        """The session that this one works for, if clients follow it here because they follow that one."""
        self.joining: set[asyncio.Future[None]] = set()
        """Clients that are about to follow it because they follow its parent."""
        self._announced = len(feed.fold.subagents)
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
    def work(self) -> Work:
        """What is open, as far as this server knows: with the prompts that are on their way to the owner."""
        work = self.fold.work or Work()
        return Work(turn=work.turn, prompts=tuple({*work.prompts, *self.prompters}))

    def new_subagents(self) -> list[str]:
        """Return the ids of the subagents that were announced since the last call, or since it was opened."""
        before, self._announced = self._announced, len(self.fold.subagents)
        return [info.id for info in islice(self.fold.subagents, before, None)]

    @property
    def askable_ids(self) -> Collection[str]:
        return {client.client_id for client in self._clients.askable()}

    def clients(self) -> list[ClientConnection]:
        return self._clients.all()

    def attached(self) -> list[AttachmentWriter]:
        return self._clients.attached()


AnySession = ServedSession | DistantSession
"""A session that is open at this server, wherever it is worked on."""
