"""MCP over ACP as an agent uses it (section 17, unstable), with a client by hand."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.agent import Agent, AgentOptions, AgentTurn
from antiphon.errors import CallFailed, LinkLost, LocalError, McpError
from tests.agent.talk import DEADLINE, Talk, client
from tests.requirements.marks import requirement

OURS = {"type": "acp", "name": "ours", "serverId": "srv"}


async def opened(talk: Talk, *servers: dict[str, Any]) -> str:
    return str((await talk.call("new", "session/new", cwd="/", mcpServers=list(servers)))["sessionId"])


def calling(*calls: tuple[str, dict[str, Any] | None]) -> tuple[Agent, list[Any]]:
    """An agent that makes these calls, and what came of them."""
    agent, came = Agent("user", version="7", options=AgentOptions(mcp_over_acp=True)), []

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async def told(method: str, params: dict[str, Any]) -> None:
            came.append((method, params))

        async with turn.session.mcp("ours") as server:
            for method, params in calls:
                try:
                    came.append(await server.call(method, params, on_notification=told))
                except (McpError, CallFailed) as error:
                    came.append(error)

    return agent, came


async def ended(talk: Talk, version: int) -> None:
    if version == 1:
        await talk.answer_to(1)
    else:
        await talk.update("state_update", state="idle")


@requirement("MCPACP-01")
@pytest.mark.parametrize("version", [1, 2])
async def test_the_capability_is_there_only_where_it_was_asked_for(version: int) -> None:
    for able in (True, False):
        agent = Agent("user", options=AgentOptions(mcp_over_acp=able))
        async with agent.serving(), client(agent, version) as talk:
            answer = next(frame for frame in talk.seen if frame.get("id") == "init")["result"]
            if version == 1:
                assert answer["agentCapabilities"]["mcpCapabilities"].get("acp", False) is able
            else:
                assert ("acp" in answer["capabilities"]["session"]["mcp"]) is able
            talk.send(id="new", method="session/new", params={"cwd": "/", "mcpServers": [OURS]})
            opened = await talk.answer_to("new")
            assert ("result" in opened) is able
            if not able:
                assert opened["error"]["code"] == -32602  # MCPCFG-05


@requirement("MCPACP-03", "MCPACP-08")
@pytest.mark.parametrize("version", [1, 2])
async def test_each_operation_has_an_id_of_its_own_and_says_who_asks(
    version: int,
) -> None:
    agent, came = calling(("tools/list", None), ("tools/call", {"name": "x", "_meta": {"progressToken": 1}}))
    async with agent.serving(), client(agent, version) as talk:
        talk.prompt(1, await opened(talk, OURS), "go")
        asked = []
        for result in ({"tools": []}, None):
            request = await talk.request("mcp/message")
            asked.append(request["params"])
            talk.send(id=request["id"], result={"result": result})
        await ended(talk, version)
        assert came == [{"tools": []}, None]
        assert [params["serverId"] for params in asked] == ["srv", "srv"]
        assert [params["method"] for params in asked] == ["tools/list", "tools/call"]
        assert len({params["requestId"] for params in asked}) == 2
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "user", "version": "7"},
        }
        assert asked[0]["params"] == {"_meta": meta}
        assert asked[1]["params"] == {"name": "x", "_meta": {**meta, "progressToken": 1}}


@requirement("MCPACP-04")
async def test_an_inner_error_is_an_mcp_error_and_a_result_is_preferred() -> None:
    agent, came = calling(("a", None), ("b", None), ("c", None), ("d", None))
    async with agent.serving(), client(agent) as talk:
        talk.prompt(1, await opened(talk, OURS), "go")
        error = {"code": -32601, "message": "No", "data": {"x": 1}}
        for answer in (
            {"result": {"error": error}},
            {"result": {"result": 1, "error": error}},
            {"error": {"code": -33001, "message": "Gone"}},
            {"result": {"result": {"resultType": "complete"}}},
        ):
            talk.send(id=(await talk.request("mcp/message"))["id"], **answer)
        await ended(talk, 2)
        first, second, third, fourth = came
        assert isinstance(first, McpError)
        assert (first.mcp_code, first.detail, first.data) == (-32601, "No", {"x": 1})
        assert second == 1
        assert isinstance(third, CallFailed)
        assert third.error.code == -33001
        assert fourth == {"resultType": "complete"}


async def test_an_answer_that_is_none_fails_the_call() -> None:
    agent, came = Agent("user", options=AgentOptions(mcp_over_acp=True)), []

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.session.mcp("ours") as server:
            with pytest.raises(Exception, match="mcp/message") as caught:
                await server.call("x")
            came.append(type(caught.value).__name__)

    async with agent.serving(), client(agent) as talk:
        talk.prompt(1, await opened(talk, OURS), "go")
        talk.send(id=(await talk.request("mcp/message"))["id"], result={"neither": 1})
        await ended(talk, 2)
        assert came == ["InvalidResult"]


@requirement("MCPACP-06")
async def test_what_the_server_tells_comes_in_order_before_the_answer_and_not_after_it() -> None:
    agent, came = calling(("a", None), ("b", None))
    async with agent.serving(), client(agent) as talk:
        talk.prompt(1, await opened(talk, OURS), "go")
        request = await talk.request("mcp/message")
        told = {
            "serverId": "srv",
            "requestId": request["params"]["requestId"],
            "method": "notifications/progress",
        }
        for step in range(3):
            talk.send(method="mcp/message", params={**told, "params": {"progress": step}})
        talk.send(method="mcp/message", params={**told, "requestId": "other"})
        talk.send(method="mcp/message", params={**told, "serverId": "other"})
        talk.send(id=request["id"], result={"result": "a"})
        talk.send(method="mcp/message", params={**told, "params": {"progress": "late"}})
        request = await talk.request("mcp/message")
        talk.send(id=request["id"], result={"result": "b"})
        await ended(talk, 2)
        assert came == [
            *(("notifications/progress", {"progress": step}) for step in range(3)),
            "a",
            "b",
        ]


@requirement("MCPACP-07")
async def test_giving_up_cancels_the_outer_request() -> None:
    agent, _ = calling(("tools/call", None))
    async with agent.serving(), client(agent) as talk:
        session = await opened(talk, OURS)
        talk.prompt(1, session, "go")
        request = await talk.request("mcp/message")
        talk.send(method="session/cancel", params={"sessionId": session})
        cancel = await talk.request("$/cancel_request")
        assert cancel["params"]["requestId"] == request["id"]
        await talk.update("state_update", state="idle", stopReason="cancelled")


async def test_a_callback_that_fails_costs_nothing_but_its_notification() -> None:
    agent, came = Agent("user", options=AgentOptions(mcp_over_acp=True)), []

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async def told(method: str, params: dict[str, Any]) -> None:
            raise ValueError(method)

        async with turn.session.mcp("ours") as server:
            came.append(await server.call("x", on_notification=told))

    async with agent.serving(), client(agent) as talk:
        talk.prompt(1, await opened(talk, OURS), "go")
        request = await talk.request("mcp/message")
        told = {"serverId": "srv", "requestId": request["params"]["requestId"], "method": "n"}
        talk.send(method="mcp/message", params=told)
        talk.send(id=request["id"], result={"result": 1})
        await ended(talk, 2)
        assert came == [1]


async def test_what_is_not_offered_over_the_connection_is_not_called_there() -> None:
    agent, came = Agent("user", options=AgentOptions(mcp_over_acp=True)), []
    left, over = asyncio.Event(), asyncio.Event()

    @agent.on_session
    async def begun(session: Any) -> None:
        for name in ("none", "files"):
            with pytest.raises(LocalError):
                async with session.mcp(name):
                    pass
        async with session.mcp("ours") as server:
            pass
        with pytest.raises(LocalError):
            await server.call("x")
        await left.wait()
        with pytest.raises(LinkLost):
            async with session.mcp("ours"):
                pass
        came.append(session.mcp_servers[1].name)
        over.set()

    stdio = {"type": "stdio", "name": "files", "command": "/bin/cat"}
    async with agent.serving():
        async with client(agent) as talk:
            await opened(talk, OURS, stdio)
        left.set()
        async with asyncio.timeout(DEADLINE):
            await over.wait()
    assert came == ["files"]


async def test_a_client_that_goes_while_it_is_asked_fails_the_call() -> None:
    agent, came = Agent("user", options=AgentOptions(mcp_over_acp=True)), []
    done = asyncio.Event()

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.session.mcp("ours") as server:
            try:
                await server.call("x")
            except LinkLost:
                came.append("lost")
        done.set()

    async with agent.serving():
        async with client(agent) as talk:
            talk.prompt(1, await opened(talk, OURS), "go")
            await talk.request("mcp/message")
        async with asyncio.timeout(5):
            await done.wait()
    assert came == ["lost"]
