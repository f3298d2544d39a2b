"""Seed 001, as a raw client sees it: the agent library, directly and behind a hub."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from tests.requirements.seed_agent import PLAN, SeedAgent
from tests.requirements.seed_places import DIALECTS, V1S, V2S, Wire, offers, served, staged

ALLOW = {"outcome": {"outcome": "selected", "optionId": "allow"}}
CANCELLED = {"outcome": {"outcome": "cancelled"}}
RESOURCE = {
    "type": "resource",
    "resource": {"uri": "file:///site/main.py", "mimeType": "text/x-python", "text": "print(1)\n"},
}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


async def worked(wire: Wire, session: str) -> None:
    """One turn of `work`, its permission granted."""
    wire.prompt(2, session, "work")
    asked = await wire.request("session/request_permission")
    wire.send(id=asked["id"], result=ALLOW)
    assert await wire.ended(2) == "end_turn"


@served(*DIALECTS)
async def test_nothing_is_prompted_before_initialize_and_session_setup(place: str, dialect: str) -> None:
    seed = SeedAgent()
    async with staged(place, seed.agent) as stage, stage.client(dialect) as wire:
        wire.prompt(1, "no-such-session", "too early")
        assert (await wire.answer_to(1))["error"]["code"] == -32002
        assert await wire.play(await wire.new_session(), "now") == ["end_turn"]
        assert seed.prompts == ["now"]


@served(*DIALECTS)
async def test_a_prompt_of_text_and_an_embedded_file_reaches_the_agent_as_it_was_sent(
    place: str, dialect: str
) -> None:
    seed = SeedAgent(accepts=["embedded_context"])
    async with staged(place, seed.agent) as stage, stage.session(dialect) as (wire, session):
        params = {"sessionId": session, "prompt": [text("look at this"), RESOURCE]}
        wire.send(id=2, method="session/prompt", params=params)
        assert await wire.ended(2) == "end_turn"
        words, resource = seed.taken[0]
        assert (words.text, resource.resource.text) == ("look at this", "print(1)\n")  # type: ignore[union-attr]
        assert resource.resource.uri == "file:///site/main.py"  # type: ignore[union-attr]


@served(*V1S)
async def test_a_whole_turn_of_v1_has_every_update_in_its_shape_and_order(place: str, dialect: str) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        await worked(wire, session)
        (plan,) = wire.updates_of("plan")
        assert plan == {
            "sessionUpdate": "plan",
            "entries": [
                {"content": content, "priority": priority, "status": "pending"} for content, priority in PLAN
            ],
        }
        said = wire.updates_of("agent_message_chunk")[0]
        assert {**said, "messageId": "m"} == {
            "sessionUpdate": "agent_message_chunk",
            "messageId": "m",
            "content": text("I will look "),
        }
        (call,) = wire.updates_of("tool_call")
        assert call == {
            "sessionUpdate": "tool_call",
            "toolCallId": call["toolCallId"],
            "title": "Analyze",
            "kind": "other",
            "status": "pending",
        }
        changes = wire.updates_of("tool_call_update")
        assert {change["toolCallId"] for change in changes} == {call["toolCallId"]}
        runs = next(change for change in changes if change.get("status") == "in_progress")
        assert runs.keys() == {"sessionUpdate", "toolCallId", "status"}
        progress = [change["content"] for change in changes if "content" in change]
        assert progress, "it tells what it found on its way"
        assert progress[-1][-1]["type"] == "content"
        shown = "".join(item["content"]["text"] for item in progress[-1])
        assert shown == "half done"
        assert changes[-1]["status"] == "completed"
        order = [
            line for line in wire.story() if line in ("plan", "tool_call", "? session/request_permission")
        ]
        assert order == ["plan", "tool_call", "? session/request_permission"]


@served(*V2S)
async def test_the_same_turn_in_v2_has_the_same_parts(place: str, dialect: str) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        await worked(wire, session)
        (plan,) = wire.updates_of("plan_update")
        assert [entry["content"] for entry in plan["plan"]["entries"]] == [content for content, _ in PLAN]
        statuses = [update.get("status") for update in wire.updates_of("tool_call_update")]
        assert [status for status in statuses if status] == ["pending", "in_progress", "completed"]
        assert wire.words() == [("user", "work"), ("agent", "I will look at it"), ("agent", "It is fine.")]
        thoughts = [update["content"]["text"] for update in wire.updates_of("agent_thought_chunk")]
        assert thoughts == ["Let me ", "think"]


@served("v1", "v1+turn_complete")
async def test_the_answer_ends_the_turn_after_all_of_its_updates(place: str, dialect: str) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        wire.prompt(2, session, "two")
        answer = await wire.answer_to(2)
        assert answer == {"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "end_turn"}}
        last = ["turn_complete"] if dialect == "v1+turn_complete" else []
        assert wire.story()[2:] == [*["agent_message_chunk"] * 4, *last, "= 2"]


@served(*DIALECTS)
async def test_every_stop_reason_is_told_as_the_agent_gave_it(place: str, dialect: str) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        reasons = ["end_turn", "max_tokens", "max_turn_requests", "refusal"]
        assert await wire.play(session, *(f"stop {reason}" for reason in reasons)) == reasons


@served(*DIALECTS)
async def test_a_cancel_ends_the_turn_as_cancelled_behind_its_late_updates(place: str, dialect: str) -> None:
    seed = SeedAgent()
    async with staged(place, seed.agent) as stage, stage.session(dialect) as (wire, session):
        wire.prompt(2, session, "hold")
        await wire.update("agent_message_chunk")
        wire.send(method="session/cancel", params={"sessionId": session})
        assert await wire.ended(2) == "cancelled"
        assert wire.text() == "holding, and late words"
        last = "= 2" if dialect in ("v1", "v1+turn_complete") else f"{wire.state_kind} idle"
        assert wire.story()[-1] == last
        assert await wire.play(session, "goes on") == ["end_turn"]
        assert seed.prompts == ["hold", "goes on"]


@served(*DIALECTS)
async def test_a_cancel_with_an_open_permission_ends_both(place: str, dialect: str) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        wire.prompt(2, session, "ask")
        asked = await wire.request("session/request_permission")
        wire.send(method="session/cancel", params={"sessionId": session})
        wire.send(id=asked["id"], result=CANCELLED)
        assert await wire.ended(2) == "cancelled"
        statuses = [update.get("status") for update in wire.updates_of("tool_call", "tool_call_update")]
        assert "completed" not in statuses
        assert await wire.play(session, "goes on") == ["end_turn"]


@pytest.mark.parametrize("granted", [True, False])
@served(*DIALECTS)
async def test_a_tool_runs_only_once_its_permission_was_granted(
    place: str, dialect: str, granted: bool
) -> None:
    async with staged(place, SeedAgent().agent) as stage, stage.session(dialect) as (wire, session):
        wire.prompt(2, session, "ask")
        asked = await wire.request("session/request_permission")
        chosen = {"outcome": "selected", "optionId": "allow" if granted else "reject"}
        wire.send(id=asked["id"], result={"outcome": chosen})
        assert await wire.ended(2) == "end_turn"
        assert ("agent", "allowed" if granted else "refused") in wire.words()


@served(*DIALECTS)
async def test_what_a_library_raises_at_a_cancel_is_not_an_error(place: str, dialect: str) -> None:
    agent = Agent("stumbling", version="1")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.say("working")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise RuntimeError("request aborted") from None

    async with staged(place, agent) as stage, stage.session(dialect) as (wire, session):
        wire.prompt(2, session, "go")
        await wire.until(lambda frame: "working" in str(frame))
        wire.send(method="session/cancel", params={"sessionId": session})
        assert await wire.ended(2) == "cancelled"
        assert "aborted" not in str(wire.seen)


@served(*DIALECTS)
async def test_a_turn_may_ask_its_model_and_use_tools_several_times(place: str, dialect: str) -> None:
    agent = Agent("rounds", version="1")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        for number in range(3):
            turn.count_request(limit=5)
            async with turn.message() as message:
                await message.write(f"round {number}")
            async with turn.tool_call(f"tool {number}") as call:
                await call.write("result")

    async with staged(place, agent) as stage, stage.session(dialect) as (wire, session):
        assert await wire.play(session, "go") == ["end_turn"]
        ids = {update["toolCallId"] for update in wire.updates_of("tool_call", "tool_call_update")}
        assert len(ids) == 3
        assert [words for role, words in wire.words() if role == "agent"] == ["round 0", "round 1", "round 2"]


@served(*DIALECTS)
async def test_the_next_prompt_builds_on_the_turns_before_it(place: str, dialect: str) -> None:
    agent = Agent("remembers", version="1")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        said = [message.text for message in turn.session.fold.messages if message.type == "user"]
        await turn.say(", ".join(said))

    async with staged(place, agent) as stage, stage.session(dialect) as (wire, session):
        await wire.play(session, "one", "two", "three")
        assert wire.words()[-1] == ("agent", "one, two, three")


@served(*V1S, places=("agent", "hub-v1"))
async def test_a_tool_reads_a_file_of_the_client(place: str, dialect: str) -> None:
    """v2 has no methods for files: behind a hub it takes a v1 agent."""
    agent = Agent("reads", version="1")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Read", kind="read"):
            words = await turn.client.read("/site/main.py")
        await turn.say(words)

    offered = offers(dialect)["clientCapabilities"] | {"fs": {"readTextFile": True, "writeTextFile": True}}
    async with staged(place, agent) as stage, stage.client(dialect, clientCapabilities=offered) as wire:
        session = await wire.new_session()
        wire.prompt(2, session, "go")
        asked = await wire.request("fs/read_text_file")
        assert asked["params"] == {"sessionId": session, "path": "/site/main.py"}
        wire.send(id=asked["id"], result={"content": "print(1)"})
        assert await wire.ended(2) == "end_turn"
        assert wire.words()[-1] == ("agent", "print(1)")


@served(*DIALECTS)
async def test_content_that_the_agent_does_not_take_is_refused(place: str, dialect: str) -> None:
    seed = SeedAgent()
    async with staged(place, seed.agent) as stage, stage.session(dialect) as (wire, session):
        for id, block in enumerate((RESOURCE, {"type": "image", "data": "aGk=", "mimeType": "image/png"})):
            wire.send(id=id, method="session/prompt", params={"sessionId": session, "prompt": [block]})
            assert (await wire.answer_to(id))["error"]["code"] == -32602
        link = {"type": "resource_link", "uri": "file:///site/main.py", "name": "main.py"}
        params = {"sessionId": session, "prompt": [text("look"), link]}
        wire.send(id="ok", method="session/prompt", params=params)
        assert await wire.ended("ok") == "end_turn", "text and links are always taken"
        assert len(seed.prompts) == 1
