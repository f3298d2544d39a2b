"""Request: one request of a client, with what its handler needs."""

from __future__ import annotations

from typing import Any

from antiphon.jsonrpc.peer import Inbound
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.server.connection import ClientConnection
from antiphon.server.registry import SessionRegistry
from antiphon.server.session import ServedSession


class Request:
    __slots__ = ("_inbound", "client", "params", "registry")

    def __init__(
        self, registry: SessionRegistry, client: ClientConnection, params: Any, inbound: Inbound | None = None
    ) -> None:
        """`inbound` is `None` for a notification."""
        self.registry = registry
        self.client = client
        self.params = params
        self._inbound = inbound

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
