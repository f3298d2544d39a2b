"""Sections 5, 6 and 22: prompts, turns and states, against a real agent on the wire."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.schema import v2
from antiphon.schema.wire import Unknown
from tests.agent.talk import Talk, client, session
from tests.requirements.marks import requirement

ALLOW = {"outcome": {"outcome": "selected", "optionId": "allow"}}


def states(talk: Talk) -> list[str]:
    return [line.split()[1] for line in talk.story() if line.startswith("state_update")]


def updates(talk: Talk) -> list[dict[str, Any]]:
    return [frame["params"]["update"] for frame in talk.seen if frame.get("method") == "session/update"]


async def settled(talk: Talk) -> None:
    """Everything the agent does with what it was sent up to now has arrived."""
    talk.send(id="settled", method="_settled")
    await talk.answer_to("settled")


@requirement("PROMPT-V1-06")
@pytest.mark.parametrize("tools", [0, 2])
async def test_a_turn_that_has_nothing_left_to_do_ends_as_end_turn(tools: int) -> None:
    agent = Agent("working")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        for n in range(tools):
            async with turn.tool_call(f"Step {n}"):
                pass
        await turn.say("Done.")

    async with session(agent, 1) as (talk, id):
        talk.prompt(1, id, "go")
        assert (await talk.answer_to(1))["result"] == {"stopReason": "end_turn"}
        calls: dict[str, str] = {}
        for update in updates(talk):
            if update["sessionUpdate"].startswith("tool_call"):
                calls[update["toolCallId"]] = update["status"]
        assert list(calls.values()) == ["completed"] * tools, "none is pending"


@requirement("PROMPT-V2-07", "MSG-10")
@pytest.mark.parametrize("version", [1, 2])
async def test_message_ids_are_the_agent_s_own_and_any_string(version: int) -> None:
    agent = Agent("naming")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.session.update(
            v2.AgentMessageChunk(message_id=v2.MessageId("no uuid"), content=v2.TextContent(text="x"))
        )

    async with session(agent, version) as (talk, id), client(agent) as other:
        await other.call("join", "session/resume", sessionId=id, cwd="/")
        mine = {"messageId": "mine", "_meta": {"messageId": "mine"}}
        params = {"sessionId": id, "prompt": [{"type": "text", "text": "hi"}], **mine}
        talk.send(id=1, method="session/prompt", params=params)
        answer = (await talk.answer_to(1))["result"]
        await other.update("state_update", state="idle")
        shown = [update["messageId"] for update in updates(other) if "messageId" in update]
        assert len(shown) == 2
        assert "mine" not in shown
        assert shown[1] == "no uuid"
        assert answer == ({"messageId": shown[0]} if version == 2 else {"stopReason": "end_turn"})


@requirement("PROMPT-V2-22")
async def test_no_idle_between_activities_of_one_span_of_work() -> None:
    agent = Agent("busy")
    sent = asyncio.Event()

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        first_done = asyncio.Event()

        async def one() -> None:
            async with turn.tool_call("one"):
                pass
            first_done.set()

        async def other() -> None:
            async with turn.tool_call("other"):
                await first_done.wait()

        await asyncio.gather(one(), other())
        await sent.wait()
        (steering,) = turn.steered()  # a second prompt joins, and the first one's work goes on
        await turn.say(steering.text)

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        await talk.update("tool_call_update", status="completed")
        talk.prompt(2, id, "and this", delivery="steer")
        await settled(talk)
        sent.set()
        await talk.update("state_update", state="idle")
        assert states(talk) == ["running", "idle"]
        assert talk.story().count("user_message") == 2


@requirement("PROMPT-V2-24")
@pytest.mark.parametrize("end", ["allowed", "cancelled"])
async def test_after_requires_action_comes_running_or_idle(end: str) -> None:
    agent = Agent("asking")
    resumed = asyncio.Event()

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("act") as call:
            await call.request_permission()
            await resumed.wait()

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        asked = await talk.request("session/request_permission")
        await talk.update("state_update", state="requires_action")
        assert states(talk) == ["running", "requires_action"]
        if end == "allowed":
            talk.send(id=asked["id"], result=ALLOW)
            await talk.update("state_update", state="running")  # before it has done anything else
            assert states(talk)[-1] == "running"
            resumed.set()
        else:
            talk.send(method="session/cancel", params={"sessionId": id})
        idle = await talk.update("state_update", state="idle")
        assert idle["stopReason"] == ("end_turn" if end == "allowed" else "cancelled")


@requirement("PROMPT-V2-30")
async def test_a_command_handled_locally_runs_and_ends_like_any_work() -> None:
    agent = Agent("local")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        """No model, no output."""

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "/clear")
        idle = await talk.update("state_update", state="idle")
        assert talk.story()[2:] == ["= 1", "user_message", "state_update running", "state_update idle"]
        assert idle["stopReason"] == "end_turn"


@requirement("PROMPT-V2-42")
@pytest.mark.parametrize("meta", [{}, {"_meta": None}, {"_meta": {"traceparent": "00-1-2-01", "x": 1}}])
async def test_a_cancel_has_no_response_and_needs_only_the_session(meta: dict[str, Any]) -> None:
    agent = Agent("waiting")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.say("waiting")
        await asyncio.Event().wait()

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        await talk.update("agent_message")
        talk.send(method="session/cancel", params={"sessionId": id, **meta})
        await talk.update("state_update", state="idle", stopReason="cancelled")
        await settled(talk)
        answers = [line for line in talk.story() if line.startswith("=")]
        assert answers == ["= init", "= new", "= 1", "= settled"]


@requirement("PROMPT-V2-49")
async def test_a_state_of_one_s_own_stands_beside_the_standard_ones() -> None:
    with pytest.raises(ValueError, match="_musing"):
        v2.State("_musing")  # what the runtime reports itself is a closed set
    agent = Agent("musing")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.session.update(Unknown({"sessionUpdate": "state_update", "state": "_musing"}))

    async with session(agent) as (talk, id):
        talk.prompt(1, id, "go")
        await talk.update("state_update", state="idle")
        assert states(talk) == ["running", "_musing", "idle"]


@requirement("QUEUE-06")
@pytest.mark.parametrize("version", [1, 2])
async def test_the_agent_alone_writes_history_and_everyone_attached_gets_it(version: int) -> None:
    agent = Agent("one voice")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.say(f"You said: {turn.prompt.text}")

    forged = {
        "sessionUpdate": "agent_message_chunk",
        "messageId": "forged",
        "content": {"type": "text", "text": "forged"},
    }
    async with session(agent, version) as (talk, id), client(agent) as one, client(agent) as two:
        for other in (one, two):
            await other.call("join", "session/resume", sessionId=id, cwd="/")
        talk.send(method="session/update", params={"sessionId": id, "update": forged})
        talk.send(
            method="session/prompt", params={"sessionId": id, "prompt": [{"type": "text", "text": "?"}]}
        )
        talk.prompt(1, id, "hello")
        for other in (one, two):
            await other.update("state_update", state="idle", stopReason="end_turn")
            assert other.story()[1:] == [
                "state_update idle", "= join",
                "user_message", "state_update running", "agent_message", "state_update idle",
            ]  # fmt: skip
        assert updates(one) == updates(two)
        await one.call("again", "session/resume", sessionId=id, cwd="/", replayFrom={"type": "start"})
        assert "forged" not in str(one.seen)
