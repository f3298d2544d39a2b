"""A turn on the wire, in every version and dialect, out of one agent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from examples import smallest_agent, tool_agent

from antiphon.agent import Agent, AgentTurn
from antiphon.errors import RequestError
from tests.agent.talk import client, session
from tests.requirements.marks import requirement


@pytest.fixture
def agent() -> Agent:
    """The smallest example, anew."""
    made = Agent("smallest", version="1.0")
    made.on_prompt(smallest_agent.answer)
    return made


@pytest.fixture
def tools() -> Agent:
    made = Agent("tools", version="1.0")
    made.on_prompt(tool_agent.work)
    return made


@requirement("PROMPT-V2-02", "PROMPT-V2-03", "PROMPT-V2-04", "PROMPT-V2-10", "PROMPT-V2-11")
async def test_answer_message_states(
    agent: Agent,
) -> None:
    async with session(agent) as (talk, id):
        talk.prompt(1, id, "hello")
        idle = await talk.update("state_update", state="idle")
        assert talk.story()[2:] == [
            "= 1",
            "user_message",
            "state_update running",
            "agent_message_chunk",
            "agent_message_chunk",
            "agent_message_chunk",
            "state_update idle",
        ]
        answer = await talk.answer_to(1)
        user = talk.seen[3]["params"]["update"]
        assert answer["result"] == {"messageId": user["messageId"]}
        assert user["content"] == [{"type": "text", "text": "hello"}]
        assert idle["stopReason"] == "end_turn"
        assert talk.text() == "You said: hello"


@requirement("PROMPT-V2-08", "MSG-04")
async def test_two_prompts_two_ids_and_one_id_for_all_chunks_of_a_message(
    agent: Agent,
) -> None:
    async with session(agent) as (talk, id):
        ids = set()
        for n in (1, 2):
            talk.prompt(n, id, "x")
            ids.add((await talk.answer_to(n))["result"]["messageId"])
            await talk.update("state_update", state="idle")
        assert len(ids) == 2
        chunks = [
            f["params"]["update"] for f in talk.seen if f.get("params", {}).get("update", {}).get("messageId")
        ]
        by_message: dict[str, int] = {}
        for update in chunks:
            if update["sessionUpdate"] == "agent_message_chunk":
                by_message[update["messageId"]] = by_message.get(update["messageId"], 0) + 1
        assert sorted(by_message.values()) == [3, 3]


@requirement("PROMPT-V1-02", "PROMPT-V1-03", "PROMPT-V1-22")
async def test_in_v1_the_answer_ends_the_turn_and_nothing_is_echoed(
    agent: Agent,
) -> None:
    async with session(agent, 1) as (talk, id):
        talk.prompt(1, id, "hello")
        assert (await talk.answer_to(1))["result"] == {"stopReason": "end_turn"}
        assert talk.story()[2:] == ["agent_message_chunk"] * 3 + ["= 1"]


@pytest.mark.parametrize("named", [False, True])
async def test_the_first_proposal_is_spoken_where_it_is_asked_for(agent: Agent, named: bool) -> None:
    """The answer to a prompt is `{}`; a client that asks for the id of its message gets it beside that."""
    asked = {"capabilities": {"_meta": {"antiphon": {"promptIds": True}}}} if named else {}
    async with session(agent, 2, _meta={"antiphon": {"dialect": "proposed"}}, **asked) as (talk, id):
        talk.prompt(1, id, "hello")
        idle = await talk.update("state_change", state="idle")
        assert idle["stop_reason"] == "end_turn"
        assert "stopReason" not in idle
        shown = next(u["messageId"] for u in talk.updates() if u["sessionUpdate"] == "user_message")
        beside = {"_meta": {"antiphon": {"messageId": shown}}} if named else {}
        assert (await talk.answer_to(1))["result"] == beside
        assert talk.story()[2:5] == ["= 1", "user_message", "state_change running"]


@requirement("TC-01", "TC-02", "TC-03", "TC-04", "TC-05")
async def test_turn_complete_comes_once_and_last_where_it_was_agreed(
    agent: Agent,
) -> None:
    wanted = {"clientCapabilities": {"_meta": {"antiphon": {"turnComplete": True}}}}
    async with session(agent, 1, **wanted) as (talk, id):
        capabilities = talk.seen[0]["result"]["agentCapabilities"]
        assert capabilities["sessionCapabilities"]["turnComplete"] == {}
        assert capabilities["_meta"]["antiphon"]["turnComplete"] is True
        talk.prompt(7, id, "hello")
        await talk.answer_to(7)
        assert talk.story()[2:] == [*["agent_message_chunk"] * 3, "turn_complete", "= 7"]
        complete = talk.seen[-2]["params"]["update"]
        assert complete == {
            "sessionUpdate": "turn_complete",
            "promptRequestId": "7",
            "stopReason": "end_turn",
        }
    async with session(agent, 1) as (talk, id):
        assert "turnComplete" not in talk.seen[0]["result"]["agentCapabilities"]["sessionCapabilities"]
        talk.prompt(1, id, "hello")
        await talk.answer_to(1)
        assert "turn_complete" not in talk.story()


async def test_the_future_flag_gives_v1_shapes_with_the_new_lifecycle(agent: Agent) -> None:
    wanted = {"clientCapabilities": {"_meta": {"antiphon": {"promptLifecycle": 2, "turnComplete": True}}}}
    async with session(agent, 1, **wanted) as (talk, id):
        talk.prompt(1, id, "hello")
        await talk.update("state_update", state="idle")
        assert talk.story()[2:5] == ["= 1", "user_message", "state_update running"]
        assert set((await talk.answer_to(1))["result"]) == {"messageId"}
        assert "turn_complete" not in talk.story()


@requirement("PERM-V2-06", "PERM-V2-08", "PERM-V2-11")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("choice", ["allow", "reject", "nonsense", "cancelled"])
async def test_a_permission_is_asked_and_only_an_offered_allow_allows(
    tools: Agent, version: int, choice: str
) -> None:
    async with session(tools, version) as (talk, id):
        talk.prompt(1, id, "permission")
        asked = await talk.request("session/request_permission")
        assert [option["optionId"] for option in asked["params"]["options"]] == ["allow", "reject"]
        assert "state_update requires_action" not in talk.story(), "first what is waited for, then that it is"
        if version == 2:
            await talk.update("state_update", state="requires_action")
        outcome = (
            {"outcome": "cancelled"} if choice == "cancelled" else {"outcome": "selected", "optionId": choice}
        )
        talk.send(id=asked["id"], result={"outcome": outcome})
        status = "completed" if choice == "allow" else "failed"
        await talk.update("tool_call_update", status=status)
        if version == 2:
            await talk.update("state_update", state="idle", stopReason="end_turn")
            states = [line for line in talk.story() if line.startswith("state_update")]
            assert [state.split()[1] for state in states] == ["running", "requires_action", "running", "idle"]
        else:
            assert (await talk.answer_to(1))["result"]["stopReason"] == "end_turn"
            assert "plan" in talk.story()
            assert "tool_call" in talk.story()


@requirement("PROMPT-V1-14", "PROMPT-V1-16", "PROMPT-V2-35", "PROMPT-V2-37")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_cancel_ends_it_after_the_late_updates(tools: Agent, version: int) -> None:
    async with session(tools, version) as (talk, id):
        talk.prompt(1, id, "wait")
        await talk.update("agent_message_chunk")
        talk.send(method="session/cancel", params={"sessionId": id})
        if version == 2:
            await talk.update("state_update", state="idle", stopReason="cancelled")
            assert talk.story()[-1] == "state_update idle"
        else:
            assert (await talk.answer_to(1))["result"] == {"stopReason": "cancelled"}
        assert talk.text() == "waiting no longer"


@requirement("PROMPT-V1-12", "PROMPT-V2-41")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_cancel_takes_the_question_back(tools: Agent, version: int) -> None:
    async with session(tools, version) as (talk, id):
        talk.prompt(1, id, "permission")
        asked = await talk.request("session/request_permission")
        talk.send(method="session/cancel", params={"sessionId": id})
        taken_back = await talk.request("$/cancel_request")
        assert taken_back["params"] == {"requestId": asked["id"]}
        talk.send(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": "allow"}})
        if version == 2:
            await talk.update("state_update", state="idle", stopReason="cancelled")
        else:
            assert (await talk.answer_to(1))["result"] == {"stopReason": "cancelled"}


@requirement("PROMPT-V1-15", "PROMPT-V2-36")
@pytest.mark.parametrize("raised", [RuntimeError("aborted by the model's library"), KeyError("private")])
async def test_what_a_library_raises_on_cancel_is_no_error(
    raised: Exception,
) -> None:
    agent = Agent("stumbling")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise raised from None

    async with session(agent, 1) as (talk, id):
        talk.prompt(1, id, "x")
        talk.send(method="session/cancel", params={"sessionId": id})
        assert (await talk.answer_to(1))["result"] == {"stopReason": "cancelled"}


@requirement("PROMPT-V2-16", "PROMPT-V2-17", "PROMPT-V1-18")
async def test_a_failure_is_told_and_leaks_nothing() -> None:
    agent = Agent("failing")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        raise RequestError(1, "secret") if False else ValueError("password=hunter2")

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "x")
        idle = await talk.update("state_update", state="idle", stopReason="error")
        assert idle["error"] == {"code": -32603, "message": "Internal error"}
        assert "result" in await talk.answer_to(1)
    async with session(agent, 1) as (talk, id):
        talk.prompt(1, id, "x")
        assert (await talk.answer_to(1))["error"] == {"code": -32603, "message": "Internal error"}


@requirement("PROMPT-V1-05", "PROMPT-V2-15")
@pytest.mark.parametrize("reason", ["refusal", "max_tokens", "max_turn_requests", "_mine"])
async def test_a_returned_stop_reason_is_reported(reason: str) -> None:
    agent = Agent("stopping")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> str:
        return reason

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "x")
        await talk.update("state_update", state="idle", stopReason=reason)
    async with session(agent, 1) as (talk, id):
        talk.prompt(1, id, "x")
        result = (await talk.answer_to(1))["result"]
        assert result["stopReason"] == ("end_turn" if reason == "_mine" else reason)


async def test_consecutive_messages_of_one_kind_are_told_apart_by_their_ids() -> None:
    agent = Agent("twice")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        for text in ("one", "two"):
            async with turn.message() as message:
                await message.write(text)

    for version in (1, 2):
        async with session(agent, version) as (talk, id):
            talk.prompt(1, id, "x")
            first = await talk.update("agent_message_chunk")
            second = await talk.update("agent_message_chunk")
            assert first["messageId"] != second["messageId"]


@requirement("MSG-13")
async def test_a_replaced_message_is_an_upsert_in_v2_and_message_update_in_v1() -> None:
    agent = Agent("correcting")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.message() as message:
            await message.write("wrong")
            await message.replace("right")

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "x")
        whole = await talk.update("agent_message")
        assert whole["content"] == [{"type": "text", "text": "right"}]
    wanted = {"clientCapabilities": {"_meta": {"antiphon": {"messageUpdate": True}}}}
    async with session(agent, 1, **wanted) as (talk, id):
        talk.prompt(1, id, "x")
        replaced = await talk.update("message_update", updateType="replace")
        assert replaced["content"] == {"type": "text", "text": "right"}


@requirement("RPC-25")
async def test_a_prompt_to_an_unknown_session_is_32002_with_its_id(agent: Agent) -> None:
    for version in (1, 2):
        async with client(agent, version) as talk:
            talk.prompt(1, "nobody", "x")
            error = (await talk.answer_to(1))["error"]
            assert (error["code"], error["data"]) == (-32002, {"sessionId": "nobody"})


@requirement("RPC-43", "SESS-04")
async def test_a_relative_cwd_is_refused(agent: Agent) -> None:
    async with client(agent) as talk:
        talk.send(id=1, method="session/new", params={"cwd": "here"})
        assert (await talk.answer_to(1))["error"]["code"] == -32602


@requirement("PROMPT-V2-01", "PROMPT-V2-09")
@pytest.mark.parametrize("block", [{"type": "_mine", "x": 1}, {"type": "video"}])
async def test_a_prompt_of_unknown_content_or_of_none_is_refused(agent: Agent, block: dict[str, Any]) -> None:
    async with session(agent) as (talk, id):
        for n, prompt in enumerate(([block], [])):
            talk.send(id=n, method="session/prompt", params={"sessionId": id, "prompt": prompt})
            assert (await talk.answer_to(n))["error"]["code"] == -32602
        assert "user_message" not in talk.story()


@pytest.mark.parametrize("version", [1, 2])
async def test_one_operation_asked_twice_while_it_waits_is_answered_twice_and_done_once(version: int) -> None:
    agent = Agent("slow")
    opened: list[str] = []
    release = asyncio.Event()

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        opened.append(turn.prompt.text)
        await release.wait()

    async with session(agent, version) as (talk, id):
        for n in (1, 2):
            talk.prompt(n, id, "once", operationId="op")
        talk.prompt(3, id, "next")
        release.set()
        first, second = [(await talk.answer_to(n))["result"] for n in (1, 2)]
        assert {**second, "_meta": None} == {**first, "_meta": None}
        await talk.answer_to(3)
        assert opened == ["once", "next"]


async def test_joining_again_in_the_middle_of_ones_own_turn_loses_no_answer(tools: Agent) -> None:
    async with session(tools, 1) as (talk, id):
        talk.prompt(1, id, "wait")
        await talk.update("agent_message_chunk")
        await talk.call("load", "session/load", sessionId=id, cwd="/", mcpServers=[])
        talk.send(method="session/cancel", params={"sessionId": id})
        assert (await talk.answer_to(1))["result"] == {"stopReason": "cancelled"}


async def test_a_lost_connection_withdraws_nothing() -> None:
    agent = Agent("patient")
    release = asyncio.Event()
    opened: list[str] = []

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        opened.append(turn.prompt.text)
        await release.wait()

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "one")
        talk.prompt(2, id, "two")
        await talk.update("state_update", state="running")
    async with client(agent) as again:
        await again.call("join", "session/resume", sessionId=id, cwd="/")
        release.set()
        for _ in range(2):
            await again.update("state_update", state="idle", stopReason="end_turn")
    assert opened == ["one", "two"]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "max_turn_requests"])
async def test_a_turn_is_stopped_with_a_reason_from_deep_inside_its_handler(
    version: int, reason: str
) -> None:
    made = Agent("stops", version="1.0")

    async def model(turn: AgentTurn) -> None:
        turn.count_request(limit=3)
        if reason != "max_turn_requests":
            turn.stop(reason)

    @made.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.message() as message:
            while True:
                await model(turn)
                await message.write(".")

    async with session(made, version) as (talk, id):
        talk.prompt(1, id, "go")
        answered = await talk.answer_to(1)
        if version == 1:
            assert answered["result"]["stopReason"] == reason
        else:
            assert (await talk.update("state_update", state="idle"))["stopReason"] == reason
        assert talk.text() == ("..." if reason == "max_turn_requests" else "")


async def test_a_message_is_corrected_in_a_later_turn_by_its_id() -> None:
    made = Agent("corrects", version="1.0")
    said: list[str] = []

    @made.on_prompt
    async def answer(turn: AgentTurn) -> None:
        if said:
            await turn.session.replace_message(said[0], "five")
        else:
            said.append(await turn.say("two plus two is four"))

    async with session(made) as (talk, id):
        for n in (1, 2):
            talk.prompt(n, id, "go")
            await talk.update("state_update", state="idle")
        (message,) = [m for m in made.find(id).fold.messages if m.type == "agent"]  # type: ignore[union-attr]
        assert message.text == "five"
