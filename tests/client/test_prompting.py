"""A prompt is taken, its turn drains, and it is known when, whatever the order of an agent's words."""

from __future__ import annotations

import asyncio
from itertools import permutations

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import Permission, Permissions
from antiphon.client.protocol import prompt_calls
from antiphon.errors import CallFailed, InvalidResult, LinkLost
from antiphon.schema import v2
from tests.client.driving import WAYS, by_hand, driven, kinds, updates_of

COMPLETES = {"sessionCapabilities": {"turnComplete": {}}}


@pytest.mark.parametrize("way", WAYS)
async def test_a_turn_is_drained_when_all_of_it_is_applied_in_order(way: str) -> None:
    agent = Agent("counts")

    @agent.on_prompt
    async def count(turn: AgentTurn) -> None:
        async with turn.message() as message:
            for number in range(500):
                await message.write(f"{number} ")
        turn.usage = v2.Usage(total_tokens=3, input_tokens=1, output_tokens=2)

    async with driven(agent, way) as session:
        turn = await session.prompt("go")
        end = await turn.drained()
        assert session.messages[-1].text == "".join(f"{number} " for number in range(500))
        assert (end.stop_reason, end.error, end.cut) == ("end_turn", None, None)
        assert end.usage == v2.Usage(total_tokens=3, input_tokens=1, output_tokens=2)
        assert turn.end is end
        assert session.state == "idle"
        assert [str(message.role) for message in session.messages] == ["user", "agent"]


@pytest.mark.parametrize("order", list(permutations(["answer", "message", "running"])), ids=" ".join)
@pytest.mark.parametrize("proposed", [False, True], ids=["published", "proposed"])
async def test_v2_tells_the_beginning_of_a_turn_in_any_order(order: tuple[str, ...], proposed: bool) -> None:
    async with by_hand() as (session, agent):
        for number in ("u1", "u2"):  # also once it is known that the agent shows prompts
            prompt = asyncio.ensure_future(session.prompt("hi"))
            id = await agent.prompted()
            for step in order:
                if step == "answer":
                    agent.send(id=id, result={} if proposed else {"messageId": number})
                elif step == "message":
                    agent.shows(number)
                else:
                    agent.told("state_change" if proposed else "state_update", state="running")
            turn = await prompt
            agent.say(number, f"m{number}")
            if proposed:
                agent.told("state_change", state="idle", stop_reason="end_turn")
            else:
                agent.state("idle", stopReason="end_turn")
            assert (await turn.drained()).stop_reason == "end_turn"
            assert turn.message_id == number
            assert turn.text == number
            assert sorted(kinds(await updates_of(turn))) == [
                "agent_message_chunk",
                "state_update",
                "state_update",
                "user_message",
            ]
            # Before the answer nobody can know that a turn is ours: until then it has another handle.
            turns = {event.turn async for event in turn.events()} - {turn}
            assert all(other is not None and other.prompt is None for other in turns)


async def test_a_prompt_that_is_answered_after_its_turn_has_that_turn() -> None:
    async with by_hand() as (session, agent):
        prompt = asyncio.ensure_future(session.prompt("hi"))
        id = await agent.prompted()
        agent.state("running")
        agent.shows("u1")
        agent.say("all of it")
        agent.state("idle", stopReason="end_turn")
        agent.takes(id, "u1")
        turn = await prompt
        assert (await turn.drained()).stop_reason == "end_turn"
        assert turn.text == "all of it"


async def test_a_repeated_idle_ends_no_turn_that_is_to_come() -> None:
    """PROMPT-V2-20."""
    async with by_hand() as (session, agent):
        prompt = asyncio.ensure_future(session.prompt("hi"))
        agent.takes(await agent.prompted(), "u1")
        turn = await prompt
        agent.state("idle", stopReason="end_turn")
        await agent.settled(session)
        assert turn.end is None
        agent.shows("u1")
        agent.state("running")
        agent.state("idle", stopReason="refusal")
        assert (await turn.drained()).stop_reason == "refusal"


async def test_a_turn_of_the_agents_own_is_not_the_prompts() -> None:
    async with by_hand() as (session, agent):
        agent.state("running")
        await agent.settled(session)
        own = session.turn
        assert own is not None
        assert own.prompt is None
        prompt = asyncio.ensure_future(session.prompt("hi"))
        id = await agent.prompted()
        agent.say("good morning", "m1")
        agent.state("idle", stopReason="end_turn")
        agent.takes(id, "u1")
        agent.shows("u1")
        agent.state("running")
        agent.say("at your service", "m2")
        agent.state("idle", stopReason="end_turn")
        turn = await prompt
        await turn.drained()
        assert (own.text, turn.text) == ("good morning", "at your service")


