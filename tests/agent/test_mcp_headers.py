"""What of an MCP server's configured headers reaches it, with a real server and a real client of MCP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp import ClientSession as McpClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import Context, MCPServer

from antiphon.agent import Agent, AgentTurn, mcp_headers
from antiphon.client import connect
from antiphon.schema import v2

DEADLINE = 60.0
OWNED = {
    "ACCEPT": "text/html",
    "content-Type": "text/plain",
    "Mcp-Session-Id": "forged",
    "MCP-PROTOCOL-VERSION": "1999-01-01",
    "Last-Event-ID": "41",
    "Mcp-Method": "tools/forged",
    "mcp-name": "forged",
    "Mcp-Param-City": "forged",
}


def configured(url: str = "https://example.org/mcp", **headers: str) -> v2.McpServerHttp:
    return v2.McpServerHttp(
        name="weather",
        url=url,
        headers=[v2.HttpHeader(name=name, value=value) for name, value in headers.items()],
    )


def test_mcpcfg_09_what_the_transport_defines_is_left_out_however_it_is_spelled() -> None:
    server = configured(**{"Authorization": "Bearer t", **OWNED, "X-Team": "a", "MCP-Other": "b"})
    assert mcp_headers(server) == [("Authorization", "Bearer t"), ("X-Team", "a"), ("MCP-Other", "b")]


def test_mcpcfg_09_a_header_that_is_given_twice_stays_twice_and_in_order() -> None:
    twice = [v2.HttpHeader(name="X-Tag", value="a"), v2.HttpHeader(name="x-tag", value="b")]
    server = v2.McpServerHttp(name="weather", url="https://example.org", headers=twice)
    assert mcp_headers(server) == [("X-Tag", "a"), ("x-tag", "b")]


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


@pytest.mark.parametrize("version", [1, 2])
async def test_mcpcfg_09_a_real_server_sees_the_transports_headers_and_the_other_configured_ones(
    version: int,
) -> None:
    agent, came = Agent("weatherman"), []

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        (server,) = turn.session.mcp_servers
        assert isinstance(server, v2.McpServerHttp)
        came.append(await called(server.url, mcp_headers(server)))

    async with asyncio.timeout(DEADLINE), real_server() as url, connect(agent, version=version) as client:
        given = configured(url, **{"Authorization": "Bearer t", **OWNED})
        session = await client.new_session("/", mcp_servers=[given])
        end = await (await session.prompt("How is the weather?")).drained()
    assert end.error is None
    (seen,) = came
    assert seen["authorization"] == ["Bearer t"]
    assert seen["accept"] == ["application/json, text/event-stream"]
    assert seen["content-type"] == ["application/json"]
    assert seen["mcp-session-id"] != ["forged"]
    assert not {"forged", "1999-01-01", "41"} & {value for values in seen.values() for value in values}


async def test_mcpcfg_09_all_that_is_configured_would_break_the_transport() -> None:
    """Which is why the helper is there: a session id of somebody else's is refused by the server."""
    async with asyncio.timeout(DEADLINE), real_server() as url:
        with pytest.raises(Exception) as failed:
            await called(url, [("Mcp-Session-Id", "forged")])
        assert not isinstance(failed.value, TimeoutError)
