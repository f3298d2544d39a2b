"""Section 5: a turn with a v1 agent, whose prompt is answered at its end, as the client sees it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.client import Permission, Permissions, TurnEnd
from antiphon.errors import LocalError
from antiphon.schema import v2
from antiphon.schema.v2.permissions import PermissionOption
from tests.requirements.agent_by_hand import Heard, opened, session, story, text, unopened
from tests.requirements.marks import requirement

OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
CANCELLED = {"outcome": {"outcome": "cancelled"}}
IMAGE = v2.ImageContent(data="aGk=", mime_type="image/png")
AUDIO = v2.AudioContent(data="aGk=", mime_type="audio/wav")
RESOURCE = v2.EmbeddedResource(resource=v2.TextResourceContents(uri="file:///a", text="a"))


async def never(permission: Permission) -> PermissionOption | None:
    await asyncio.Event().wait()
    raise AssertionError


@requirement("PROMPT-V1-01")
async def test_nothing_is_asked_before_initialize() -> None:
    async with unopened() as (client, agent):
        with pytest.raises(LocalError):
            await client.connection.call("session/new", {"cwd": "/", "mcpServers": []})
        opening = agent.initializing(client)
        assert (await agent.request("initialize"))["method"] == "initialize"
        assert len(agent.seen) == 1
        opening.cancel()


@requirement("PROMPT-V1-01")
async def test_a_prompt_says_its_session_and_its_content_and_no_more() -> None:
    async with session(1) as (of, agent):
        await of.prompt("look", IMAGE, AUDIO, RESOURCE)
        request = await agent.request("session/prompt")
        assert request["params"] == {
            "sessionId": "s",
            "prompt": [
                text("look"),
                {"type": "image", "data": "aGk=", "mimeType": "image/png"},
                {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "file:///a", "text": "a"}},
            ],
        }


@requirement("PROMPT-V1-01", "CONT-02")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("block", "named"), [(IMAGE, "image"), (AUDIO, "audio"), (RESOURCE, "embedded context")]
)
async def test_content_the_agent_does_not_take_is_refused_and_not_sent(
    version: int, block: Any, named: str
) -> None:
    async with session(version, {} if version == 1 else {"session": {}}) as (of, agent):
        with pytest.raises(LocalError, match=named):
            await of.prompt("look", block)
        await agent.settled(of)
        assert agent.methods() == ["session/new"]
        assert of.messages == []


@requirement("PROMPT-V1-04")
async def test_what_came_before_the_response_is_there_when_the_turn_is_drained() -> None:
    async with session(1) as (of, agent):
        turn = await of.prompt("count")
        request = await agent.request("session/prompt")
        for n in range(200):
            agent.says(of, f"{n} ")
        agent.update(of, "tool_call", toolCallId="t", title="Add", status="completed")
        agent.answer(request, {"stopReason": "max_tokens"})
        assert await turn.drained() == TurnEnd(stop_reason=v2.StopReason.MAX_TOKENS)
        assert story(of) == [
            ("user", "b:user:1", "count"),
            ("agent", "b:agent:1.1", "".join(f"{n} " for n in range(200))),
        ]
        assert [(call.id, call.title, call.status) for call in of.tool_calls] == [("t", "Add", "completed")]


@requirement("PROMPT-V1-04")
async def test_what_comes_after_the_response_is_the_sessions_and_no_turns() -> None:
    async with session(1) as (of, agent):
        heard = Heard(of, agent)
        turn = await of.prompt("hi")
        request = await agent.request("session/prompt")
        agent.says(of, "on time", messageId="a1")
        agent.answer(request, {"stopReason": "end_turn"})
        await turn.drained()
        agent.says(of, "late", messageId="a2")
        await agent.settled(of)
        assert story(of)[1:] == [("agent", "a1", "on time"), ("agent", "a2", "late")]
        assert turn.text == "on time"
        late = await heard.until(lambda event: getattr(event.update, "message_id", None) == "a2")
        on_time = await heard.until(lambda event: getattr(event.update, "message_id", None) == "a1")
        assert late.turn is None
        assert on_time.turn is turn


@requirement("PROMPT-V1-04")
@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"])
async def test_every_stop_reason_of_the_response_ends_the_turn_and_is_told(reason: str) -> None:
    async with session(1) as (of, agent):
        turn = await of.prompt("hi")
        agent.answer(await agent.request("session/prompt"), {"stopReason": reason})
        assert await turn.drained() == TurnEnd(stop_reason=v2.StopReason(reason))
        assert of.state == "idle"


@requirement("PROMPT-V1-11", "PROMPT-V1-17")
async def test_unfinished_calls_are_cancelled_at_once_and_still_updated() -> None:
    async with session(1) as (of, agent):
        turn = await of.prompt("work")
        request = await agent.request("session/prompt")
        agent.update(of, "tool_call", toolCallId="done", title="Read", status="completed")
        agent.update(of, "tool_call", toolCallId="failed", title="Try", status="failed")
        agent.update(of, "tool_call", toolCallId="runs", title="Run", status="in_progress")
        agent.update(of, "tool_call", toolCallId="waits", title="Wait")
        await agent.settled(of)
        await turn.cancel()
        assert {call.id: str(call.status) for call in of.tool_calls} == {
            "done": "completed",
            "failed": "failed",
            "runs": "cancelled",
            "waits": "cancelled",
        }
        assert (await agent.request("session/cancel"))["params"]["sessionId"] == "s"
        assert turn.end is None, "the agent has not confirmed"
        result = [{"type": "content", "content": text("so far")}]
        agent.update(of, "tool_call_update", toolCallId="runs", status="completed", content=result)
        agent.update(of, "tool_call", toolCallId="last", title="Clean up", status="completed")
        agent.answer(request, {"stopReason": "cancelled"})
        assert await turn.drained() == TurnEnd(stop_reason=v2.StopReason.CANCELLED)
        assert {call.id: str(call.status) for call in of.tool_calls} == {
            "done": "completed",
            "failed": "failed",
            "runs": "completed",
            "waits": "cancelled",
            "last": "completed",
        }
        assert of.tool_calls[2].content == [v2.Content(content=v2.TextContent(text="so far"))]


@requirement("PROMPT-V1-12", "PERM-V1-03")
@pytest.mark.parametrize("by", ["turn", "session"])
async def test_a_cancel_answers_every_open_question_at_once(by: str) -> None:
    async with session(1, answers=Permissions(ask=never)) as (of, agent):
        turn = await of.prompt("work")
        request = await agent.request("session/prompt")
        one = agent.ask(
            "session/request_permission", sessionId="s", toolCall={"toolCallId": "a"}, options=OPTIONS
        )
        two = agent.ask(
            "session/request_permission", sessionId="s", toolCall={"toolCallId": "b"}, options=OPTIONS
        )
        await agent.settled(of)
        assert len(of.questions) == 2
        await (turn.cancel() if by == "turn" else of.cancel())
        assert (await agent.answer_to(one))["result"] == CANCELLED
        assert (await agent.answer_to(two))["result"] == CANCELLED
        await agent.request("session/cancel")
        assert of.questions == []
        agent.answer(request, {"stopReason": "cancelled"})
        assert (await turn.drained()).cancelled


@requirement("PERM-V1-03")
async def test_a_question_that_comes_after_the_cancel_is_cancelled_too() -> None:
    """It was on its way: the turn is cancelled, so nobody is to be asked any more."""
    async with session(1, answers=Permissions(ask=never)) as (of, agent):
        turn = await of.prompt("work")
        request = await agent.request("session/prompt")
        await turn.cancel()
        late = agent.ask(
            "session/request_permission", sessionId="s", toolCall={"toolCallId": "a"}, options=OPTIONS
        )
        assert (await agent.answer_to(late))["result"] == CANCELLED
        agent.answer(request, {"stopReason": "cancelled"})
        assert (await turn.drained()).cancelled


@requirement("PROMPT-V1-11")
async def test_only_the_calls_of_the_turn_are_cancelled() -> None:
    async with session(1) as (of, agent):
        one = await of.prompt("one")
        agent.update(of, "tool_call", toolCallId="t", title="T", status="in_progress")
        agent.answer(await agent.request("session/prompt"), {"stopReason": "end_turn"})
        await one.drained()
        two = await of.prompt("two")
        agent.update(of, "tool_call", toolCallId="mine", title="M", status="in_progress")
        await agent.settled(of)
        await two.cancel()
        statuses = {call.id: str(call.status) for call in of.tool_calls}
        assert statuses == {"t": "in_progress", "mine": "cancelled"}


@requirement("PERM-V1-03")
async def test_a_cancel_leaves_the_questions_of_another_session_alone() -> None:
    async with opened(1, answers=Permissions(ask=never)) as (client, agent):
        one, two = await agent.new_session(client, "one"), await agent.new_session(client, "two")
        first, second = await one.prompt("work"), await two.prompt("work")
        for id in ("one", "two"):
            agent.ask(
                "session/request_permission", sessionId=id, toolCall={"toolCallId": "a"}, options=OPTIONS
            )
        await agent.settled(one)
        await agent.settled(two)
        await first.cancel()
        await agent.answer_to("ask-1")
        assert [question.tool_call_id for question in two.questions] == ["a"]
        assert second.end is None
        assert [params["sessionId"] for params in agent.sent("session/cancel")] == ["one"]


@requirement("PROMPT-V1-04")
async def test_an_error_instead_of_a_response_ends_the_turn_with_it() -> None:
    async with session(1) as (of, agent):
        turn = await of.prompt("work")
        request = await agent.request("session/prompt")
        agent.says(of, "almost", messageId="a")
        agent.refuse(request, -32603, "Out of memory")
        end = await turn.drained()
        assert end == TurnEnd(
            stop_reason=v2.StopReason.ERROR,
            error=v2.Error(code=v2.ErrorCode.INTERNAL_ERROR, message="Out of memory"),
        )
        assert story(of)[1:] == [("agent", "a", "almost")]


@requirement("PROMPT-V1-04")
@pytest.mark.parametrize("result", [None, {}, 5, {"stopReason": None}, {"stopReason": "bored"}])
async def test_a_response_that_is_none_ends_the_turn_as_an_error_and_the_next_one_works(
    result: Any,
) -> None:
    async with session(1) as (of, agent):
        turn = await of.prompt("one")
        agent.says(of, "Hm.", messageId="a")
        agent.answer(await agent.request("session/prompt"), result)
        assert (await turn.drained()).stop_reason == "error"
        assert turn.text == "Hm."
        again = await of.prompt("two")
        agent.answer(await agent.request("session/prompt"), {"stopReason": "end_turn"})
        assert await again.drained() == TurnEnd(stop_reason=v2.StopReason.END_TURN)
