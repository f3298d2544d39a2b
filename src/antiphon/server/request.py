"""Request: one request of a client, with what its handler needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from antiphon.jsonrpc.peer import Inbound
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.antiphon.hub import PushKeyResponse, PushSubscribeRequest, PushUnsubscribeRequest
from antiphon.server.access import AccessPolicy
from antiphon.server.authentication import Logins
from antiphon.server.connection import ClientConnection
from antiphon.server.control.operations import Operation
from antiphon.server.distant.session import AnySession
from antiphon.server.offer import Offer
from antiphon.server.providers import Provider
from antiphon.server.registry import SessionRegistry
from antiphon.server.session import ServedSession

T = TypeVar("T")

CreateSession = Callable[[v2.NewSessionRequest, ClientConnection], Awaitable[ServedSession]]
"""Makes a session for the client that asked for it."""
ForkSession = Callable[[v2.ForkSessionRequest, str | None, ClientConnection], Awaitable[ServedSession]]
"""Forks a session from where it was last idle, or right after a message, for the client that asked for it."""
FindSession = Callable[[], ServedSession | None]
"""Returns the session that params name. Raises where the client is not attached to it (RPC-25)."""
ExtensionHandler = Callable[[FindSession, str, Any], Awaitable[Any]]
"""Gets what finds the session of the params, the method and the params."""


class Push(Protocol):
    """The Web Push of a hub, as its clients use it."""

    async def key(self) -> PushKeyResponse: ...
    async def subscribe(self, policy: AccessPolicy, who: Who, params: PushSubscribeRequest) -> None:
        """Send alerts to a browser, by what `policy` allows. `who` is the client that asks."""

    async def unsubscribe(self, policy: AccessPolicy, params: PushUnsubscribeRequest) -> None: ...


class ServerContext(Struct, frozen=True, kw_only=True):
    """What a server is made of. Nothing in it says whether an agent or a hub owns the server."""

    registry: SessionRegistry
    """The sessions. It makes their workers."""
    offer: Offer
    logins: Logins
    create: CreateSession
    fork: ForkSession
    call_extension: ExtensionHandler
    """Answers an extension method (EXT-01). Raises `MethodNotFound`."""
    extension_notified: ExtensionHandler
    """Handles an extension notification; an unknown one is ignored (EXT-02)."""
    providers: Mapping[str, Provider] = {}
    push: Push | None = None
    trusts_named_authors: bool = False
    """Whether a client may name another one as the author of an annotation, as a hub does for its clients."""


class Request(Struct, frozen=True):
    server: ServerContext
    client: ClientConnection
    params: Any
    received: Inbound | None = None
    """`None` for a notification."""

    @property
    def registry(self) -> SessionRegistry:
        return self.server.registry

    @property
    def inbound(self) -> Inbound:
        assert self.received is not None
        return self.received

    def upgraded(self, upgrade: Callable[..., T]) -> T:
        """Return the params in v2: those of a v1 client are upgraded."""
        if self.client.v1:
            return upgrade(self.params, report=self.client.losses)
        params: T = self.params
        return params

    def answer(self, result: Any) -> None:
        """Answer now, in the order of what is sent; the result of the handler is then not sent."""
        self.client.wire.answer(self.inbound, result)

    async def attached(self, session_id: str) -> tuple[AttachmentWriter, AnySession]:
        """Return the client's attachment to a session, and the session. Raises `ResourceNotFound`. Waits only
        for a session that was lost here and is about to be served again."""
        await self.registry.distant.served(session_id)
        return self.attachment(session_id)

    def attachment(self, session_id: str) -> tuple[AttachmentWriter, AnySession]:
        """Return the client's attachment to a session as it is served now, as `attached` does."""
        return self.registry.attachments.attached(self.client, session_id)

    async def perform(self, session: AnySession, operation: Operation) -> Any:
        """Perform what the client asks of a session, wherever that is worked on."""
        return await self.registry.distant.perform(session, operation, self.client.policy)
