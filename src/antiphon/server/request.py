"""Request: one request of a client, with what its handler needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from antiphon.jsonrpc.peer import Inbound
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.schema import v2
from antiphon.server.authentication import Logins
from antiphon.server.connection import ClientConnection
from antiphon.server.offer import Offer
from antiphon.server.registry import SessionRegistry
from antiphon.server.session import ServedSession


class ModelProvider(Protocol):
    """How an agent reaches its models, as far as clients may set it (PROV-01)."""

    @property
    def id(self) -> v2.ProviderId: ...
    @property
    def supported(self) -> Sequence[v2.LlmProtocol]: ...
    @property
    def required(self) -> bool: ...
    @property
    def setting(self) -> tuple[v2.LlmProtocol, str] | None:
        """The protocol and the address that are in use; `None` where it is disabled."""

    async def set(self, api_type: v2.LlmProtocol, base_url: str, headers: dict[str, str]) -> None:
        """Replace what was set before. Raises `InvalidParams`."""

    async def disable(self) -> None:
        """Raises `InvalidParams` where the agent cannot do without it."""


CreateSession = Callable[[v2.NewSessionRequest, ClientConnection], Awaitable[ServedSession]]
"""Makes a session for the client that asked for it."""
ForkSession = Callable[[v2.ForkSessionRequest, str | None, ClientConnection], Awaitable[ServedSession]]
"""Forks a session from where it was last idle, or right after a message, for the client that asked for it."""
FindSession = Callable[[], ServedSession | None]
"""Returns the session that params name. Raises where the client is not attached to it (RPC-25)."""
ExtensionHandler = Callable[[FindSession, str, Any], Awaitable[Any]]
"""Gets what finds the session of the params, the method and the params."""


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
    providers: Mapping[str, ModelProvider] = {}
    trusts_named_authors: bool = False
    """Whether a client may name another one as the author of an annotation, as a hub does for its clients."""


class Request:
    __slots__ = ("_inbound", "client", "params", "server")

    def __init__(
        self, server: ServerContext, client: ClientConnection, params: Any, inbound: Inbound | None = None
    ) -> None:
        """`inbound` is `None` for a notification."""
        self.server = server
        self.client = client
        self.params = params
        self._inbound = inbound

    @property
    def registry(self) -> SessionRegistry:
        return self.server.registry

    @property
    def inbound(self) -> Inbound:
        assert self._inbound is not None
        return self._inbound

    def answer(self, result: Any) -> None:
        """Answer now, in the order of what is sent; the result of the handler is then not sent."""
        self.client.wire.answer(self.inbound, result)

    def attached(self, session_id: str) -> tuple[AttachmentWriter, ServedSession]:
        """Return the client's attachment to a session, and the session. Raises `ResourceNotFound`."""
        return self.registry.attached(self.client, session_id)
