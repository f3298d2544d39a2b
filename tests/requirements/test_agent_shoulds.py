"""What an agent SHOULD do, against a real agent on the wire."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn, mcp_headers
from antiphon.schema import v2
from tests.agent.talk import INFO, Talk, client, session
from tests.requirements.marks import requirement

BOTH = pytest.mark.parametrize("version", [1, 2])
REAL_MCP = Path(__file__).parents[1] / "client" / "servers" / "real_mcp.py"


async def ended(talk: Talk, version: int, id: Any = 1) -> None:
    if version == 1:
        await talk.answer_to(id)
    else:
        await talk.update("state_update", state="idle")


def agent_that(work: Any) -> Agent:
    agent = Agent("worker")
    agent.on_prompt(work)
    return agent


# --- sessions -----------------------------------------------------------------------------------------


@requirement("SESS-28")
async def test_mcp_servers_of_a_resume_are_all_there_are() -> None:
    agent = Agent("resumed")
    one, other = ({"type": "http", "name": name, "url": f"https://{name}.example.org"} for name in "ab")
    async with client(agent) as talk:
        id = (await talk.call("new", "session/new", cwd="/", mcpServers=[one]))["sessionId"]
        for number, servers in enumerate(([other], [])):
            await talk.call(number, "session/resume", sessionId=id, cwd="/", mcpServers=servers)
            live = agent.find(id)
            assert live is not None
            names = [server.name for server in live.mcp_servers if isinstance(server, v2.McpServerHttp)]
            assert names == [server["name"] for server in servers]


@requirement("SESS-44", "SESS-48")
@BOTH
async def test_closing_and_deleting_what_is_not_there_succeeds(version: int) -> None:
    async with session(Agent("gone"), version) as (talk, id):
        for number, method in enumerate(
            ("session/close", "session/close", "session/delete", "session/delete")
        ):
            assert await talk.call(number, method, sessionId=id) == {}
        assert await talk.call("c", "session/close", sessionId="never") == {}
        assert await talk.call("d", "session/delete", sessionId="never") == {}


@requirement("MCPCFG-03")
async def test_a_v1_agent_takes_mcp_servers_over_http() -> None:
    async with client(Agent("new"), 1) as talk:
        assert talk.seen[0]["result"]["agentCapabilities"]["mcpCapabilities"]["http"] is True


@requirement("MCPCFG-10")
@BOTH
async def test_an_agent_has_what_it_needs_to_connect_to_every_given_server(version: int) -> None:
    from mcp import ClientSession as McpClientSession
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    from tests.agent.weather_server import called, real_server

    tools: dict[str, list[str]] = {}

    async def work(turn: AgentTurn) -> None:
        for server in turn.session.mcp_servers:
            if isinstance(server, v2.McpServerHttp):
                await called(server.url, mcp_headers(server))
                tools[server.name] = ["seen"]
            elif isinstance(server, v2.McpServerStdio):
                environment = {variable.name: variable.value for variable in server.env}
                started = StdioServerParameters(command=server.command, args=server.args, env=environment)
                async with stdio_client(started) as streams, McpClientSession(*streams) as mcp:
                    await mcp.initialize()
                    tools[server.name] = [tool.name for tool in (await mcp.list_tools()).tools]

    async with asyncio.timeout(30), real_server() as url, client(agent_that(work), version) as talk:
        stdio: dict[str, Any] = {
            "name": "child",
            "command": sys.executable,
            "args": [str(REAL_MCP)],
            "env": [],
        }
        if version == 2:
            stdio["type"] = "stdio"
        http = {"type": "http", "name": "web", "url": url, "headers": []}
        id = (await talk.call("new", "session/new", cwd="/", mcpServers=[stdio, http]))["sessionId"]
        talk.prompt(1, id, "go")
        await ended(talk, version)
    assert tools == {"child": ["add", "count", "wait"], "web": ["seen"]}


# --- prompts and turns --------------------------------------------------------------------------------


@requirement("PROMPT-V1-09")
@BOTH
async def test_a_tool_call_is_reported_at_once_pending_first_and_then_as_it_runs(
    version: int,
) -> None:
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Edit", kind="edit", pending=True) as call:
            if await call.request_permission():
                await call.resume()

    async with session(agent_that(work), version) as (talk, id):
        talk.prompt(1, id, "go")
        asked = await talk.until(lambda frame: frame.get("method") == "session/request_permission")
        talk.send(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": "allow"}})
        await ended(talk, version)
    reports = [one for one in talk.updates() if one["sessionUpdate"].startswith("tool_call")]
    assert [one["status"] for one in reports if "status" in one] == ["pending", "in_progress", "completed"]


@requirement("PROMPT-V1-13")
async def test_work_stops_as_soon_as_it_is_cancelled() -> None:
    stopped = asyncio.Event()

    async def work(turn: AgentTurn) -> None:
        try:
            async with turn.tool_call("Sleep", kind="execute") as call:
                await call.run(["sleep", "600"])
        finally:
            stopped.set()

    async with asyncio.timeout(20), session(agent_that(work), 1) as (talk, id):
        talk.prompt(1, id, "go")
        await talk.update("tool_call", status="in_progress")
        talk.send(method="session/cancel", params={"sessionId": id})
        await stopped.wait()
        assert (await talk.answer_to(1))["result"] == {"stopReason": "cancelled"}


@requirement("PROMPT-V2-06", "PROMPT-V2-12")
async def test_the_message_is_shown_before_the_idle_that_has_a_reason() -> None:
    async def work(turn: AgentTurn) -> str:
        return turn.prompt.text

    async with session(agent_that(work)) as (talk, id):
        for number, reason in enumerate(("end_turn", "refusal", "max_tokens", "_mine")):
            talk.prompt(number, id, reason)
            await talk.update("user_message")
            assert (await talk.update("state_update", state="idle"))["stopReason"] == reason


@requirement("PROMPT-V2-38")
async def test_a_turn_that_is_closed_is_cancelled_and_one_that_fails_by_itself_is_not() -> None:
    async def work(turn: AgentTurn) -> None:
        async with asyncio.timeout(0 if turn.prompt.text == "slow" else None):
            await asyncio.Event().wait()

    async with session(agent_that(work)) as (talk, id):
        talk.prompt(1, id, "slow")
        assert (await talk.update("state_update", state="idle"))["stopReason"] == "error"
        talk.prompt(2, id, "wait")
        await talk.update("state_update", state="running")
        talk.send(id=3, method="session/close", params={"sessionId": id})
        assert (await talk.update("state_update", state="idle"))["stopReason"] == "cancelled"
        await talk.answer_to(3)


@requirement("PROMPT-V2-54")
async def test_idle_means_ready_for_a_new_prompt() -> None:
    async def work(turn: AgentTurn) -> None:
        await turn.say(turn.prompt.text)

    async with session(agent_that(work)) as (talk, id):
        for number in range(5):
            talk.prompt(number, id, f"prompt {number}")
            assert "messageId" in (await talk.answer_to(number))["result"]
            await talk.update("state_update", state="idle", stopReason="end_turn")


@requirement("TC-09")
@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "cancelled"])
async def test_turn_complete_has_the_reason_or_the_error_of_the_response(reason: str) -> None:
    async def work(turn: AgentTurn) -> str | None:
        if turn.prompt.text == "fail":
            raise RuntimeError("secret")
        if turn.prompt.text == "cancelled":
            await turn.say("I wait.")
            await asyncio.Event().wait()
        return turn.prompt.text

    asked = {"clientInfo": INFO, "clientCapabilities": {"_meta": {"antiphon": {"turnComplete": True}}}}
    async with session(agent_that(work), 1, **asked) as (talk, id):
        talk.prompt(1, id, reason)
        if reason == "cancelled":
            await talk.update("agent_message_chunk")
            talk.send(method="session/cancel", params={"sessionId": id})
        complete = await talk.update("turn_complete")
        assert complete["stopReason"] == reason == (await talk.answer_to(1))["result"]["stopReason"]
        talk.prompt(2, id, "fail")
        failed = await talk.update("turn_complete")
        assert failed["error"] == (await talk.answer_to(2))["error"]
        assert failed["promptRequestId"] == "2"
        assert "stopReason" not in failed


# --- tool calls and plans -----------------------------------------------------------------------------


@requirement("TOOL-V1-08", "TOOL-V2-04")
@BOTH
async def test_name_and_title_are_in_the_first_report_and_stay(version: int) -> None:
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Read it", kind="read", name="read_file") as call:
            await call.write("text")

    async with session(agent_that(work), version) as (talk, id):
        talk.prompt(1, id, "go")
        await ended(talk, version)
    first, *others = [one for one in talk.updates() if one["sessionUpdate"].startswith("tool_call")]
    assert (first["title"], first["name"]) == ("Read it", "read_file")
    assert not any("name" in other or "title" in other for other in others)


@requirement("TERMV2-08")
async def test_a_terminal_names_its_command_and_its_exit_and_status_are_told_apart() -> None:
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Fail", kind="execute") as call:
            await call.run(["sh", "-c", "exit 3"])

    async with session(agent_that(work)) as (talk, id):
        talk.prompt(1, id, "go")
        await ended(talk, 2)
    terminals = [one for one in talk.updates() if one["sessionUpdate"] == "terminal_update"]
    assert "exit 3" in terminals[0]["command"]
    assert [one["exitStatus"] for one in terminals if "exitStatus" in one] == [{"exitCode": 3}]
    statuses = [
        one["status"]
        for one in talk.updates()
        if one["sessionUpdate"] == "tool_call_update" and "status" in one
    ]
    assert statuses == ["in_progress", "failed"]


@requirement("DIFF-03")
async def test_a_change_has_a_patch() -> None:
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Edit", kind="edit") as call:
            await call.diff("/song.py", old="la\n", new="la la\n")

    async with session(agent_that(work)) as (talk, id):
        talk.prompt(1, id, "go")
        await ended(talk, 2)
    [chunk] = [one for one in talk.updates() if one["sessionUpdate"] == "tool_call_content_chunk"]
    assert "-la\n+la la\n" in chunk["content"]["patch"]["text"]


@requirement("PLAN-V1-01")
async def test_a_plan_is_told_whole_in_the_words_of_v1() -> None:
    async def work(turn: AgentTurn) -> None:
        await turn.plan(["Look", "Act"])

    async with session(agent_that(work), 1) as (talk, id):
        talk.prompt(1, id, "go")
        await ended(talk, 1)
    [plan] = [one for one in talk.updates() if one["sessionUpdate"] == "plan"]
    assert plan["entries"] == [
        {"content": "Look", "priority": "medium", "status": "pending"},
        {"content": "Act", "priority": "medium", "status": "pending"},
    ]
