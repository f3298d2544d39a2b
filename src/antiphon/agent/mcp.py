"""MCP servers that an agent uses: those of clients, over their connections (MCP over ACP, unstable), and the
headers of those that are reached over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from antiphon.agent.worker import HandlerWorker
from antiphon.errors import LinkLost, LocalError
from antiphon.schema import v2
from antiphon.schema.mcp_over_acp import with_inner_meta
from antiphon.server.mcp_calls import McpCalls, OnNotification


class McpServer:
    """An MCP server of a client. `call` speaks MCP to it, revision 2026-07-28."""

    def __init__(self, worker: HandlerWorker, declared: v2.McpServerAcp, calls: McpCalls) -> None:
        self._worker = worker
        self._calls = calls
        self.name = declared.name
        self.server_id = declared.server_id
        self.capabilities: dict[str, Any] = {}
        """What the agent can do as an MCP client; sent with every request."""
        self._closed = False

    async def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        on_notification: OnNotification | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Any:
        """The result of an MCP request, such as `tools/list`. Raises `McpError` where the server answers with
        an error, and `CallFailed` where it could not be asked. `meta` goes beside the request; the trace of
        the turn goes with it by itself."""
        if self._closed:
            raise LocalError("this MCP server is used inside its `async with` block")
        inner = with_inner_meta(
            params, info=self._worker.offer.implementation, capabilities=self.capabilities
        )
        beside = {**self._worker.trace, **(meta or {})}
        return await self._calls.call(
            self.server_id, method, inner, meta=beside or None, on_notification=on_notification
        )

    def close(self) -> None:
        self._closed = True


@asynccontextmanager
async def using(worker: HandlerWorker, name: str) -> AsyncIterator[McpServer]:
    """The MCP server of that name, of the client that gave it to the session."""
    found = [server for server in worker.session.mcp_servers if getattr(server, "name", None) == name]
    if not found:
        raise LocalError(f"this session was given no MCP server {name!r}")
    declared = found[0]
    if not isinstance(declared, v2.McpServerAcp):
        raise LocalError(
            f"the MCP server {name!r} is not the client's own: start or reach it as it is described"
        )
    client = worker.session.mcp_provider(declared.server_id)
    if client is None:
        raise LinkLost(f"the client that offers the MCP server {name!r} is not there")
    server = McpServer(worker, declared, client.mcp)
    try:
        yield server
    finally:
        server.close()


OWNED = frozenset(
    [
        "accept",
        "content-type",
        "last-event-id",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
    ]
)
"""What MCP's streamable HTTP transport defines, of every revision so far, in small letters."""
OWNED_PREFIX = "mcp-param-"
"""How the headers begin that carry the parameters of a call."""


def mcp_headers(server: v2.McpServerHttp) -> list[tuple[str, str]]:
    """The headers to set up a transport with, in the order in which they were given, of one name several
    perhaps. Those that MCP's transport defines are left out, however they are spelled: it writes its own, and
    a configured one must not stand in their place (MCPCFG-09)."""
    return [(header.name, header.value) for header in server.headers if not _is_owned(header.name)]


def _is_owned(name: str) -> bool:
    spelled = name.strip().lower()
    return spelled in OWNED or spelled.startswith(OWNED_PREFIX)
