"""Section 6, and of 22 and 25 what goes with it: turns, states and cancels of a v2 agent, as its client sees
them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.client import Permission, Permissions, TurnEnd
from antiphon.schema import v2
from antiphon.schema.v2.permissions import PermissionOption
from antiphon.schema.wire import Unknown
from tests.requirements.agent_by_hand import Heard, session, story, text
from tests.requirements.heard_turns import END, kinds
from tests.requirements.marks import requirement

OPTIONS = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]


USAGE = {"totalTokens": 3, "inputTokens": 2, "outputTokens": 1}


async def never(permission: Permission) -> PermissionOption | None:
    await asyncio.Event().wait()
    raise AssertionError


@requirement("PROMPT-V2-14")
@pytest.mark.parametrize(
    "reason", [{}, {"stopReason": None}, {"stopReason": 7}, {"stopReason": ["end_turn"]}]
)
async def test_an_idle_without_a_reason_ends_the_turn_and_none_is_told(reason: Any) -> None:
    async with session() as (of, agent):
        turn = await agent.working(of, "hi")
        agent.state(of, "idle", **reason)
        assert await turn.drained() == TurnEnd()


@requirement("PROMPT-V2-14")
async def test_a_reason_nobody_knows_is_told_as_it_is() -> None:
    async with session() as (of, agent):
        turn = await agent.working(of, "hi")
        agent.state(of, "idle", stopReason="_budget", usage=USAGE)
        usage = v2.Usage(total_tokens=3, input_tokens=2, output_tokens=1)
        assert await turn.drained() == TurnEnd(stop_reason=v2.StopReason("_budget"), usage=usage)


@requirement("PROMPT-V2-19", "QUEUE-02")
async def test_two_prompts_in_one_span_of_work_end_with_its_one_idle() -> None:
    async with session() as (of, agent):
        one = await agent.working(of, "one", "u1")
        two = await agent.prompted(of, "two", "u2")
        agent.update(of, "user_message", messageId="u2", content=[text("two")])
        agent.says(of, "Both.", messageId="a")
        await agent.settled(of)
        assert (one.end, two.end) == (None, None)
        agent.state(of, "idle", stopReason="end_turn")
        assert await one.drained() == END
        assert await two.drained() == END
        assert agent.methods() == ["session/new", "session/prompt", "session/prompt"], "no cancel in between"


@requirement("PROMPT-V2-19")
async def test_the_idle_of_other_work_ends_no_later_prompt() -> None:
    async with session() as (of, agent):
        one = await agent.working(of, "one", "u1")
        agent.state(of, "idle", stopReason="end_turn")
        assert await one.drained() == END
        agent.state(of, "running")  # the agent's own
        agent.state(of, "idle", stopReason="max_tokens")
        two = await agent.working(of, "two", "u2")
        assert two.end is None
        agent.state(of, "idle", stopReason="refusal")
        assert await two.drained() == TurnEnd(stop_reason=v2.StopReason.REFUSAL)


@requirement("PROMPT-V2-19")
async def test_each_prompt_is_ended_by_the_idle_that_follows_its_own_place() -> None:
    """The second was taken after the first one's end, though it was sent before."""
    async with session() as (of, agent):
        one = await agent.working(of, "one", "u1")
        sending = agent.meanwhile(of.prompt("two"))
        request = await agent.request("session/prompt")
        agent.state(of, "idle", stopReason="max_tokens")
        assert await one.drained() == TurnEnd(stop_reason=v2.StopReason.MAX_TOKENS)
        assert not sending.done()
        agent.answer(request, {"messageId": "u2"})
        agent.update(of, "user_message", messageId="u2", content=[text("two")])
        agent.state(of, "running")
        agent.state(of, "idle", stopReason="end_turn")
        two = await sending
        assert await two.drained() == END
        assert await kinds(two) == ["user_message", "state_update running", "state_update idle"]


@requirement("PROMPT-V2-19")
async def test_a_turn_of_somebody_else_is_not_ours_though_we_wait_for_one() -> None:
    async with session() as (of, agent):
        prompting = agent.meanwhile(of.prompt("ours"))
        request = await agent.request("session/prompt")
        agent.update(of, "user_message", messageId="theirs", content=[text("theirs")])
        agent.state(of, "running")
        agent.state(of, "idle", stopReason="max_tokens")
        agent.answer(request, {"messageId": "ours"})
        turn = await prompting
        assert turn.end is None
        agent.update(of, "user_message", messageId="ours", content=[text("ours")])
        agent.state(of, "running")
        agent.state(of, "idle", stopReason="end_turn")
        assert await turn.drained() == END
        assert story(of) == [("user", "theirs", "theirs"), ("user", "ours", "ours")]


