"""A turn can be watched from its beginning however late, and ends once."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import TurnEnd
from antiphon.errors import LinkLost
from antiphon.schema import v2
from tests.client.driving import WAYS, by_hand, driven, kinds, updates_of


def talks() -> Agent:
    agent = Agent("talks")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.thought() as thought:
            await thought.write("hm")
        async with turn.message() as message:
            await message.write("one ")
            await turn.session.update(v2.UsageUpdate(used=1, size=2))
            await turn.session.set_title("beside")
            await message.write("message")
        async with turn.tool_call("look", kind="read") as call:
            await call.write("seen")
        await turn.say("another")

    return agent


@pytest.mark.parametrize("way", WAYS)
async def test_whoever_watches_sees_all_of_a_turn_early_or_late(way: str) -> None:
    async with driven(talks(), way) as session:
        turn = await session.prompt("go")
        early = asyncio.ensure_future(updates_of(turn))
        await turn.drained()
        assert await early == await updates_of(turn)
        assert kinds(await early)[-1] == "state_update"
        assert [event.update async for event in turn.events()] == await early
        seqs = [event.seq async for event in turn.events()]
        assert seqs == sorted(set(seqs))


@pytest.mark.parametrize("way", WAYS)
async def test_messages_come_whole_and_are_not_parted_by_what_stands_beside_them(way: str) -> None:
    async with driven(talks(), way) as session:
        turn = await session.prompt("go")
        told = [(str(message.role), message.text) async for message in turn.messages()]
        assert told == [("user", "go"), ("thought", "hm"), ("agent", "one message"), ("agent", "another")]
        assert turn.text == "one message\n\nanother"


@pytest.mark.parametrize("early", ["message", "message and state"])
async def test_what_a_turn_hears_names_that_turn_however_late_it_was_known(early: str) -> None:
    async with by_hand() as (session, agent):
        watching = session.events()
        prompting = asyncio.ensure_future(session.prompt("go"))
        id = await agent.prompted()
        agent.shows("u")
        if early == "message and state":
            agent.state("running")
        agent.takes(id, "u")
        turn = await prompting
        if early == "message":
            agent.state("running")
        agent.say("on it")
        agent.state("idle", stopReason="end_turn")
        await turn.drained()
        events = [event async for event in turn.events()]
        assert kinds([event.update for event in events]) == [
            "user_message", "state_update", "agent_message_chunk", "state_update",
        ]  # fmt: skip
        assert all(event.turn is turn for event in events)
        assert (await anext(watching)).turn is None, "who watched the session could not know"


async def test_two_prompts_in_one_turn_hear_it_as_their_own() -> None:
    async with by_hand() as (session, agent):
        turns = []
        for name in ("u1", "u2"):
            prompting = asyncio.ensure_future(session.prompt("go"))
            agent.takes(await agent.prompted(), name)
            turns.append(await prompting)
            agent.shows(name)
            agent.state("running")
        agent.say("both")
        agent.state("idle", stopReason="end_turn")
        for turn in turns:
            await turn.drained()
            assert {event.turn async for event in turn.events()} == {turn}
            assert turn.text == "both"


async def test_a_message_is_told_when_a_question_follows_it() -> None:
    async with by_hand(1) as (session, agent):
        turn = await session.prompt("go")
        id = await agent.prompted()
        messages = turn.messages()
        await anext(messages)
        agent.say("May I?")
        agent.asks("p")
        assert (await anext(messages)).text == "May I?"
        agent.ends(id)
        await turn.drained()


async def test_a_turn_ends_once() -> None:
    async with by_hand() as (session, agent):
        prompting = asyncio.ensure_future(session.prompt("go"))
        agent.takes(await agent.prompted(), "u")
        turn = await prompting
        agent.shows("u")
        agent.state("running")
        agent.state("idle", stopReason="end_turn")
        end = await turn.drained()
        seen = await updates_of(turn)
        agent.state("idle", stopReason="refusal")
        await agent.settled(session)
        assert await turn.drained() == end
    assert await turn.drained() == end  # the end of the link comes too late
    assert end.stop_reason == "end_turn"
    assert await updates_of(turn) == seen


def test_an_end_that_was_cut_short_says_why_and_is_an_error() -> None:
    for reason in ("it died", LinkLost("it died", stderr=["ouch"])):
        end = TurnEnd.interrupted(reason)
        assert (end.cut, end.stop_reason, end.cancelled) == ("it died", "error", False)


async def test_a_wait_that_is_cancelled_leaves_the_turn_alone() -> None:
    async with by_hand(1) as (session, agent):
        turn = await session.prompt("go")
        id = await agent.prompted()
        waiting = asyncio.ensure_future(turn.drained())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        agent.ends(id)
        assert (await turn.drained()).stop_reason == "end_turn"


async def test_a_turn_that_nobody_holds_is_not_kept() -> None:
    async with driven(talks()) as session:
        turn = await session.prompt("go")
        await turn.drained()
        gone = weakref.ref(turn)
        del turn
        await session.client.connection.notify("_mark", {})
        gc.collect()
        assert gone() is None
