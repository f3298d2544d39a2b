"""A real MCP server over HTTP, and MCP's own client. Import it inside a test: the MCP SDK takes a second."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import uvicorn
from mcp import ClientSession as McpClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import Context, MCPServer


@asynccontextmanager
async def real_server() -> AsyncIterator[str]:
    """An MCP server over HTTP that tells with which headers it was called; its address."""
    server = MCPServer("weather")

    @server.tool()
    async def seen(ctx: Context[Any, Any]) -> dict[str, list[str]]:
        request = ctx.request_context.request
        assert request is not None
        return {name: request.headers.getlist(name) for name in request.headers}

    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(server.streamable_http_app(), log_level="critical", ws="none")
    http = uvicorn.Server(config)
    serving = asyncio.create_task(http.serve(sockets=[listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        http.should_exit = True
        await serving


async def called(url: str, headers: list[tuple[str, str]]) -> dict[str, list[str]]:
    """The headers that the server saw when its tool was called by MCP's own client."""
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        streamable_http_client(url, http_client=http) as streams,
        McpClientSession(*streams[:2]) as session,
    ):
        await session.initialize()
        result = await session.call_tool("seen", {})
        assert isinstance(result.structured_content, dict)
        return result.structured_content
