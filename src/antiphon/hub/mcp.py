"""MCP over ACP through the hub: an agent uses a client's own MCP server by way of the hub, which changes
nothing of what they say but the ids of the requests around it (MCPACP-09)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import structs

from antiphon.client import Client
from antiphon.errors import CallFailed, LinkLost, RequestError
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema.mcp_binding import MESSAGE, BindingError

if TYPE_CHECKING:
    from antiphon.hub.upstream import Upstream


class Offered:
    """The MCP servers of clients, as one agent uses them."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._client: Client

    def begin(self, client: Client) -> None:
        self._client = client
        client._mcp.elsewhere = self._serve

    async def _serve(self, params: Any, inbound: Inbound) -> Any:
        told = params.server_id
        offer = self._upstream.mcp_offers.find(told)
        link = None if offer is None else offer.provision.provider(offer.server_id)
        if offer is None or link is None:
            raise RequestError(
                BindingError.UNKNOWN_SERVER, "No such MCP server is offered", data={"serverId": told}
            )

        async def tell(notification: Any) -> None:
            await self._client.connection.notify(MESSAGE, structs.replace(notification, server_id=told))

        try:
            answer = await link.mcp.ask(structs.replace(params, server_id=offer.server_id), tell)
            if not link.policy.is_valid():
                raise LinkLost("its client may not answer any more")
            return answer
        except CallFailed as error:
            raise RequestError(error.error.code, error.error.message, data=error.error.data) from error
        except LinkLost as error:
            gone = "The client that offers the MCP server has gone"
            raise RequestError(BindingError.BACKEND_FAILED, gone) from error