async def test_a_refused_prompt_raises_and_ends_no_work() -> None:
    """PROMPT-V2-17, -18."""
    async with by_hand() as (session, agent):
        prompt = asyncio.ensure_future(session.prompt("hi"))
        id = await agent.prompted()
        agent.state("running")
        agent.send(id=id, error={"code": -32602, "message": "not this"})
        with pytest.raises(CallFailed, match="not this"):
            await prompt
        assert session.state == "running"
        assert session.turn is not None


@pytest.mark.parametrize("version", [1, 2])
async def test_an_answer_that_is_none_ends_the_prompt_and_not_the_session(version: int) -> None:
    async with by_hand(version) as (session, agent):
        prompt = asyncio.ensure_future(session.prompt("hi"))
        agent.send(id=await agent.prompted(), result={"stopReason": 7, "messageId": 7})
        if version == 2:
            with pytest.raises(InvalidResult):
                await prompt
        else:
            end = await (await prompt).drained()
            assert (end.stop_reason, end.error is None) == ("error", False)
        assert session.state == "idle"
        again = asyncio.ensure_future(session.prompt("hi"))
        id = await agent.prompted()
        if version == 2:
            agent.takes(id, "u1")
            agent.shows("u1")
            agent.state("running")
            agent.state("idle", stopReason="end_turn")
        else:
            agent.ends(id)
        assert (await (await again).drained()).stop_reason == "end_turn"


async def test_a_v1_turn_ends_with_usage_or_with_the_error_that_answered_it() -> None:
    async with by_hand(1) as (session, agent):
        turn = await session.prompt("hi")
        usage = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
        agent.ends(await agent.prompted(), "max_tokens", usage=usage)
        end = await turn.drained()
        assert end.stop_reason == "max_tokens"
        assert end.usage == v2.Usage(total_tokens=3, input_tokens=1, output_tokens=2)
        turn = await session.prompt("hi")
        agent.send(id=await agent.prompted(), error={"code": -32000, "message": "log in"})
        failed = await turn.drained()
        assert failed.error == v2.Error(code=v2.ErrorCode(-32000), message="log in")


async def test_of_two_v1_prompts_each_ends_with_its_own_answer() -> None:
    usage = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
    async with by_hand(1) as (session, agent):
        first, second = await session.prompt("one"), await session.prompt("two")
        one, two = await agent.prompted(), await agent.prompted()
        agent.say("1", None)
        agent.ends(one, "max_tokens", usage=usage)
        agent.say("2", None)
        agent.send(id=two, error={"code": -32603, "message": "busy"})
        end = await first.drained()
        assert (end.stop_reason, end.usage is None) == ("max_tokens", False)
        assert (await second.drained()).stop_reason == "error"
        assert kinds(await updates_of(first)) == ["user_message", "state_update", "agent_message_chunk"]
        assert kinds(await updates_of(second)) == ["user_message", "agent_message_chunk", "state_update"]


async def test_a_second_v1_prompt_that_is_refused_leaves_the_first_alone() -> None:
    async with by_hand(1) as (session, agent):
        first, second = await session.prompt("one"), await session.prompt("two")
        one, two = await agent.prompted(), await agent.prompted()
        agent.send(id=two, error={"code": -32600, "message": "busy"})
        assert (await second.drained()).stop_reason == "error"
        agent.say("1", None)
        agent.ends(one)
        assert (await first.drained()).stop_reason == "end_turn"
        assert first.text == "1"


async def test_an_answer_is_held_for_the_turn_complete_that_was_promised() -> None:
    async with by_hand(1, COMPLETES) as (session, agent):
        turn = await session.prompt("hi")
        id = await agent.prompted()
        agent.ends(id)
        agent.say("after the answer")
        await agent.settled(session)
        assert turn.end is None
        agent.told("turn_complete", promptRequestId=str(id), stopReason="end_turn")
        assert (await turn.drained()).stop_reason == "end_turn"
        assert turn.text == "after the answer"


async def test_a_turn_complete_is_waited_for_while_the_agent_is_still_at_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prompt_calls, "OVERDUE", 0.8)
    async with by_hand(1, COMPLETES) as (session, agent):
        turn = await session.prompt("hi")
        id = await agent.prompted()
        agent.ends(id)
        for number in range(4):  # 1.2 s in all
            await asyncio.sleep(0.3)
            agent.say(str(number))
        agent.told("turn_complete", promptRequestId=str(id), stopReason="end_turn")
        await turn.drained()
        assert turn.text == "0123"


