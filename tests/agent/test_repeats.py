"""A prompt that comes again under its operation id has its first outcome again, and the end of its turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from examples import smallest_agent

from antiphon import Agent, AgentTurn
from antiphon.stores import SQLiteStore
from tests.agent.talk import Talk, client, session
from tests.agent.test_sessions import Stepwise, idle
from tests.requirements.marks import requirement

TURN_COMPLETE = {"clientCapabilities": {"_meta": {"antiphon": {"turnComplete": True}}}}
LIFECYCLE = {"clientCapabilities": {"_meta": {"antiphon": {"promptLifecycle": 2}}}}
PROPOSED = {
    "_meta": {"antiphon": {"dialect": "proposed"}},
    "capabilities": {"_meta": {"antiphon": {"promptIds": True}}},
}


@pytest.fixture
def agent() -> Agent:
    made = Agent("smallest", version="1.0")
    made.on_prompt(smallest_agent.answer)
    return made


async def again(talk: Talk, id: str, n: Any = "again") -> dict[str, Any]:
    talk.prompt(n, id, "go", operationId="op")
    return await talk.answer_to(n)


async def ended(talk: Talk, id: str, *, answered_at_the_end: bool) -> Any:
    """The first answer, once the turn is over."""
    talk.prompt("first", id, "go", operationId="op")
    answer = (await talk.answer_to("first"))["result"]
    if not answered_at_the_end:
        await talk.until(lambda f: f.get("params", {}).get("update", {}).get("state") == "idle")
    return answer


async def test_v2_says_that_it_is_a_repetition_and_how_the_turn_ended(agent: Agent) -> None:
    async with session(agent) as (talk, id):
        first = await ended(talk, id, answered_at_the_end=False)
        ours = {"repeated": True, "stopReason": "end_turn"}
        assert (await again(talk, id))["result"] == {**first, "_meta": {"antiphon": ours}}
        assert talk.story().count("user_message") == 1


@requirement("SD-05")
async def test_as_proposed_the_message_is_named_beside_the_answer(agent: Agent) -> None:
    async with session(agent, 2, **PROPOSED) as (talk, id):
        first = await ended(talk, id, answered_at_the_end=False)
        named = first["_meta"]["antiphon"]["messageId"]
        ours = {"messageId": named, "repeated": True, "stopReason": "end_turn"}
        assert (await again(talk, id))["result"] == {"_meta": {"antiphon": ours}}


async def test_the_future_flag_says_the_same(agent: Agent) -> None:
    async with session(agent, 1, **LIFECYCLE) as (talk, id):
        first = await ended(talk, id, answered_at_the_end=False)
        ours = {"repeated": True, "stopReason": "end_turn"}
        assert (await again(talk, id))["result"] == {**first, "_meta": {"antiphon": ours}}


@requirement("TC-02")
async def test_v1_gives_the_stop_reason_again_and_turn_complete_before_it(agent: Agent) -> None:
    async with session(agent, 1, **TURN_COMPLETE) as (talk, id):
        await ended(talk, id, answered_at_the_end=True)
        answer = (await again(talk, id))["result"]
        assert answer["stopReason"] == "end_turn"
        assert answer["_meta"]["antiphon"]["repeated"] is True
        assert talk.story()[-2:] == ["turn_complete", "= again"]
        assert talk.updates()[-1] == {
            "sessionUpdate": "turn_complete",
            "stopReason": "end_turn",
            "promptRequestId": "again",
        }


@pytest.mark.parametrize("version", [1, 2])
async def test_a_turn_that_failed_has_failed_again_also_after_a_restart(version: int, tmp_path: Path) -> None:
    for life in (1, 2):
        agent = Agent("broken", store=SQLiteStore(tmp_path / "s.db"))

        @agent.on_prompt
        async def work(turn: AgentTurn) -> None:
            raise RuntimeError("secret")

        async with agent.serving(), client(agent, version) as talk:
            if life == 1:
                id = (await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
                talk.prompt("first", id, "go", operationId="op")
                await talk.answer_to("first")
                if version == 2:
                    await idle(talk)
            else:
                await talk.call("join", "session/resume", sessionId=id, cwd="/")
            answer = await again(talk, id)
        error = {"code": -32603, "message": "Internal error"}
        if version == 1:
            assert answer["error"] == error
        else:
            ours = {"repeated": True, "stopReason": "error", "error": error}
            assert answer["result"]["_meta"] == {"antiphon": ours}


@pytest.mark.parametrize("version", [1, 2])
async def test_invariant_4_a_turn_that_a_restart_cut_short_is_told_as_interrupted(
    version: int, tmp_path: Path
) -> None:
    for life in (1, 2):
        stepwise = Stepwise(store=SQLiteStore(tmp_path / "s.db"))
        async with stepwise.agent.serving(), client(stepwise.agent, version) as talk:
            if life == 1:
                id = (await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
                talk.prompt("first", id, "go", operationId="op")
                await talk.update("agent_message_chunk")
            else:
                await talk.call("join", "session/resume", sessionId=id, cwd="/")
                answer = await again(talk, id)
                error = answer["error"] if version == 1 else answer["result"]["_meta"]["antiphon"]["error"]
                assert error["data"] == {"reason": "interrupted"}
                assert stepwise.opened == []


@pytest.mark.parametrize("version", [1, 2])
async def test_what_was_withdrawn_is_so_again(version: int) -> None:
    stepwise = Stepwise()
    async with session(stepwise.agent, version) as (talk, id):
        talk.prompt("busy", id, "busy")
        await talk.update("agent_message_chunk")
        talk.prompt("first", id, "go", operationId="op")
        talk.send(method="$/cancel_request", params={"requestId": "first"})
        error = (await talk.answer_to("first"))["error"]
        assert error["code"] == -32800
        assert (await again(talk, id))["error"] == error
        stepwise.step.release()


@pytest.mark.parametrize("version", [1, 2])
async def test_asked_again_while_the_turn_is_open_it_joins_that_turn(version: int) -> None:
    stepwise = Stepwise()
    async with session(stepwise.agent, version) as (talk, id):
        talk.prompt("first", id, "go", operationId="op")
        await talk.update("agent_message_chunk")
        async with client(stepwise.agent, version) as other:
            await other.call("join", "session/resume", sessionId=id, cwd="/", mcpServers=[])
            other.prompt("again", id, "go", operationId="op")
            if version == 2:
                named = (await talk.answer_to("first"))["result"]["messageId"]
                assert (await other.answer_to("again"))["result"] == {
                    "messageId": named,
                    "_meta": {"antiphon": {"repeated": True}},
                }
                stepwise.step.release()
                await idle(other, stopReason="end_turn")
            else:
                await other.call("list", "session/list")  # behind the prompt
                assert "= again" not in other.story()
                stepwise.step.release()
                for one, n in ((talk, "first"), (other, "again")):
                    assert (await one.answer_to(n))["result"]["stopReason"] == "end_turn"
        assert stepwise.opened == ["go"]


@pytest.mark.parametrize("version", [1, 2])
async def test_asked_again_while_it_waits_it_is_answered_with_its_own_turn(version: int) -> None:
    stepwise = Stepwise()
    async with session(stepwise.agent, version) as (talk, id):
        talk.prompt("busy", id, "busy")
        await talk.update("agent_message_chunk")
        talk.prompt("first", id, "go", operationId="op")
        async with client(stepwise.agent, version) as other:
            await other.call("join", "session/resume", sessionId=id, cwd="/", mcpServers=[])
            other.prompt("again", id, "go", operationId="op")
            await other.call("list", "session/list")
            stepwise.step.release()
            await talk.answer_to("busy")
            if version == 1:
                assert "= again" not in other.story()
            stepwise.step.release()
            answers = [(await one.answer_to(n))["result"] for one, n in ((talk, "first"), (other, "again"))]
            assert answers[0] == answers[1]
        assert stepwise.opened == ["busy", "go"]
