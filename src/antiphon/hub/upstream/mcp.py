"""MCP servers of clients, as the agents behind a hub use them (MCPACP-09).

An agent names a server by its id alone, and clients choose the ids. So the hub remembers with which session
it announced an id to the agent: only a client of that session is ever asked. An id that another session of
the same agent has already is announced under another one, so that no client can take the place of another.
The hub changes nothing of what agent and server exchange but the ids of the requests around it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from msgspec import structs

from antiphon.connection import Connection
from antiphon.errors import CallFailed, LinkLost, RequestError
from antiphon.hub.upstream.errors import to_request_error
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v2
from antiphon.schema.mcp_over_acp import MESSAGE, McpErrorCode
from antiphon.server.connection import ClientConnection
from antiphon.server.session import ServedSession


class Provision:
    """The clients that provide the MCP servers of one session; at first the client that makes it."""

    def __init__(
        self, *, maker: ClientConnection | None = None, session: ServedSession | None = None
    ) -> None:
        self._maker = maker
        self.session = session
        self._over = False

    def end(self) -> None:
        """End it: the session was not made after all."""
        self._over, self._maker = True, None

    @property
    def over(self) -> bool:
        return self._over or (self.session is not None and self.session.gone)

    def provider(self, server_id: str) -> ClientConnection | None:
        """Return the client that is asked for a server, if there is one."""
        if self.over:
            return None
        session = self.session
        found = None if session is None else session.mcp_provider(server_id)
        if found is None and (session is None or session.start is not None):
            maker = self._maker
            return maker if maker is not None and maker.policy.is_valid() and maker.policy.acts else None
        self._maker = None  # the client follows the session by now
        return found


class Offer(NamedTuple):
    provision: Provision
    server_id: str
    """As the client declared it."""


class McpRelay:
    """Offers the MCP servers of clients to an agent, and passes on what it sends to them."""

    def __init__(self, connection: Callable[[], Connection]) -> None:
        """`connection` returns the connection to the agent."""
        self._connection = connection
        self._offers: dict[str, Offer] = {}
        """By the ids that the agent knows."""

    def offer(self, servers: Iterable[v2.McpServer], provision: Provision) -> list[v2.McpServer]:
        """Return the servers with the ids for the agent, which may use them from here on."""
        self._offers = {id: offer for id, offer in self._offers.items() if not offer.provision.over}
        return [
            self._offer(server, provision) if isinstance(server, v2.McpServerAcp) else server
            for server in servers
        ]

    def _offer(self, server: v2.McpServerAcp, provision: Provision) -> v2.McpServerAcp:
        id = server.server_id
        while (known := self._offers.get(id)) is not None and known != (provision, server.server_id):
            id = v2.McpServerAcpId(f"{server.server_id}~{secrets.token_hex(3)}")
        self._offers[id] = Offer(provision, server.server_id)
        return structs.replace(server, server_id=id)

    async def serve(self, params: Any, inbound: Inbound) -> Any:
        agents_id = params.server_id
        offer = self._offers.get(agents_id)
        link = None if offer is None else offer.provision.provider(offer.server_id)
        if offer is None or link is None:
            raise RequestError(
                McpErrorCode.UNKNOWN_SERVER, "No such MCP server is offered", data={"serverId": agents_id}
            )

        async def notify(notification: Any) -> None:
            await self._connection().notify(MESSAGE, structs.replace(notification, server_id=agents_id))

        try:
            answer = await link.mcp.ask(structs.replace(params, server_id=offer.server_id), notify)
            if not link.policy.is_valid():
                raise LinkLost("its client may not answer any more")
            return answer
        except CallFailed as error:
            raise to_request_error(error) from error
        except LinkLost as error:
            gone = "The client that offers the MCP server has gone"
            raise RequestError(McpErrorCode.BACKEND_FAILED, gone) from error
