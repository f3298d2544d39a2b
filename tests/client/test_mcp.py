"""MCP servers of the client's own, over ACP (section 17, unstable); and what sessions may be given (4.1)."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentOptions, AgentTurn
from antiphon.client import AcpServer, McpRequest, connect, mcp_child
from antiphon.errors import CallFailed, LocalError, McpError
from antiphon.schema import v2
from tests.client.driving import DEADLINE, opened
from tests.requirements.marks import requirement

ABLE = {1: {"mcpCapabilities": {"acp": True}}, 2: {"session": {"mcp": {"stdio": {}, "acp": {}}}}}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def echo(request: McpRequest) -> Any:
    return {"method": request.method}


async def begun(client: Any, agent: Any, *servers: Any) -> Any:
    """A session with these servers."""
    new = asyncio.ensure_future(client.new_session("/", mcp_servers=list(servers)))
    asked = await agent.expect("session/new")
    agent.send(id=asked["id"], result={"sessionId": "s"})
    return await new, asked["params"]["mcpServers"]


async def ask(agent: Any, id: str, **params: Any) -> Any:
    message = {"serverId": "a", "requestId": id, "method": "m", "params": {"_meta": META}, **params}
    agent.send(id=id, method="mcp/message", params=message)


@requirement("MCPACP-01")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_server_of_our_own_is_declared_where_the_agent_takes_it(version: int) -> None:
    server = AcpServer("ours", echo)
    async with opened(version, ABLE[version]) as (client, agent):
        _, declared = await begun(client, agent, server)
        assert declared == [{"type": "acp", "name": "ours", "serverId": server.server_id}]
    async with opened(version) as (client, _):
        with pytest.raises(LocalError):
            await client.new_session("/", mcp_servers=[server])


@requirement("MCPACP-02")
async def test_ids_are_opaque_and_never_shared_and_it_serves_before_it_is_published() -> None:
    assert AcpServer("x", echo).server_id != AcpServer("x", echo).server_id
    async with opened(2, ABLE[2]) as (client, agent):
        new = asyncio.ensure_future(
            client.new_session("/", mcp_servers=[AcpServer("x", echo, server_id="a")])
        )
        asked = await agent.expect("session/new")
        await ask(agent, "early")
        assert (await agent.receive())["result"] == {"result": {"method": "m"}}
        agent.send(id=asked["id"], result={"sessionId": "s"})
        session = await new
        with pytest.raises(LocalError):
            await client.new_session("/", mcp_servers=[AcpServer("y", echo, server_id="a")])
        closing = asyncio.ensure_future(session.close())
        agent.send(id=(await agent.expect("session/close"))["id"], result={})
        await closing
        await ask(agent, "late")
        assert (await agent.receive())["error"]["code"] == -33001
        with pytest.raises(LocalError):  # not even after it is gone
            await client.new_session("/", mcp_servers=[AcpServer("y", echo, server_id="a")])


async def test_a_server_whose_session_is_refused_is_not_served() -> None:
    async with opened(2, ABLE[2]) as (client, agent):
        new = asyncio.ensure_future(
            client.new_session("/", mcp_servers=[AcpServer("x", echo, server_id="a")])
        )
        asked = await agent.expect("session/new")
        agent.send(id=asked["id"], error={"code": -32603, "message": "no"})
        with pytest.raises(CallFailed):
            await new
        await ask(agent, "1")
        assert (await agent.receive())["error"]["code"] == -33001


@requirement("MCPACP-04")
async def test_exactly_one_of_result_and_error_and_inner_errors_stay_inside() -> None:
    async def handler(request: McpRequest) -> Any:
        if request.method == "fails":
            raise McpError(-32601, "Method not found", data={"x": 1})
        return None if request.method == "nothing" else [1, {"a": None}]

    async with opened(2, ABLE[2]) as (client, agent):
        await begun(client, agent, AcpServer("x", handler, server_id="a"))
        answers = []
        for method in ("fails", "nothing", "list"):
            await ask(agent, method, method=method)
            answers.append((await agent.receive())["result"])
        assert answers == [
            {"error": {"code": -32601, "message": "Method not found", "data": {"x": 1}}},
            {"result": None},
            {"result": [1, {"a": None}]},
        ]


@requirement("MCPACP-05")
@pytest.mark.parametrize("version", [1, 2])
async def test_outer_errors(version: int) -> None:
    async def handler(request: McpRequest) -> Any:
        if request.method == "breaks":
            raise RuntimeError("secret")
        if request.method == "odd":
            return object()
        return await asyncio.Event().wait()

    async with opened(version, ABLE[version]) as (client, agent):
        await begun(client, agent, AcpServer("x", handler, server_id="a", limit=2))

        async def error(id: str, **params: Any) -> int:
            await ask(agent, id, **params)
            failure = await agent.receive()
            assert failure["id"] == id
            assert "secret" not in str(failure)
            return int(failure["error"]["code"])

        assert await error("malformed", method=3) == -32602
        assert await error("unknown", serverId="b") == -33001
        assert await error("breaks", method="breaks") == -33002
        assert await error("odd", method="odd") == -33002
        await ask(agent, "1")
        message = {"serverId": "a", "requestId": "1", "method": "m", "params": {"_meta": META}}
        agent.send(id="again", method="mcp/message", params=message)
        assert (await agent.receive())["error"]["code"] == -32602
        await ask(agent, "2")
        assert await error("3") == -33000
        agent.send(method="$/cancel_request", params={"requestId": "1"})
        cancelled = await agent.receive()
        assert (cancelled["id"], cancelled["error"]["code"]) == ("1", -32800)
        await ask(agent, "1b", requestId="1")  # its id is free again
        agent.send(method="$/cancel_request", params={"requestId": "1b"})
        assert (await agent.receive())["id"] == "1b"


@requirement("MCPACP-06")
async def test_notifications_go_out_while_the_request_is_active_and_not_later() -> None:
    kept: list[McpRequest] = []

    async def handler(request: McpRequest) -> Any:
        kept.append(request)
        await request.notify("notifications/progress", {"progress": 1})
        await request.notify("notifications/message")
        return "done"

    async with opened(2, ABLE[2]) as (client, agent):
        await begun(client, agent, AcpServer("x", handler, server_id="a"))
        await ask(agent, "r")
        told = [await agent.receive() for _ in range(3)]
        assert [frame.get("params") for frame in told] == [
            {
                "serverId": "a",
                "requestId": "r",
                "method": "notifications/progress",
                "params": {"progress": 1},
            },
            {"serverId": "a", "requestId": "r", "method": "notifications/message"},
            None,
        ]
        assert all("id" not in frame for frame in told[:2])
        await kept[0].notify("late")
        await ask(agent, "r2")
        assert (await agent.receive())["params"]["requestId"] == "r2"


@requirement("MCPACP-08")
@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({}, -32602),
        ({**META, "io.modelcontextprotocol/protocolVersion": "2025-11-25"}, -32022),
        ({"io.modelcontextprotocol/protocolVersion": "2026-07-28"}, -32602),
    ],
)
async def test_an_inner_request_that_does_not_say_its_revision_is_refused_inside(
    meta: dict[str, Any], code: int
) -> None:
    async with opened(2, ABLE[2]) as (client, agent):
        await begun(client, agent, AcpServer("x", echo, server_id="a"))
        await ask(agent, "1", params={"_meta": meta})
        assert (await agent.receive())["result"]["error"]["code"] == code


async def test_one_server_serves_several_sessions_until_the_last_has_left() -> None:
    server = AcpServer("x", echo, server_id="a")
    async with opened(2, ABLE[2]) as (client, agent):
        sessions = []
        for id in "st":
            new = asyncio.ensure_future(client.new_session("/", mcp_servers=[server]))
            agent.send(id=(await agent.expect("session/new"))["id"], result={"sessionId": id})
            sessions.append(await new)
        for index, session in enumerate(sessions):
            await ask(agent, f"{index}")
            assert "result" in await agent.receive()
            closing = asyncio.ensure_future(session.close())
            agent.send(id=(await agent.expect("session/close"))["id"], result={})
            await closing
        await ask(agent, "last")
        assert (await agent.receive())["error"]["code"] == -33001


# --- what sessions may be given (4.1) -----------------------------------------------------------------


def stdio(name: str = "x", **fields: Any) -> v2.McpServerStdio:
    return v2.McpServerStdio(name=name, command="/bin/cat", **fields)


@requirement("MCPCFG-07")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_variable_named_twice_is_refused_before_it_is_sent(version: int) -> None:
    twice = stdio(env=[v2.EnvVariable(name="A", value="1"), v2.EnvVariable(name="A", value="2")])
    async with opened(version, ABLE[version]) as (client, agent):
        with pytest.raises(LocalError, match="twice"):
            await client.new_session("/", mcp_servers=[twice])
        once = stdio(env=[v2.EnvVariable(name="A", value="1"), v2.EnvVariable(name="a", value="2")])
        await begun(client, agent, once)  # nothing was sent before it


@requirement("MCPCFG-06")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_server_given_twice_is_refused_before_it_is_sent(version: int) -> None:
    async with opened(version, ABLE[version]) as (client, agent):
        with pytest.raises(LocalError, match="need different names"):
            await client.new_session("/", mcp_servers=[stdio("x"), AcpServer("x", echo)])
        await begun(client, agent, stdio("x"), stdio("y"))


# --- a real server ------------------------------------------------------------------------------------


@requirement("MCPACP-03", "MCPACP-06")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_real_mcp_server_is_used_by_an_agent_over_acp(version: int) -> None:
    pytest.importorskip("mcp", reason="the `mcp` package is not installed")
    agent, came = Agent("user", options=AgentOptions(mcp_over_acp=True)), []
    waiting = asyncio.Event()

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async def told(method: str, params: dict[str, Any]) -> None:
            came.append(params["progress"])

        async with turn.session.mcp("real") as server:
            tools = await server.call("tools/list")
            came.append(sorted(tool["name"] for tool in tools["tools"]))
            added = await server.call("tools/call", {"name": "add", "arguments": {"a": 2, "b": 3}})
            came.append(added["structuredContent"])
            counting = {"name": "count", "arguments": {"to": 3}, "_meta": {"progressToken": "c"}}
            await server.call("tools/call", counting, on_notification=told)
            with pytest.raises(McpError) as caught:
                await server.call("no/such/method")
            came.append(caught.value.mcp_code)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await server.call("tools/call", {"name": "wait", "arguments": {}})
            again = await server.call("tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}})
            came.append(again["structuredContent"])
            waiting.set()

    command = [sys.executable, str(Path(__file__).parent / "servers" / "real_mcp.py")]
    async with (
        asyncio.timeout(DEADLINE),
        mcp_child(command) as child,
        connect(agent, version=version) as client,
    ):
        session = await client.new_session("/", mcp_servers=[AcpServer("real", child)])
        end = await (await session.prompt("go")).drained()
        assert end.stop_reason == "end_turn"
    assert came == [["add", "count", "wait"], {"result": 5}, 1, 2, 3, -32601, {"result": 2}]


async def test_an_older_mcp_server_gets_its_handshake_and_one_that_dies_fails_the_backend(
    tmp_path: Path,
) -> None:
    script = tmp_path / "old.py"
    script.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    if 'id' not in m: continue\n"
        "    a = {'jsonrpc': '2.0', 'id': m['id']}\n"
        "    if m['method'] == 'initialize':\n"
        "        a['result'] = {'capabilities': {'tools': {}}, 'serverInfo': {'name': 'old'}}\n"
        "    elif m['method'] == 'tools/list': a['result'] = {'tools': [], 'got': m.get('params')}\n"
        "    elif m['method'] == 'die': sys.exit(3)\n"
        "    else: a['error'] = {'code': -32601, 'message': 'no'}\n"
        "    print(json.dumps(a), flush=True)\n"
    )
    async with (
        asyncio.timeout(DEADLINE),
        mcp_child([sys.executable, str(script)]) as child,
        opened(2, ABLE[2]) as (client, agent),
    ):
        await begun(client, agent, AcpServer("old", child, server_id="a"))
        await ask(agent, "1", method="server/discover")
        found = (await agent.receive())["result"]["result"]
        assert (found["capabilities"], found["supportedVersions"]) == ({"tools": {}}, ["2026-07-28"])
        await ask(
            agent, "2", method="tools/list", params={"cursor": "c", "_meta": {**META, "progressToken": 1}}
        )
        listed = (await agent.receive())["result"]["result"]
        got = {"cursor": "c", "_meta": {"progressToken": 1}}
        assert listed == {"resultType": "complete", "tools": [], "got": got}
        for id, method in (("3", "die"), ("4", "tools/list")):
            await ask(agent, id, method=method)
            assert (await agent.receive())["error"]["code"] == -33002
