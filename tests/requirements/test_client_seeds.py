"""Sections 22 and 25 as they bind a client: `turn_complete`, and the other spellings of v1 and v2."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.client import TurnEnd
from antiphon.schema import v2
from tests.requirements.agent_by_hand import session, story
from tests.requirements.marks import requirement

CONFIRMED = {"_meta": {"antiphon": {"turnComplete": True}}}
END = TurnEnd(stop_reason=v2.StopReason.END_TURN)


@requirement("TC-07", "SD-30")
@pytest.mark.parametrize("order", ["before the response", "after the response"])
async def test_a_turn_is_drained_by_the_completion_that_names_its_request(order: str) -> None:
    async with session(1, CONFIRMED) as (of, agent):
        turn = await of.prompt("hi")
        request = await agent.request("session/prompt")
        complete = {"promptRequestId": str(request["id"]), "stopReason": "end_turn"}
        agent.says(of, "Hello, ", messageId="a")
        if order == "before the response":
            agent.says(of, "you.", messageId="a")
            agent.update(of, "turn_complete", **complete)
            agent.answer(request, {"stopReason": "end_turn"})
        else:
            agent.answer(request, {"stopReason": "end_turn"})
            await agent.settled(of)
            assert turn.end is None, "the completion is promised"
            agent.says(of, "you.", messageId="a")
            agent.update(of, "turn_complete", **complete)
        assert await turn.drained() == END
        assert turn.text == "Hello, you."
        agent.says(of, " Late.", messageId="b")
        await agent.settled(of)
        assert turn.text == "Hello, you."


@requirement("TC-07")
async def test_a_completion_that_names_another_request_drains_no_turn() -> None:
    async with session(1, CONFIRMED) as (of, agent):
        turn = await of.prompt("hi")
        request = await agent.request("session/prompt")
        agent.update(of, "turn_complete", promptRequestId="another's", stopReason="end_turn")
        agent.update(of, "turn_complete", stopReason="end_turn")
        agent.answer(request, {"stopReason": "max_tokens"})
        await agent.settled(of)
        assert turn.end is None
        agent.says(of, "Hello.", messageId="a")
        agent.update(of, "turn_complete", promptRequestId=str(request["id"]), stopReason="max_tokens")
        assert await turn.drained() == TurnEnd(stop_reason=v2.StopReason.MAX_TOKENS)
        assert turn.text == "Hello."


@requirement("TC-07")
async def test_an_error_response_ends_the_turn_without_a_completion() -> None:
    async with session(1, CONFIRMED) as (of, agent):
        turn = await of.prompt("hi")
        agent.refuse(await agent.request("session/prompt"), -32603, "Broken")
        assert (await turn.drained()).stop_reason == "error"


@requirement("TC-06", "TC-07")
@pytest.mark.parametrize("said", [{}, {"_meta": {"antiphon": {"turnComplete": "yes"}}}])
async def test_without_the_promise_the_response_ends_the_turn(said: dict[str, Any]) -> None:
    async with session(1, said) as (of, agent):
        turn = await of.prompt("hi")
        agent.says(of, "Hello.", messageId="a")
        agent.answer(await agent.request("session/prompt"), {"stopReason": "end_turn"})
        assert await turn.drained() == END
        assert story(of)[1:] == [("agent", "a", "Hello.")]


@requirement("TC-06")
async def test_the_promise_may_stand_where_the_proposal_puts_it() -> None:
    async with session(1, {"sessionCapabilities": {"turnComplete": {}}}) as (of, agent):
        turn = await of.prompt("hi")
        request = await agent.request("session/prompt")
        agent.answer(request, {"stopReason": "end_turn"})
        await agent.settled(of)
        assert turn.end is None, "the completion is promised"
        agent.says(of, "Hello.", messageId="a")
        agent.update(of, "turn_complete", promptRequestId=str(request["id"]), stopReason="end_turn")
        assert await turn.drained() == END
        assert turn.text == "Hello."