async def test_an_answered_turn_whose_agent_then_dies_ended_as_it_was_answered() -> None:
    async with by_hand(1, COMPLETES) as (session, agent):
        turn = await session.prompt("hi")
        agent.ends(await agent.prompted(), "refusal")
        await agent.transport.aclose()
        end = await turn.drained()
        assert (end.stop_reason, end.cut) == ("refusal", None)


@pytest.mark.parametrize("version", [1, 2])
async def test_a_lost_link_ends_every_turn_with_the_reason(version: int) -> None:
    async with by_hand(version) as (session, agent):
        prompt = asyncio.ensure_future(session.prompt("hi"))
        id = await agent.prompted()
        if version == 2:
            agent.takes(id, "u1")
            agent.shows("u1")
            agent.state("running")
        turn = await prompt
        waiting = asyncio.ensure_future(session.prompt("and"))
        await agent.prompted()
        await agent.transport.aclose()
        end = await turn.drained()
        assert (end.stop_reason, end.cut) == ("error", "closed by the other side")
        assert end.error is not None
        assert end.error.data == {"reason": "interrupted"}
        if version == 2:
            with pytest.raises(LinkLost):
                await waiting
        else:
            assert (await (await waiting).drained()).cut == "closed by the other side"
        assert session.state == "idle"


async def test_a_prompt_that_nobody_takes_is_taken_back_after_a_silence() -> None:
    async with by_hand() as (session, agent):
        prompt = asyncio.ensure_future(session.prompt("hi", silence=0.1))
        id = await agent.prompted()
        turn = await prompt
        assert (await turn.drained()).cut == "the agent was silent for 0.1 s"
        cancel = await agent.expect("$/cancel_request")
        assert cancel["params"] == {"requestId": id}
        # It was too late: the turn begins all the same, and is cancelled.
        agent.takes(id, "u1")
        agent.shows("u1")
        agent.state("running")
        cancel = await agent.expect("session/cancel")
        assert cancel["params"]["_meta"]["antiphon"]["messageId"] == "u1"
        agent.state("idle", stopReason="cancelled")
        await agent.settled(session)
        assert session.turn is None


async def test_a_v1_session_is_idle_again_after_a_silence_and_a_late_answer_changes_nothing() -> None:
    async with by_hand(1) as (session, agent):
        turn = await session.prompt("hi", silence=0.1)
        late = await agent.prompted()
        assert (await turn.drained()).cut == "the agent was silent for 0.1 s"
        assert kinds(await updates_of(turn)) == ["user_message", "state_update", "state_update"]
        assert (session.state, session.turn) == ("idle", None)
        assert (await agent.expect("session/cancel"))["params"] == {"sessionId": "s"}
        again = await session.prompt("hi again")
        id = await agent.prompted()
        agent.ends(late, "cancelled")
        agent.say("here")
        agent.ends(id)
        assert (await again.drained()).stop_reason == "end_turn"
        assert again.text == "here"
        assert session.state == "idle"


async def test_whoever_gives_up_on_a_prompt_takes_it_back() -> None:
    async with by_hand() as (session, agent):
        prompt = asyncio.ensure_future(session.prompt("hi"))
        id = await agent.prompted()
        prompt.cancel()
        await asyncio.wait([prompt])
        assert prompt.cancelled()
        assert (await agent.expect("$/cancel_request"))["params"] == {"requestId": id}
        agent.send(id=id, error={"code": -32800, "message": "Request cancelled"})
        await agent.settled(session)
        assert (session.state, session.turn) == ("idle", None)
        again = asyncio.ensure_future(session.prompt("hi again"))
        agent.takes(await agent.prompted(), "u2")
        agent.shows("u2")
        agent.state("running")
        turn = await again
        agent.say("here")
        agent.state("idle", stopReason="end_turn")
        assert (await turn.drained()).stop_reason == "end_turn"
        assert {event.turn async for event in turn.events()} == {turn}  # nothing is of the one taken back


async def test_words_break_a_silence() -> None:
    async with by_hand(1) as (session, agent):
        turn = await session.prompt("hi", silence=0.8)
        id = await agent.prompted()
        for _ in range(4):
            await asyncio.sleep(0.3)
            agent.say(".")
        agent.ends(id)
        assert (await turn.drained()).cut is None


async def test_an_agent_that_waits_for_us_is_not_silent() -> None:
    async def slow(permission: Permission) -> str:
        await asyncio.sleep(0.6)
        return "y"

    async with by_hand(1, answers=Permissions(ask=slow)) as (session, agent):
        turn = await session.prompt("hi", silence=0.3)
        id = await agent.prompted()
        agent.asks("p")
        assert (await agent.receive())["id"] == "p"
        agent.ends(id)
        assert (await turn.drained()).cut is None
