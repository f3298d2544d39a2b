"""MCP servers in the client, which the agent uses over its connection (MCP over ACP, unstable).

`AcpServer(name, handler)` in `new_session(mcp_servers=[…])` offers one; its handler gets the requests of the
agent.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from antiphon.connection import Connection
from antiphon.errors import InvalidParams, LinkLost, LocalError, McpError, RequestError, one_line
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v2
from antiphon.schema.mcp_over_acp import MESSAGE, McpErrorCode, inner_fault

logger = logging.getLogger("antiphon.client")

LIMIT = 64
"""How many requests one server handles at once."""


class McpRequest:
    """One request of the agent to an MCP server of this client, while it is handled."""

    def __init__(self, connection: Connection, params: v2.MessageMcpRequest) -> None:
        self.method = params.method
        self.params = params.params or {}
        """The params of the MCP request, with its `_meta`."""
        self.request_id: str = params.request_id
        self.meta = params.meta or {}
        """The `_meta` of the ACP message around it, such as trace context (OBS-01)."""
        self.active = True
        self._server_id = params.server_id
        self._connection = connection

    async def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send the agent a notification while it waits. After the answer it is dropped (MCPACP-06)."""
        if not self.active:
            return
        notification: dict[str, Any] = {
            "serverId": self._server_id,
            "requestId": self.request_id,
            "method": method,
        }
        if params is not None:
            notification["params"] = params
        await self._connection.notify(MESSAGE, notification)


McpHandler = Callable[[McpRequest], Awaitable[Any]]
"""Returns the result, any JSON value, or raises `McpError`. It is cancelled if the agent gives up."""


class AcpServer:
    """An MCP server in this process, under a name that the agent sees."""

    def __init__(
        self, name: str, handler: McpHandler, *, server_id: str | None = None, limit: int = LIMIT
    ) -> None:
        """`server_id` is made up by default; no two servers of a connection share one (MCPACP-02)."""
        if limit < 1:
            raise LocalError(f"limit must be >= 1, got {limit}")
        self.name = name
        self.handler = handler
        self.server_id = server_id or f"mcp_{secrets.token_hex(12)}"
        self.limit = limit

    @property
    def declaration(self) -> v2.McpServerAcp:
        return v2.McpServerAcp(name=self.name, server_id=v2.McpServerAcpId(self.server_id))


AnyMcpServer = v2.McpServer | AcpServer
"""What a session can be given: a server to start or reach, or one of this client."""


def declarations(servers: Sequence[AnyMcpServer]) -> list[v2.McpServer]:
    """The servers as they go into a request."""
    return [server.declaration if isinstance(server, AcpServer) else server for server in servers]


class McpServers:
    """The servers of this client that the agent of one connection may use."""

    def __init__(self, connection: Callable[[], Connection]) -> None:
        self._connection = connection
        self._servers: dict[str, AcpServer] = {}
        self._used: dict[str, AcpServer] = {}
        """All servers there ever were: an id is never given to another server (MCPACP-02)."""
        self._sessions: dict[str, list[AcpServer]] = {}
        self._active: dict[tuple[str, str], asyncio.Task[Any]] = {}

    def offer(self, servers: Sequence[AnyMcpServer]) -> str:
        """Serve these from before the agent learns of them. Returns a token for `bind` or `release`."""
        offered = [server for server in servers if isinstance(server, AcpServer)]
        for server in offered:
            if self._used.setdefault(server.server_id, server) is not server:
                raise LocalError(f"two MCP servers have the id {server.server_id!r}")
        token = f"opening-{secrets.token_hex(4)}"
        self._sessions[token] = offered
        self._servers |= {server.server_id: server for server in offered}
        return token

    def bind(self, token: str, session_id: str) -> None:
        """Serve the offered servers for as long as this session is open. A session that was opened again has
        only those that it is given now."""
        before = self._sessions.get(session_id, [])
        self._sessions[session_id] = self._sessions.pop(token)
        self._drop(before)

    def release(self, session_id: str) -> None:
        """A session has ended here: stop serving the servers that no other session has."""
        self._drop(self._sessions.pop(session_id, []))

    def _drop(self, servers: list[AcpServer]) -> None:
        kept = {server.server_id for others in self._sessions.values() for server in others}
        for server in servers:
            if server.server_id not in kept and self._servers.pop(server.server_id, None) is not None:
                for (server_id, _), task in tuple(self._active.items()):
                    if server_id == server.server_id:
                        task.cancel()

    async def serve(self, params: v2.MessageMcpRequest, inbound: Inbound) -> Any:
        """Handle `mcp/message` (MCPACP-04, MCPACP-05)."""
        server = self._servers.get(params.server_id)
        if server is None:
            raise RequestError(
                McpErrorCode.UNKNOWN_SERVER,
                "No such MCP server is offered",
                data={"serverId": params.server_id},
            )
        key = (params.server_id, params.request_id)
        if key in self._active:
            raise InvalidParams(
                "this MCP request is being handled already",
                data={"requestId": params.request_id},
            )
        if sum(server_id == params.server_id for server_id, _ in self._active) >= server.limit:
            raise RequestError(McpErrorCode.LIMIT, "Too many MCP requests at once")
        task = asyncio.current_task()
        assert task is not None
        self._active[key] = task
        request = McpRequest(self._connection(), params)
        try:
            return await _outcome(server, request)
        finally:
            request.active = False  # before the answer: later notifications are dropped
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
        logger.exception("MCP server failed: %r at %s", server.name, request.method)
        raise RequestError(McpErrorCode.BACKEND_FAILED, "The MCP server failed") from error


def _failure(error: McpError) -> dict[str, Any]:
    failure: dict[str, Any] = {"code": error.mcp_code, "message": one_line(error.detail)}
    if error.data is not msgspec.UNSET:
        failure["data"] = error.data
    return {"error": failure}
