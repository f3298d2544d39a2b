"""MCP over ACP through the hub: an agent uses a client's own MCP server by way of the hub, which changes
nothing of what they say but the ids of the requests around it (MCPACP-09)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from antiphon.agent.link import Link
from antiphon.client import Client
from antiphon.errors import CallFailed, LinkLost, RequestError
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema.mcp_binding import MESSAGE, BindingError

if TYPE_CHECKING:
    from antiphon.hub.upstream import Upstream


class Offered:
    """The MCP servers of clients that one agent was told of. `links` are the clients of the hub."""

    def __init__(self, upstream: Upstream, links: Callable[[], Iterable[Link]]) -> None:
        self._upstream = upstream
        self._links = links
        self._client: Client

    def begin(self, client: Client) -> None:
        self._client = client
        client.providing.elsewhere = self._serve

    async def _serve(self, params: Any, inbound: Inbound) -> Any:
        link = self._provider(params.server_id)
        if link is None:
            unknown = {"serverId": params.server_id}
            raise RequestError(BindingError.UNKNOWN_SERVER, "No such MCP server is offered", data=unknown)

        async def tell(told: Any) -> None:
            await self._client.connection.notify(MESSAGE, told)

        try:
            return await link.calling.ask(params, tell)
        except CallFailed as error:
            raise RequestError(error.error.code, error.error.message, data=error.error.data) from error
        except LinkLost as error:
            gone = "The client that offers the MCP server has gone"
            raise RequestError(BindingError.BACKEND_FAILED, gone) from error

    def _provider(self, server_id: str) -> Link | None:
        """Who offers it: the last of those attached to the agent's sessions; or anybody, as an agent may use
        what it is given before the session is there. Of what it was not given, it knows nothing."""
        attached = [link for session in self._upstream.hearers for link in session.clients()]
        offering = self._links() if server_id in self._upstream.offered else ()
        for links in (attached, offering):
            found = [link for link in links if server_id in link.calling.declared]
            if found:
                return max(found, key=lambda link: link.serial)
        return None