@requirement("PROMPT-V2-20")
async def test_a_repeated_idle_is_no_second_end_cancel_or_usage() -> None:
    async with session() as (of, agent):
        one = await agent.working(of, "one", "u1")
        last: dict[str, Any] = {"stopReason": "cancelled", "usage": USAGE}
        agent.state(of, "idle", **last)
        end = await one.drained()
        two = await agent.prompted(of, "two", "u2")
        agent.state(of, "idle", **last)
        agent.update(of, "user_message", messageId="u2", content=[text("two")])
        agent.state(of, "idle", **last)
        await agent.settled(of)
        assert (one.end, two.end) == (end, None)
        agent.state(of, "running")
        agent.state(of, "running")
        agent.state(of, "idle", stopReason="end_turn")
        assert await two.drained() == END


@requirement("PROMPT-V2-25")
async def test_a_question_does_not_block_and_its_answer_does_not_unblock_unless_told() -> None:
    may = asyncio.Event()

    async def later(permission: Permission) -> PermissionOption | None:
        await may.wait()
        return permission.allow()

    async with session(answers=Permissions(ask=later)) as (of, agent):
        turn = await agent.working(of, "work")
        one = agent.ask("session/request_permission", sessionId="s", title="One", options=OPTIONS)
        await agent.settled(of)
        assert (len(of.questions), of.state) == (1, "running")
        agent.state(of, "requires_action")
        may.set()
        await agent.answer_to(one)
        assert (len(of.questions), of.state) == (0, "requires_action")
        agent.state(of, "running")
        agent.state(of, "idle", stopReason="end_turn")
        assert await turn.drained() == END


@requirement("PROMPT-V2-29")
async def test_what_comes_in_idle_is_held_before_the_first_prompt_and_after_the_last() -> None:
    async with session() as (of, agent):
        heard = Heard(of, agent)
        await agent.settled(of)
        agent.says(of, "Good morning.", messageId="a1")
        turn = await agent.working(of, "hi")
        agent.state(of, "idle", stopReason="end_turn")
        await turn.drained()
        agent.update(of, "tool_call_update", toolCallId="t", title="Nightly", status="in_progress")
        agent.says(of, "By the way.", messageId="a2")
        await heard.until(lambda event: getattr(event.update, "message_id", None) == "a2")
        assert story(of) == [
            ("agent", "a1", "Good morning."),
            ("user", "u1", "hi"),
            ("agent", "a2", "By the way."),
        ]
        assert of.state == "idle"
        assert [event.turn is turn for event in heard.events] == [False, True, True, True, False, False]
        assert heard.events[0].turn is None
        assert heard.events[-1].turn is None


@requirement("PROMPT-V2-39")
async def test_unfinished_foreground_calls_are_cancelled_with_the_cancel_and_still_updated() -> None:
    async with session() as (of, agent):
        turn = await agent.working(of, "work")
        agent.update(of, "tool_call_update", toolCallId="done", status="completed")
        agent.update(of, "tool_call_update", toolCallId="runs", status="in_progress")
        agent.update(of, "tool_call_update", toolCallId="behind", status="in_progress")
        agent.state(of, "running", background=[{"type": "tool_call", "toolCallId": "behind"}])
        await agent.settled(of)
        await turn.cancel()
        statuses = {call.id: str(call.status) for call in of.tool_calls}
        assert statuses == {"done": "completed", "runs": "cancelled", "behind": "in_progress"}
        cancel = await agent.request("session/cancel")
        assert cancel["params"]["sessionId"] == "s"
        assert "id" not in cancel
        agent.update(of, "tool_call_update", toolCallId="runs", status="failed", title="Stopped")
        agent.state(of, "idle", stopReason="cancelled", background=[])
        assert await turn.drained() == TurnEnd(stop_reason=v2.StopReason.CANCELLED)
        assert [(call.id, str(call.status), call.title) for call in of.tool_calls] == [
            ("done", "completed", None),
            ("runs", "failed", "Stopped"),
            ("behind", "in_progress", None),
        ]


@requirement("PROMPT-V2-39")
async def test_a_call_whose_terminal_runs_in_the_background_is_not_cancelled() -> None:
    async with session() as (of, agent):
        turn = await agent.working(of, "go")
        shown = [{"type": "terminal", "terminalId": "x"}]
        agent.update(of, "terminal_update", terminalId="x", command="make")
        agent.update(of, "tool_call_update", toolCallId="t", status="in_progress", content=shown)
        agent.state(of, "running", background=[{"type": "terminal", "terminalId": "x"}])
        await agent.settled(of)
        await turn.cancel()
        assert [str(call.status) for call in of.tool_calls] == ["in_progress"]


