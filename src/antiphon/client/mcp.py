"""MCP servers of the client's own, which an agent uses over the connection to it (MCP over ACP, unstable).

`AcpServer(name, handler)` in `new_session(mcp_servers=[…])` offers one; its handler gets what
the agent asks.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from antiphon.connection import Connection
from antiphon.errors import InvalidParams, LinkLost, LocalError, McpError, RequestError, one_line
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v2
from antiphon.schema.mcp_binding import MESSAGE, BindingError, inner_fault

if TYPE_CHECKING:
    from antiphon.client.session import ClientSession

logger = logging.getLogger("antiphon.client")

LIMIT = 64
"""How many requests one server works on at once."""


class McpRequest:
    """One request of the agent to an MCP server of ours, while it is worked on."""

    def __init__(self, connection: Connection, params: v2.MessageMcpRequest) -> None:
        self._connection = connection
        self._envelope = params
        self.active = True

    @property
    def method(self) -> str:
        return self._envelope.method

    @property
    def params(self) -> dict[str, Any]:
        """The params as MCP has them, with their own `_meta`."""
        return self._envelope.params or {}

    @property
    def request_id(self) -> str:
        return self._envelope.request_id

    @property
    def meta(self) -> dict[str, Any]:
        """What stands beside the MCP request, such as trace context (OBS-01)."""
        return self._envelope.meta or {}

    async def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Tell the agent something while it waits; later there is nobody to tell (MCPACP-06)."""
        if not self.active:
            return
        told: dict[str, Any] = {
            "serverId": self._envelope.server_id,
            "requestId": self.request_id,
            "method": method,
        }
        if params is not None:
            told["params"] = params
        await self._connection.notify(MESSAGE, told)


McpHandler = Callable[[McpRequest], Awaitable[Any]]
"""Gives the result, any JSON value, or raises `McpError`. It is cancelled where the agent gives up."""


class AcpServer:
    """An MCP server that is served here, under a name that the agent sees."""

    def __init__(
        self, name: str, handler: McpHandler, *, server_id: str | None = None, limit: int = LIMIT
    ) -> None:
        """`server_id` is made if it is not given; no two servers of a connection share one (MCPACP-02)."""
        if limit < 1:
            raise LocalError("a server works on at least one request at a time")
        self.name = name
        self.handler = handler
        self.server_id = server_id or f"mcp_{secrets.token_hex(12)}"
        self.limit = limit

    @property
    def declaration(self) -> v2.McpServerAcp:
        return v2.McpServerAcp(name=self.name, server_id=v2.McpServerAcpId(self.server_id))


AnyMcpServer = v2.McpServer | AcpServer
"""What a session can be given: a server to start or reach, or one of our own."""


def declared(servers: Sequence[AnyMcpServer]) -> list[v2.McpServer]:
    """The servers as they are written into a request."""
    return [server.declaration if isinstance(server, AcpServer) else server for server in servers]


class Providing:
    """The servers of ours that the agent of one connection may use."""

    def __init__(self, connection: Callable[[], Connection]) -> None:
        self._connection = connection
        self._servers: dict[str, AcpServer] = {}
        self._used: dict[str, AcpServer] = {}
        """All that ever were: an id is not given to another server later (MCPACP-02)."""
        self._sessions: dict[str, list[AcpServer]] = {}
        self._active: dict[tuple[str, str], asyncio.Task[Any]] = {}
        self.elsewhere: Callable[[Any, Inbound], Awaitable[Any]] | None = None
        """Serves what is not served here, for who passes on the servers of others."""

    async def during(
        self,
        servers: Sequence[AnyMcpServer],
        opening: Awaitable[ClientSession | None],
        session: ClientSession | None = None,
    ) -> ClientSession:
        """Serve these from before they are published, and for as long as the session is open that `opening`
        gives, or that is opened again by it."""
        ours = [server for server in servers if isinstance(server, AcpServer)]
        opened = f"opening-{secrets.token_hex(4)}"
        try:
            self._offer(opened, ours)
            session = await opening or session
            assert session is not None
        except BaseException:
            if asyncio.iscoroutine(opening):
                opening.close()
            self.left(opened)
            raise
        before = self._sessions.get(session.id, [])  # opened again, it has what it is given now
        self._sessions[session.id] = self._sessions.pop(opened)
        self._drop(before)
        return session

    def _offer(self, opened: str, servers: list[AcpServer]) -> None:
        for server in servers:
            if self._used.setdefault(server.server_id, server) is not server:
                raise LocalError(f"two MCP servers have the id {server.server_id!r}")
        self._sessions[opened] = servers
        for server in servers:
            self._servers[server.server_id] = server

    def left(self, session_id: str) -> None:
        """A session has ended here; a server that no other has is not served any more."""
        self._drop(self._sessions.pop(session_id, []))

    def _drop(self, servers: list[AcpServer]) -> None:
        kept = {server.server_id for others in self._sessions.values() for server in others}
        for server in servers:
            if server.server_id not in kept and self._servers.pop(server.server_id, None) is not None:
                for (server_id, _), task in tuple(self._active.items()):
                    if server_id == server.server_id:
                        task.cancel()

    async def serve(self, params: v2.MessageMcpRequest, inbound: Inbound) -> Any:
        """`mcp/message` came (MCPACP-04, MCPACP-05)."""
        server = self._servers.get(params.server_id)
        if server is None and self.elsewhere is not None:
            return await self.elsewhere(params, inbound)
        if server is None:
            raise RequestError(
                BindingError.UNKNOWN_SERVER,
                "No such MCP server is offered",
                data={"serverId": params.server_id},
            )
        key = (params.server_id, params.request_id)
        if key in self._active:
            raise InvalidParams("this MCP request is being worked on", data={"requestId": params.request_id})
        if sum(server_id == params.server_id for server_id, _ in self._active) >= server.limit:
            raise RequestError(BindingError.LIMIT, "Too many MCP requests at once")
        task = asyncio.current_task()
        assert task is not None
        self._active[key] = task
        request = McpRequest(self._connection(), params)
        try:
            return await _outcome(server, request)
        finally:
            request.active = False  # before the answer: what is told later is dropped
            del self._active[key]


async def _outcome(server: AcpServer, request: McpRequest) -> Any:
    wrong = inner_fault(request.params)
    if wrong is not None:
        return _failure(McpError(wrong[0], wrong[1], data=msgspec.UNSET if wrong[2] is None else wrong[2]))
    try:
        result = await server.handler(request)
        return {"result": msgspec.Raw(msgspec.json.encode(result))}
    except McpError as error:
        return _failure(error)
    except LinkLost:
        raise
    except Exception as error:
        logger.exception("the MCP server %r failed at %s", server.name, request.method)
        raise RequestError(BindingError.BACKEND_FAILED, "The MCP server failed") from error


def _failure(error: McpError) -> dict[str, Any]:
    told: dict[str, Any] = {"code": error.mcp_code, "message": one_line(error.detail)}
    if error.data is not msgspec.UNSET:
        told["data"] = error.data
    return {"error": told}
