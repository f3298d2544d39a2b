"""MCP servers that an agent uses: those of clients, over their connections (MCP over ACP, unstable), and the
headers of those that are reached over HTTP."""

from __future__ import annotations

import re
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
        """Return the result of an MCP request, such as `tools/list`. Raises `McpError` if the server answers
        with an error, and `CallFailed` if it could not be asked. `meta` is the `_meta` of the request around
        it; the trace of the turn is added to it."""
        if self._closed:
            raise LocalError("this MCP server is used inside its `async with` block")
        inner = with_inner_meta(
            params, info=self._worker.offer.implementation, capabilities=self.capabilities
        )
        outer = {**self._worker.trace, **(meta or {})}
        return await self._calls.call(
            self.server_id, method, inner, meta=outer or None, on_notification=on_notification
        )

    def close(self) -> None:
        self._closed = True


@asynccontextmanager
async def using(worker: HandlerWorker, name: str) -> AsyncIterator[McpServer]:
    """Use the MCP server of that name, of the client that gave it to the session."""
    servers = worker.session.mcp_servers
    declared = next((server for server in servers if getattr(server, "name", None) == name), None)
    if declared is None:
        raise LocalError(f"this session was given no MCP server {name!r}")
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


_OWNED = re.compile(
    r"accept|content-type|last-event-id|mcp-(method|name|protocol-version|session-id|param-.*)", re.DOTALL
)
"""The headers that MCP's streamable HTTP transport defines, in every revision so far, in small letters."""


def mcp_headers(server: v2.McpServerHttp) -> list[tuple[str, str]]:
    """Return the headers to set up a transport with, in the given order; a name may occur several times. The
    headers that MCP's transport defines are left out, in any spelling: the transport writes them itself, and
    a configured one must not replace them (MCPCFG-09)."""
    given = [(header.name, header.value) for header in server.headers]
    return [(name, value) for name, value in given if not _OWNED.fullmatch(name.strip().lower())]