@requirement("PROMPT-V2-39")
@pytest.mark.parametrize("background", [{}, {"background": None}])
async def test_a_call_that_outlived_its_turn_is_not_cancelled_with_a_later_one(
    background: Any,
) -> None:
    async with session() as (of, agent):
        one = await agent.working(of, "one", "u1")
        agent.update(of, "tool_call_update", toolCallId="t", status="in_progress")
        agent.state(of, "idle", stopReason="end_turn", **background)
        await one.drained()
        two = await agent.working(of, "two", "u2")
        agent.update(of, "tool_call_update", toolCallId="mine", status="in_progress")
        await agent.settled(of)
        await two.cancel()
        statuses = {call.id: str(call.status) for call in of.tool_calls}
        assert statuses == {"t": "in_progress", "mine": "cancelled"}


@requirement("PROMPT-V2-39")
async def test_a_late_cancel_of_an_ended_turn_sends_nothing() -> None:
    async with session() as (of, agent):
        one = await agent.working(of, "one", "u1")
        agent.state(of, "idle", stopReason="end_turn")
        await one.drained()
        two = await agent.working(of, "two", "u2")
        agent.update(of, "tool_call_update", toolCallId="t", status="in_progress")
        await agent.settled(of)
        await one.cancel()
        await agent.settled(of)
        assert "session/cancel" not in agent.methods()
        assert (two.end, str(of.tool_calls[0].status)) == (None, "in_progress")


@requirement("PROMPT-V2-47")
async def test_background_work_is_replaced_unknown_work_counts_and_silence_says_nothing() -> None:
    async with session() as (of, agent):
        assert of.fold.background is None, "nothing was told: not that nothing runs"
        agent.state(
            of,
            "idle",
            background=[{"type": "tool_call", "toolCallId": "t"}, {"type": "_cron", "every": "hour"}],
        )
        await agent.settled(of)
        assert of.fold.background == [
            v2.BackgroundToolCall(tool_call_id=v2.ToolCallId("t")),
            Unknown({"type": "_cron", "every": "hour"}),
        ]
        agent.state(of, "idle", background=[{"type": "_cron", "every": "hour"}])
        await agent.settled(of)
        assert of.fold.background == [Unknown({"type": "_cron", "every": "hour"})]
        agent.state(of, "idle", background=[])
        await agent.settled(of)
        assert of.fold.background == []
        agent.state(of, "idle")
        await agent.settled(of)
        assert of.fold.background is None


@requirement("PROMPT-V2-48", "PROMPT-V2-50", "SD-14")
@pytest.mark.parametrize("state", ["dreaming", "_paused", "unknown"])
async def test_an_unknown_state_is_busy_and_ends_nothing(state: str) -> None:
    async with session(answers=Permissions(ask=never)) as (of, agent):
        agent.state(of, state)
        await agent.settled(of)
        assert of.state == "unsure"
        assert of.state != "idle"
        turn = await agent.working(of, "work")
        agent.update(of, "tool_call_update", toolCallId="t", status="in_progress")
        agent.ask("session/request_permission", sessionId="s", title="May I?", options=OPTIONS)
        await agent.settled(of)
        agent.state(of, state, stopReason="cancelled")
        await agent.settled(of)
        assert of.state == "obscured", "neither idle nor still confirmed as running"
        assert (turn.end, len(of.questions), str(of.tool_calls[0].status)) == (None, 1, "in_progress")
        agent.state(of, "running")
        await agent.settled(of)
        assert of.state == "running"
        agent.state(of, "idle", stopReason="end_turn")
        assert await turn.drained() == END


@requirement("SD-01", "SD-02")
@pytest.mark.parametrize("kind", ["state_update", "state_change"])
@pytest.mark.parametrize(
    "reason",
    [
        {"stopReason": "refusal"},
        {"stop_reason": "refusal"},
        {"stop_reason": "end_turn", "stopReason": "refusal"},
    ],
)
async def test_every_spelling_of_the_end_is_read(kind: str, reason: dict[str, str]) -> None:
    async with session() as (of, agent):
        turn = await agent.prompted(of, "hi")
        agent.update(of, kind, state="running")
        await agent.settled(of)
        assert of.state == "running"
        agent.update(of, kind, state="idle", **reason)
        assert await turn.drained() == TurnEnd(stop_reason=v2.StopReason.REFUSAL)


@requirement("PROMPT-V2-52")
@pytest.mark.parametrize("error", [None, {"code": -32603, "message": "Overloaded"}])
async def test_a_turn_that_fails_after_its_insertion_says_so(error: Any) -> None:
    async with session() as (of, agent):
        turn = await agent.working(of, "hi")
        agent.state(of, "idle", stopReason="error", error=error)
        expected = None if error is None else v2.Error(code=v2.ErrorCode.INTERNAL_ERROR, message="Overloaded")
        assert await turn.drained() == TurnEnd(stop_reason=v2.StopReason.ERROR, error=expected)
