"""Server: the connections and sessions of one agent or hub."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from antiphon.bridge.losses import LossCounter
from antiphon.errors import LocalError
from antiphon.server.access import EVERYTHING, AccessPolicy
from antiphon.server.connection import ClientConnection
from antiphon.server.methods.dispatch import method_handlers
from antiphon.server.request import ServerContext
from antiphon.transports.base import Transport


class Server:
    def __init__(
        self, context: ServerContext, *, owns_store: bool, losses: LossCounter | None = None
    ) -> None:
        """A store that the server does not own is closed with it: it was given for one life."""
        self._context = context
        self.registry = context.registry
        self._owns_store = owns_store
        self._losses = losses or LossCounter()
        self._ended = False
        self._lives = 0

    @property
    def serving_first(self) -> bool:
        """Whether it has not begun to serve."""
        return not self._lives

    @property
    def serving_last(self) -> bool:
        """Whether it ends with the next end of `serving`."""
        return self._lives == 1

    async def serve(self, transport: Transport, policy: AccessPolicy = EVERYTHING) -> None:
        """Serve one client until it is gone; its sessions stay. `policy` is what it may do."""
        registry = self.registry
        connection = ClientConnection(
            transport,
            policy,
            offer=self._context.offer,
            logins=self._context.logins,
            handlers=partial(method_handlers, self._context),
            losses=self._losses,
        )
        registry.connections.add(connection)
        try:
            async with connection.wire:
                try:
                    await connection.wire.wait_closed()
                finally:
                    await registry.attachments.detach_all(connection)
        finally:
            registry.connections.discard(connection)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve inside the block. At its end every session is put away in the store. Blocks may overlap.

        A store that the caller gave is closed then, and the server cannot be used again. A store that the
        server made keeps the sessions, and the next life finds them.
        """
        if self._ended:
            raise LocalError("this agent's store was closed when it was last served: make another `Agent`")
        self._lives += 1
        try:
            yield
        finally:
            self._lives -= 1
            if not self._lives:
                self._ended = not self._owns_store
                await self.registry.aclose()
                if self._ended:
                    await self.registry.store.aclose()

    async def auth_changed(self) -> None:
        """Ask the status handler again for every connection: another account may be logged in."""
        for connection in tuple(self.registry.connections):
            await connection.authentication.renew()
            await connection.report_auth()
