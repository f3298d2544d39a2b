"""What of an MCP server's configured headers reaches it, with a real server and a real client of MCP."""

from __future__ import annotations

import asyncio

import pytest

from antiphon.agent import Agent, AgentTurn, mcp_headers
from antiphon.client import connect
from antiphon.schema import v2
from tests.requirements.marks import requirement

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


@requirement("MCPCFG-09")
def test_what_the_transport_defines_is_left_out_however_it_is_spelled() -> None:
    server = configured(**{"Authorization": "Bearer t", **OWNED, "X-Team": "a", "MCP-Other": "b"})
    assert mcp_headers(server) == [("Authorization", "Bearer t"), ("X-Team", "a"), ("MCP-Other", "b")]


@requirement("MCPCFG-09")
def test_a_header_that_is_given_twice_stays_twice_and_in_order() -> None:
    twice = [v2.HttpHeader(name="X-Tag", value="a"), v2.HttpHeader(name="x-tag", value="b")]
    server = v2.McpServerHttp(name="weather", url="https://example.org", headers=twice)
    assert mcp_headers(server) == [("X-Tag", "a"), ("x-tag", "b")]


@requirement("MCPCFG-09")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_real_server_sees_the_transports_headers_and_the_other_configured_ones(
    version: int,
) -> None:
    from tests.agent.weather_server import called, real_server

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


@requirement("MCPCFG-09")
async def test_all_that_is_configured_would_break_the_transport() -> None:
    """Which is why the helper is there: a session id of somebody else's is refused by the server."""
    from tests.agent.weather_server import called, real_server

    async with asyncio.timeout(DEADLINE), real_server() as url:
        with pytest.raises(Exception) as failed:
            await called(url, [("Mcp-Session-Id", "forged")])
        assert not isinstance(failed.value, TimeoutError)
