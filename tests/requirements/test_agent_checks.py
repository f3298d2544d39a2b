"""What an agent refuses: to send what breaks the protocol, and to take what it did not offer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from antiphon.agent import Agent, AgentSession, AgentTurn
from antiphon.errors import LocalError
from antiphon.schema import v2
from tests.agent.talk import client, session
from tests.requirements.marks import requirement


def quiet() -> Agent:
    agent = Agent("quiet")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        pass

    return agent


async def refused(update: v2.SessionUpdate) -> bool:
    """Whether an agent is kept from sending this."""
    agent = quiet()
    async with session(agent) as (talk, id):
        found = agent.find(id)
        assert isinstance(found, AgentSession)
        try:
            await found.update(update)
        except LocalError:
            return True
        await talk.update(str(type(update).__struct_config__.tag))
    return False


TERMINAL = v2.TerminalId("t")


@requirement("TERMV2-07")
@pytest.mark.parametrize(
    "update",
    [
        v2.TerminalUpdate(terminal_id=TERMINAL, cwd="rel"),
        v2.TerminalUpdate(terminal_id=TERMINAL, size=v2.TerminalSize(cols=0, rows=70_000)),
    ],
)
async def test_a_relative_cwd_or_a_wrong_size_is_not_sent(
    update: v2.TerminalUpdate,
) -> None:
    assert await refused(update)
    assert not await refused(
        v2.TerminalUpdate(terminal_id=TERMINAL, cwd="/", size=v2.TerminalSize(cols=80, rows=24))
    )


@requirement("PLAN-V2-04", "EXT-06")
@pytest.mark.parametrize("field", ["status", "priority"])
async def test_a_value_of_ones_own_begins_with_an_underscore(field: str) -> None:
    def plan(value: str) -> v2.PlanUpdate:
        fields: dict[str, Any] = {
            "status": v2.PlanEntryStatus.PENDING,
            "priority": v2.PlanEntryPriority.LOW,
        }
        fields[field] = type(fields[field])(value)
        entry = v2.PlanEntry(content="x", **fields)
        return v2.PlanUpdate(plan=v2.PlanItems(plan_id=v2.PlanId("p"), entries=[entry]))

    assert await refused(plan("urgent"))
    assert not await refused(plan("_urgent"))


@requirement("EXT-06")
async def test_a_tool_status_and_a_stop_reason_are_held_to_the_same() -> None:
    call = v2.ToolCallId("c")
    assert await refused(v2.SessionToolCallUpdate(tool_call_id=call, status=v2.ToolCallStatus("weird")))
    agent = Agent("inventing")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> str:
        return "reserved_word"

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "x")
        await talk.update("state_update", state="idle", stopReason="error")


@requirement("PERM-V2-01")
@pytest.mark.parametrize("ids", [[], ["a", "a"]])
async def test_a_question_needs_options_of_different_ids(
    ids: list[str],
) -> None:
    agent = Agent("asking")
    raised: list[str] = []

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        options = [
            v2.PermissionOption(
                option_id=v2.PermissionOptionId(id), name=id, kind=v2.PermissionOptionKind.ALLOW_ONCE
            )
            for id in ids
        ]
        async with turn.tool_call("Act") as call:
            try:
                await call.request_permission(options=options)
            except LocalError as error:
                raised.append(str(error))

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "x")
        await talk.update("state_update", state="idle")
        assert "? session/request_permission" not in talk.story()
        assert len(raised) == 1


@requirement("PERM-V2-04")
async def test_a_command_is_asked_about_with_an_absolute_folder_only() -> None:
    agent = quiet()
    async with session(agent) as (_, id):
        found = agent.find(id)
        assert found is not None
        option = v2.PermissionOption(
            option_id=v2.PermissionOptionId("y"), name="y", kind=v2.PermissionOptionKind.ALLOW_ONCE
        )
        request = v2.RequestPermissionRequest(
            session_id=v2.SessionId(id),
            title="Run",
            options=[option],
            subject=v2.CommandPermissionSubject(command="ls", cwd="rel"),
        )
        with pytest.raises(LocalError):
            await found.ask(request, tool_call_id="c")


@requirement("PROMPT-V2-23", "PROMPT-V2-25")
async def test_a_question_blocks_only_while_nothing_else_runs() -> None:
    agent = Agent("twofold")
    finish = asyncio.Event()

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async def ask() -> None:
            async with turn.tool_call("Ask") as call:
                await call.request_permission()

        async def toil() -> None:
            async with turn.tool_call("Toil"):
                await finish.wait()

        async with asyncio.TaskGroup() as group:
            group.create_task(toil())
            group.create_task(ask())

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "x")
        asked = await talk.request("session/request_permission")
        assert "state_update requires_action" not in talk.story()
        finish.set()
        await talk.update("state_update", state="requires_action")
        talk.send(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": "allow"}})
        await talk.update("state_update", state="running")
        await talk.update("state_update", state="idle")


@requirement("TOOL-V2-14", "TERMV2-11")
@pytest.mark.parametrize("method", ["tool_call/cancel", "terminal/cancel"])
async def test_what_cannot_be_cancelled_is_the_clients_mistake(method: str) -> None:
    async with session(quiet()) as (talk, id):
        talk.send(id=1, method=method, params={"sessionId": id, "toolCallId": "c", "terminalId": "c"})
        assert (await talk.answer_to(1))["error"]["code"] == -32602


@requirement("SESS-10")
async def test_the_roots_a_resume_gives_are_all_the_roots_there_are() -> None:
    agent = quiet()
    async with client(agent) as talk:
        id = (await talk.call("new", "session/new", cwd="/", additionalDirectories=["/a", "/b"]))["sessionId"]
        for given in (["/a", "/b"], ["/c"], []):
            await talk.call(
                f"to {given}", "session/resume", sessionId=id, cwd="/", additionalDirectories=given
            )
            [info] = (await talk.call(f"list {given}", "session/list"))["sessions"]
            assert info.get("additionalDirectories", []) == given
            found = agent.find(id)
            assert found is not None
            assert list(found.additional_directories) == given


@requirement("MCPCFG-05")
@pytest.mark.parametrize("method", ["session/new", "session/resume"])
@pytest.mark.parametrize("kind", ["sse", "_mine", "acp"])
async def test_a_server_of_an_unsupported_type_is_refused(method: str, kind: str) -> None:
    async with session(quiet()) as (talk, id):
        server = {"type": kind, "name": "s", "url": "http://127.0.0.1:1", "headers": [], "serverId": "x"}
        params = {"cwd": "/", "sessionId": id, "mcpServers": [server]}
        talk.send(id=1, method=method, params=params)
        assert (await talk.answer_to(1))["error"]["code"] == -32602


@requirement("MCPCFG-01", "MCPCFG-06")
async def test_servers_reach_the_agent_and_have_names_of_their_own() -> None:
    agent = quiet()
    server = {"name": "s", "command": "/bin/server", "args": ["-x"], "env": []}
    async with client(agent, 1) as talk:
        id = (await talk.call("new", "session/new", cwd="/", mcpServers=[server]))["sessionId"]
        found = agent.find(id)
        assert found is not None
        [given] = found.mcp_servers
        assert isinstance(given, v2.McpServerStdio)
        assert (given.command, given.args) == ("/bin/server", ["-x"])
        talk.send(id=1, method="session/new", params={"cwd": "/", "mcpServers": [server, server]})
        assert (await talk.answer_to(1))["error"]["code"] == -32602


@requirement("SESS-58")
async def test_a_system_prompt_that_is_not_offered_is_refused() -> None:
    async with client(quiet()) as talk:
        prompt = {"mode": "override", "content": [{"type": "text", "text": "x"}]}
        talk.send(id=1, method="session/new", params={"cwd": "/", "systemPrompt": prompt})
        assert (await talk.answer_to(1))["error"]["code"] == -32602


@requirement("PROMPT-V2-09")
@pytest.mark.parametrize("version", [1, 2])
async def test_only_content_that_was_offered_is_taken(version: int) -> None:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    for accepts in ((), ("image",)):
        agent = Agent("seeing", accepts=accepts)

        @agent.on_prompt
        async def work(turn: AgentTurn) -> None:
            pass

        async with session(agent, version) as (talk, id):
            talk.send(id=1, method="session/prompt", params={"sessionId": id, "prompt": [image]})
            answer = await talk.answer_to(1)
            assert ("result" in answer) is bool(accepts)
            offered = str(talk.seen[0])
            assert ("'image': {}" in offered or "'image': True" in offered) is bool(accepts)


@requirement("PROMPT-V1-14")
async def test_a_v1_prompt_at_work_that_is_withdrawn_ends_as_cancelled_and_last() -> None:
    agent = Agent("waiting")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.message() as message:
            await message.write("waiting")
            try:
                await asyncio.Event().wait()
            finally:
                await message.write(" no longer")

    async with session(agent, 1) as (talk, id):
        talk.prompt(1, id, "x")
        await talk.update("agent_message_chunk")
        talk.send(method="$/cancel_request", params={"requestId": 1})
        assert (await talk.answer_to(1))["result"] == {"stopReason": "cancelled"}
        assert talk.story()[-1] == "= 1"
        assert talk.text() == "waiting no longer"


@requirement("PROMPT-V2-35")
async def test_a_turn_the_agent_opened_is_cancelled_like_any_other() -> None:
    agent = quiet()
    after: list[str] = []

    async with session(agent) as (talk, id):
        found = agent.find(id)
        assert found is not None

        async def speak() -> None:
            async with found.turn() as turn:
                await turn.say("I will go on for ever.")
                await asyncio.Event().wait()
            after.append("whoever opened it goes on")

        speaking = asyncio.ensure_future(speak())
        await talk.update("agent_message")
        talk.send(method="session/cancel", params={"sessionId": id})
        await talk.update("state_update", state="idle", stopReason="cancelled")
        await speaking
        assert after == ["whoever opened it goes on"]


@requirement("SESS-42")
async def test_closing_leaves_the_others_in_and_the_last_one_ends_the_session() -> None:
    agent = quiet()
    async with session(agent) as (one, id), client(agent, 1) as two:
        await two.call("join", "session/load", sessionId=id, cwd="/", mcpServers=[])
        await one.call("close", "session/close", sessionId=id)
        one.prompt(1, id, "gone")
        assert (await one.answer_to(1))["error"]["code"] == -32002
        two.prompt(1, id, "still here")
        assert (await two.answer_to(1))["result"] == {"stopReason": "end_turn"}
        await two.call("close", "session/close", sessionId=id)
        assert agent.find(id) is None


async def test_a_question_that_cannot_be_put_to_a_client_counts_as_not_approved() -> None:
    agent = Agent("asking")
    allowed: list[bool] = []

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        option = v2.PermissionOption(
            option_id=v2.PermissionOptionId("mine"), name="Mine", kind=v2.PermissionOptionKind("_mine")
        )
        async with turn.tool_call("Act") as call:
            allowed.append(await call.request_permission(options=[option]))

    async with session(agent, 1) as (talk, id):
        talk.prompt(1, id, "x")
        assert (await talk.answer_to(1))["result"] == {"stopReason": "end_turn"}
        assert allowed == [False]


@requirement("TERMV2-01")
async def test_a_terminal_is_named_apart_from_its_call_and_referred_to_by_it() -> None:
    agent = Agent("running")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        for _ in range(2):
            async with turn.tool_call("true", kind="execute") as call:
                await call.run(["true"])

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "x")
        await talk.update("state_update", state="idle")
        shown = [frame["params"]["update"] for frame in talk.seen if "update" in frame.get("params", {})]
        terminals = {update["terminalId"] for update in shown if "terminalId" in update}
        calls = {update["toolCallId"] for update in shown if "toolCallId" in update}
        referred = {
            u["content"]["terminalId"] for u in shown if u["sessionUpdate"] == "tool_call_content_chunk"
        }
        assert terminals == referred
        assert len(terminals) == len(calls) == 2
        assert not terminals & calls


@requirement("RPC-15")
@pytest.mark.parametrize("notified", [False, True])
async def test_a_batch_is_refused_as_a_whole_also_by_an_agent_that_might_accept_it(notified: bool) -> None:
    """The older v2 draft allows batches. The newer one refuses them, and so does the agent in v2 (C-02)."""
    begun: list[AgentSession] = []
    agent = quiet()

    @agent.on_session
    async def note(session: AgentSession) -> None:
        begun.append(session)

    async with client(agent) as talk:
        id = (await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        batch: list[dict[str, Any]] = [
            {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": id}},
            {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}},
            {"jsonrpc": "2.0", "id": 2, "method": "session/list", "params": {}},
        ]
        talk.transport.send(json.dumps(batch[:1] if notified else batch).encode())
        answer = await talk.until(lambda frame: "method" not in frame)
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)
        assert (await talk.call("list", "session/list"))["sessions"] != []
    assert [session.id for session in begun] == [id]
    assert not [frame for frame in talk.seen if frame.get("id") in (1, 2)]
