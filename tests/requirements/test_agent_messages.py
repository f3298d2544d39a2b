"""Sections 7, 11 and 14: messages, plans, usage and session info, against a real agent on the wire."""

from __future__ import annotations

from typing import Any

import pytest
from examples import tool_agent

from antiphon.agent import Agent, AgentTurn
from antiphon.schema import v2
from tests.agent.talk import Talk, client, session
from tests.requirements.marks import requirement

START = {"type": "start"}


def updates(talk: Talk, *kinds: str) -> list[dict[str, Any]]:
    found = [frame["params"]["update"] for frame in talk.seen if frame.get("method") == "session/update"]
    return [update for update in found if not kinds or update["sessionUpdate"] in kinds]


async def turn_of(talk: Talk, id: str, *, version: int = 2, number: int = 1, text: str = "x") -> Any:
    """A prompt and its turn; the idle update, or the answer of v1."""
    talk.prompt(number, id, text)
    if version == 1:
        return (await talk.answer_to(number))["result"]
    return await talk.update("state_update", state="idle")


def entries(*contents: str, status: str = "pending") -> list[dict[str, str]]:
    return [{"content": content, "priority": "medium", "status": status} for content in contents]


@requirement("MSG-02")
async def test_every_chunk_and_message_of_v2_has_an_id_live_and_replayed() -> None:
    agent = Agent("talking")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.thought() as thought:
            await thought.write("a")
            await thought.replace("b")
        async with turn.message() as message:
            await message.write("c")
        await turn.say("d")

    async with session(agent) as (talk, id), client(agent) as late:
        await turn_of(talk, id)
        await late.call("join", "session/resume", sessionId=id, cwd="/", replayFrom=START)
        kinds = (
            "user_message", "agent_message", "agent_thought",
            "user_message_chunk", "agent_message_chunk", "agent_thought_chunk",
        )  # fmt: skip
        live, replayed = updates(talk, *kinds), updates(late, *kinds)
        assert [update["sessionUpdate"] for update in live] == [
            "user_message", "agent_thought_chunk", "agent_thought", "agent_message_chunk", "agent_message",
        ]  # fmt: skip
        assert [update["sessionUpdate"] for update in replayed] == [
            "user_message", "agent_thought", "agent_message", "agent_message",
        ]  # fmt: skip
        assert all(isinstance(update["messageId"], str) and update["messageId"] for update in live + replayed)
        assert {update["messageId"] for update in live} == {update["messageId"] for update in replayed}


@requirement("PLAN-V1-02")
async def test_every_plan_of_v1_lists_all_entries() -> None:
    agent = Agent("planning")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.plan(["one", "two"])
        await turn.plan(["one", "two", "three"])
        await turn.plan(["three"])

    async with session(agent, 1) as (talk, id):
        await turn_of(talk, id, version=1)
        shown = [update["entries"] for update in updates(talk, "plan")]
        assert shown == [entries("one", "two"), entries("one", "two", "three"), entries("three")]


@requirement("PLAN-V2-01", "PLAN-V2-02")
async def test_a_plan_of_v2_is_whole_and_has_its_id() -> None:
    agent = Agent("planning")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.plan(["one"])
        await turn.plan(["other"], plan_id="second")
        await turn.plan(["one", "two"])

    def plan(id: str, *contents: str) -> dict[str, Any]:
        return {
            "sessionUpdate": "plan_update",
            "plan": {"type": "items", "planId": id, "entries": entries(*contents)},
        }

    async with session(agent) as (talk, id), client(agent) as late:
        await turn_of(talk, id)
        live = [plan("main", "one"), plan("second", "other"), plan("main", "one", "two")]
        assert updates(talk, "plan_update") == live
        await late.call("join", "session/resume", sessionId=id, cwd="/", replayFrom=START)
        assert updates(late, "plan_update") == [plan("main", "one", "two"), plan("second", "other")]


@requirement("PLAN-V2-05")
async def test_v1_s_words_are_never_said_to_a_v2_client() -> None:
    agent = Agent("tools")
    agent.on_prompt(tool_agent.work)
    async with session(agent) as (talk, id), client(agent) as late, client(agent, 1) as old:
        await old.call("join", "session/resume", sessionId=id, cwd="/", mcpServers=[])
        await turn_of(talk, id)
        await late.call("join", "session/resume", sessionId=id, cwd="/", replayFrom=START)
        await old.update("agent_message_chunk")
        theirs = {update["sessionUpdate"] for update in updates(old)}
        assert {"plan", "tool_call"} <= theirs, "the same work has these words in v1"
        for new in (talk, late):
            said = {update["sessionUpdate"] for update in updates(new)}
            assert {"plan_update", "tool_call_update"} <= said
            assert not said & {"plan", "tool_call", "current_mode_update"}


@requirement("USAGE-03")
@pytest.mark.parametrize("version", [1, 2])
async def test_the_cost_is_the_session_s_so_far_and_its_last_report_stands(version: int) -> None:
    agent = Agent("spending")
    spent = 0.0

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        nonlocal spent
        spent += 0.25
        cost = v2.Cost(amount=spent, currency="credits")
        await turn.session.update(v2.UsageUpdate(used=10, size=100, cost=cost))

    async with session(agent, version) as (talk, id), client(agent) as late:
        for number in (1, 2):
            await turn_of(talk, id, version=version, number=number)
        costs = [update["cost"] for update in updates(talk, "usage_update")]
        assert costs == [{"amount": amount, "currency": "credits"} for amount in (0.25, 0.5)]
        await late.call("join", "session/resume", sessionId=id, cwd="/", replayFrom=START)
        assert [update["cost"] for update in updates(late, "usage_update")] == costs[1:]


@requirement("USAGE-06")
@pytest.mark.parametrize("version", [1, 2])
async def test_the_tokens_of_a_turn_are_apart_from_usage_update(version: int) -> None:
    agent = Agent("counting")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        tokens = int(turn.prompt.text)
        turn.usage = v2.Usage(total_tokens=2 * tokens, input_tokens=tokens, output_tokens=tokens)
        if tokens == 5:
            await turn.session.update(v2.UsageUpdate(used=1000, size=2000))

    def counted(tokens: int) -> dict[str, int]:
        return {"totalTokens": 2 * tokens, "inputTokens": tokens, "outputTokens": tokens}

    async with session(agent, version) as (talk, id):
        for number, tokens in enumerate((5, 7)):
            end = await turn_of(talk, id, version=version, number=number, text=str(tokens))
            assert end["usage"] == counted(tokens), "of this turn alone"
        (window,) = updates(talk, "usage_update")
        assert window == {"sessionUpdate": "usage_update", "used": 1000, "size": 2000}


@requirement("INFO-02")
@pytest.mark.parametrize("version", [1, 2])
async def test_session_info_update_says_nothing_of_the_session_s_id_or_roots(version: int) -> None:
    agent = Agent("titled")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.session.set_title("A title")

    async with client(agent, version) as talk:
        roots = {"cwd": "/site", "additionalDirectories": ["/more"], "mcpServers": []}
        id = (await talk.call("new", "session/new", **roots))["sessionId"]
        await turn_of(talk, id, version=version)
        method, params = ("load", {}) if version == 1 else ("resume", {"replayFrom": START})
        await talk.call("again", f"session/{method}", sessionId=id, **roots, **params)
        live, replayed = updates(talk, "session_info_update")
        assert live == {"sessionUpdate": "session_info_update", "title": "A title"}
        assert replayed["title"] == "A title"
        assert replayed.keys() <= {"sessionUpdate", "title", "updatedAt", "_meta"}
