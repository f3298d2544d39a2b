"""Section 25: where the first proposals and the published draft differ, what an agent sends by default."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.schema import v2
from tests.agent.talk import Talk, client, session
from tests.requirements.marks import requirement

START = {"type": "start"}


class Many:
    """An agent that does what its prompt names; what holds goes on when `go` is set."""

    def __init__(self) -> None:
        self.agent = Agent("many", version="1")
        self.agent.on_prompt(self.work)
        self.go = asyncio.Event()

    async def work(self, turn: AgentTurn) -> str | None:
        turn.usage = v2.Usage(total_tokens=3, input_tokens=1, output_tokens=2)
        async with turn.message() as message:
            await message.write("first ")
            match turn.prompt.text:
                case "hold":
                    await self.go.wait()
                case "fail":
                    raise ValueError("secret")
                case "refuse":
                    return "refusal"
                case "replace":
                    await message.replace("second")
                case "plan":
                    await turn.plan(["a"])
                case "ask":
                    async with turn.tool_call("act") as call:
                        await call.request_permission()
        return None


def updates(talk: Talk, *kinds: str) -> list[dict[str, Any]]:
    found = [frame["params"]["update"] for frame in talk.seen if frame.get("method") == "session/update"]
    return [update for update in found if not kinds or update["sessionUpdate"] in kinds]


async def played(talk: Talk, id: str, *texts: str) -> None:
    for number, text in enumerate(texts):
        talk.prompt(number, id, text)
        await talk.update("state_update", state="idle")


async def settled(talk: Talk) -> None:
    """Everything the agent does with what it was sent up to now has arrived."""
    talk.send(id="settled", method="_settled")
    await talk.answer_to("settled")


@requirement("SD-01", "SD-02", "SD-03", "SD-04", "SD-13")
@pytest.mark.parametrize(
    ("text", "reason"), [("hello", "end_turn"), ("refuse", "refusal"), ("fail", "error")]
)
async def test_the_idle_that_ends_work_says_why_and_what_it_took(text: str, reason: str) -> None:
    async with session(Many().agent) as (talk, id):
        await played(talk, id, text)
        idle = updates(talk)[-1]
        failure = idle.pop("error", None)
        assert idle == {
            "sessionUpdate": "state_update",
            "state": "idle",
            "stopReason": reason,
            "usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2},
        }
        assert failure == ({"code": -32603, "message": "Internal error"} if text == "fail" else None)
        assert "result" in await talk.answer_to(0), "the failure came after the insertion"
        assert not updates(talk, "state_change")


@requirement("SD-05", "SD-07", "SD-08", "SD-10", "SD-11", "SD-23")
async def test_answer_then_one_whole_message_then_running_then_idle() -> None:
    async with session(Many().agent) as (talk, id):
        await played(talk, id, "hello")
        assert talk.story()[2:] == [
            "= 0", "user_message", "state_update running", "agent_message_chunk", "state_update idle",
        ]  # fmt: skip
        (user,) = updates(talk, "user_message")
        assert user["content"] == [{"type": "text", "text": "hello"}]
        assert (await talk.answer_to(0))["result"] == {"messageId": user["messageId"]}


@requirement("SD-06", "SD-15")
async def test_a_prompt_is_answered_when_it_is_inserted_and_held_ones_in_order() -> None:
    many = Many()
    async with session(many.agent) as (talk, id):
        for number, text in enumerate(("hold", "one", "withdrawn", "two")):
            talk.prompt(number, id, text)
        await talk.update("agent_message_chunk")
        talk.send(method="$/cancel_request", params={"requestId": 2})
        assert (await talk.answer_to(2))["error"]["code"] == -32800
        await settled(talk)
        answered = [line for line in talk.story() if line.startswith("=")]
        assert answered == ["= init", "= new", "= 0", "= 2", "= settled"], "held, and open"
        many.go.set()
        for _ in range(3):
            await talk.update("state_update", state="idle")
        said = [update["content"][0]["text"] for update in updates(talk, "user_message")]
        assert said == ["hold", "one", "two"]
        story = talk.story()
        for number in (1, 3):
            at = story.index(f"= {number}")
            assert story[at : at + 3] == [f"= {number}", "user_message", "state_update running"]


@requirement("SD-09")
async def test_a_whole_message_takes_the_place_of_its_chunks() -> None:
    async with session(Many().agent) as (talk, id):
        await played(talk, id, "replace")
        chunk, whole = updates(talk, "agent_message_chunk", "agent_message")
        assert whole == {
            "sessionUpdate": "agent_message",
            "messageId": chunk["messageId"],
            "content": [{"type": "text", "text": "second"}],
            "_meta": {"antiphon": {"revision": {"at": 1, "last": 1}}},
        }


@requirement("SD-12")
async def test_requires_action_is_left_again_and_the_question_is_named_in_meta_alone() -> None:
    async with session(Many().agent) as (talk, id):
        talk.prompt(0, id, "ask")
        asked = await talk.request("session/request_permission")
        blocked = await talk.update("state_update", state="requires_action")
        assert blocked.keys() == {"sessionUpdate", "state", "_meta"}
        talk.send(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": "allow"}})
        await talk.update("state_update", state="idle")
        states = [update["state"] for update in updates(talk, "state_update")]
        assert states == ["running", "requires_action", "running", "idle"]


@requirement("SD-16")
async def test_the_agent_s_own_work_has_states_and_no_made_up_user_message() -> None:
    many = Many()
    async with session(many.agent) as (talk, id):
        found = many.agent.find(id)
        assert found is not None
        async with found.turn() as turn:
            await turn.say("By the way")
        await talk.update("state_update", state="idle", stopReason="end_turn")
        assert talk.story()[2:] == ["state_update running", "agent_message", "state_update idle"]


@requirement("SD-17")
async def test_a_cancel_ends_as_cancelled_refuses_what_waits_and_not_what_comes_after() -> None:
    async with session(Many().agent) as (talk, id):
        talk.prompt(0, id, "hold")
        talk.prompt(1, id, "waits")
        await talk.update("agent_message_chunk")
        talk.send(method="session/cancel", params={"sessionId": id})
        talk.prompt(2, id, "after")
        await talk.update("state_update", state="idle", stopReason="cancelled")
        await talk.update("state_update", state="idle", stopReason="end_turn")
        assert (await talk.answer_to(1))["error"]["code"] == -32800
        assert "result" in await talk.answer_to(2)


@requirement("SD-18", "SD-25")
async def test_a_replay_has_the_same_ids_and_ends_with_the_state_before_its_answer() -> None:
    many = Many()
    async with session(many.agent) as (talk, id), client(many.agent) as late:
        await played(talk, id, "hello", "again")
        ids = list(dict.fromkeys(update["messageId"] for update in updates(talk) if "messageId" in update))
        await late.call("join", "session/resume", sessionId=id, cwd="/", replayFrom=START)
        assert [update["messageId"] for update in updates(late) if "messageId" in update] == ids
        assert late.story()[-2:] == ["state_update idle", "= join"]


@requirement("SD-19", "SD-22", "SD-27", "SD-29")
async def test_v1_has_no_states_no_id_for_a_prompt_and_nothing_not_asked_for() -> None:
    async with session(Many().agent, 1) as (talk, id):
        talk.prompt(0, id, "replace")
        answer = (await talk.answer_to(0))["result"]
        assert answer.keys() == {"stopReason", "usage"}
        said = {update["sessionUpdate"] for update in updates(talk)}
        assert said == {"agent_message_chunk"}


@requirement("SD-20")
async def test_every_attached_client_sees_the_prompt() -> None:
    many = Many()
    async with session(many.agent) as (talk, id), client(many.agent) as new, client(many.agent, 1) as old:
        await new.call("join", "session/resume", sessionId=id, cwd="/")
        await old.call("join", "session/resume", sessionId=id, cwd="/", mcpServers=[])
        talk.prompt(0, id, "hello")
        assert (await new.update("user_message"))["content"] == [{"type": "text", "text": "hello"}]
        assert (await old.update("user_message_chunk"))["content"] == {"type": "text", "text": "hello"}


@requirement("SD-24")
async def test_ids_are_unique_in_the_session_whatever_they_are_of() -> None:
    async with session(Many().agent) as (talk, id):
        await played(talk, id, "hello", "again", "replace")
        kinds: dict[str, set[str]] = {}
        for update in updates(talk):
            if "messageId" in update:
                kinds.setdefault(update["messageId"], set()).add(update["sessionUpdate"].split("_")[0])
        assert len(kinds) == 6
        assert all(len(kind) == 1 for kind in kinds.values())


@requirement("SD-28")
async def test_a_plan_is_named_by_its_plan_id() -> None:
    async with session(Many().agent) as (talk, id):
        await played(talk, id, "plan")
        (plan,) = updates(talk, "plan_update")
        assert plan["plan"]["planId"]


@requirement("SD-29", "SD-30")
@pytest.mark.parametrize("request_id", [7, "7", "seven"])
async def test_turn_complete_names_its_prompt_by_a_string_and_comes_before_the_answer(
    request_id: int | str,
) -> None:
    wanted = {"clientCapabilities": {"_meta": {"antiphon": {"turnComplete": True}}}}
    async with session(Many().agent, 1, **wanted) as (talk, id):
        talk.prompt(request_id, id, "hello")
        await talk.answer_to(request_id)
        (complete,) = updates(talk, "turn_complete")
        assert complete["promptRequestId"] == str(request_id)
        assert talk.story()[-2:] == ["turn_complete", f"= {request_id}"]


@requirement("SD-29")
async def test_turn_complete_is_never_sent_on_v2() -> None:
    wanted = {"capabilities": {"_meta": {"antiphon": {"turnComplete": True}}}}
    async with session(Many().agent, 2, **wanted) as (talk, id):
        await played(talk, id, "hello")
        await settled(talk)
        assert not updates(talk, "turn_complete")
