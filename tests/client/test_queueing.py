"""Prompts that wait at the agent can be edited, moved and withdrawn until they are accepted."""

from __future__ import annotations

import asyncio

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import ClientSession
from antiphon.errors import CallFailed, InvalidResult, LinkLost, LocalError
from antiphon.schema import v2
from tests.client.driving import V2_WAYS, WAYS, by_hand, driven

QUEUE = {"session": {}, "_meta": {"antiphon": {"inject": {"modes": ["queue", "steer"]}}}}
TELL = [way for way in WAYS if way != "v1"]
"""Where the end of a turn is told that no request opened."""


class Gate:
    """An agent that works until it is let go."""

    def __init__(self) -> None:
        self.agent = Agent("gate")
        self.open = asyncio.Event()
        self.texts: list[str] = []

        @self.agent.on_prompt
        async def work(turn: AgentTurn) -> None:
            self.texts.append(turn.prompt.text)
            await self.open.wait()
            for prompt in turn.steered():
                self.texts.append(f"steered: {prompt.text}")
            await turn.say(turn.prompt.text.upper())


def waiting(session: ClientSession) -> list[str]:
    return [entry["content"][0]["text"] for entry in session.queue.entries]


@pytest.mark.parametrize("way", TELL)
async def test_a_queued_prompt_is_edited_moved_and_withdrawn_and_the_rest_is_said(way: str) -> None:
    gate = Gate()
    async with driven(gate.agent, way) as session:
        first = await session.prompt("one")
        two, three, four = [await session.queue.add(text) for text in ("two", "three", "four")]
        await two.edit("TWO")
        await four.move(before=two)
        await three.withdraw()
        with pytest.raises(LocalError, match="withdrawn"):
            await three.accepted()
        assert (await three.turn.drained()).cancelled
        gate.open.set()
        await first.drained()
        for queued, text in ((four, "FOUR"), (two, "TWO")):
            turn = await queued.accepted()
            assert (await turn.drained()).stop_reason == "end_turn"
            assert turn.text == text
            assert turn.message_id == queued.message_id
        assert gate.texts == ["one", "four", "TWO"]
        assert session.queue.entries == []


async def test_what_waits_is_seen_in_its_order_and_belongs_to_no_turn() -> None:
    gate = Gate()
    async with driven(gate.agent) as session:
        events = session.events()
        turn = await session.prompt("one")
        await session.queue.add("two")
        three = await session.queue.add("three")
        await three.move(before=None)
        async for event in events:
            if isinstance(event.update, dict) and len(waiting(session)) == 2:
                assert event.turn is None
                break
        assert waiting(session) == ["two", "three"]
        gate.open.set()
        await turn.drained()
        assert not any(isinstance(update, dict) for update in [u async for u in turn.updates()])


@pytest.mark.parametrize("way", TELL)
async def test_a_prompt_queued_at_an_idle_agent_has_its_turn_at_once(way: str) -> None:
    gate = Gate()
    gate.open.set()
    async with driven(gate.agent, way) as session:
        for text in ("one", "two"):
            queued = await session.queue.add(text)
            turn = await queued.accepted()
            assert (await turn.drained()).stop_reason == "end_turn"
            assert turn.text == text.upper()


async def test_what_is_accepted_cannot_be_edited_or_withdrawn() -> None:
    gate = Gate()
    async with driven(gate.agent) as session:
        queued = await session.queue.add("one")
        await queued.accepted()
        with pytest.raises(CallFailed):
            await queued.edit("two")
        with pytest.raises(CallFailed):
            await queued.withdraw()
        gate.open.set()
        assert (await queued.turn.drained()).stop_reason == "end_turn"


async def test_a_queued_prompt_may_be_over_before_its_answer_is_read() -> None:
    async with by_hand(2, QUEUE) as (session, agent):
        queueing = asyncio.ensure_future(session.queue.add("hi"))
        id = (await agent.expect("_antiphon/inject"))["id"]
        agent.shows("u1")
        agent.state("running")
        agent.say("all of it")
        agent.state("idle", stopReason="end_turn")
        agent.send(id=id, result={"messageId": "u1"})
        turn = await (await queueing).accepted()
        assert (await turn.drained()).stop_reason == "end_turn"
        assert turn.text == "all of it"


async def test_whoever_gives_up_on_queueing_takes_the_prompt_back() -> None:
    async with by_hand(2, QUEUE) as (session, agent):
        queueing = asyncio.ensure_future(session.queue.add("hi"))
        id = (await agent.expect("_antiphon/inject"))["id"]
        queueing.cancel()
        await asyncio.wait([queueing])
        agent.send(id=id, result={"messageId": "u1"})
        revoke = await agent.expect("_antiphon/revoke_inject")
        assert revoke["params"] == {"sessionId": "s", "messageId": "u1"}
        agent.send(id=revoke["id"], result={})
        await agent.settled(session)


async def test_a_lost_link_is_told_to_whoever_waits_for_a_queued_prompt() -> None:
    async with by_hand(2, QUEUE) as (session, agent):
        queueing = asyncio.ensure_future(session.queue.add("hi"))
        agent.send(id=(await agent.expect("_antiphon/inject"))["id"], result={"messageId": "u1"})
        queued = await queueing
        accepted = asyncio.ensure_future(queued.accepted())
        await agent.transport.aclose()
        with pytest.raises(LinkLost):
            await accepted
        assert (await queued.turn.drained()).cut == "closed by the other side"


async def test_an_answer_without_an_id_is_an_invalid_result() -> None:
    async with by_hand(2, QUEUE) as (session, agent):
        queueing = asyncio.ensure_future(session.queue.add("hi"))
        agent.send(id=(await agent.expect("_antiphon/inject"))["id"], result={})
        with pytest.raises(InvalidResult):
            await queueing


async def test_v1_without_turn_complete_has_no_queue_as_nothing_would_tell_its_end() -> None:
    async with driven(Gate().agent, "v1") as session:
        with pytest.raises(LocalError, match="turn_complete"):
            await session.queue.add("hi")


@pytest.mark.parametrize("way", WAYS)
async def test_a_steering_prompt_joins_the_turn(way: str) -> None:
    gate = Gate()
    async with driven(gate.agent, way) as session:
        first = await session.prompt("one")
        steering = asyncio.ensure_future(session.prompt("left!", delivery="steer"))
        if way in V2_WAYS:
            await _until_waiting(session, "left!")
        else:
            await steering
        gate.open.set()
        second = await steering
        ends = [await first.drained(), await second.drained()]
        assert [str(end.stop_reason) for end in ends] == ["end_turn", "end_turn"]
        assert gate.texts == ["one", "steered: left!"]
        assert first.text == second.text == "ONE"


@pytest.mark.parametrize("way", TELL)
async def test_a_prompt_queued_to_steer_joins_the_turn(way: str) -> None:
    gate = Gate()
    async with driven(gate.agent, way) as session:
        first = await session.prompt("one")
        queued = await session.queue.add("left!", mode="steer")
        gate.open.set()
        second = await queued.accepted()
        await asyncio.gather(first.drained(), second.drained())
        assert gate.texts == ["one", "steered: left!"]
        assert first.text == second.text == "ONE"


@pytest.mark.parametrize("way", WAYS)
async def test_an_interrupting_prompt_ends_the_turn_and_has_the_next(way: str) -> None:
    gate = Gate()
    async with driven(gate.agent, way) as session:
        first = await session.prompt("one")
        second = await session.prompt("two", delivery="interrupt")
        assert (await first.drained()).cancelled
        gate.open.set()
        assert (await second.drained()).stop_reason == "end_turn"
        assert (first.text, second.text) == ("", "TWO")


@pytest.mark.parametrize("way", WAYS)
async def test_a_prompt_to_a_busy_agent_waits_and_has_a_turn_of_its_own(way: str) -> None:
    gate = Gate()
    async with driven(gate.agent, way) as session:
        first = await session.prompt("one")
        prompting = asyncio.ensure_future(session.prompt("two"))
        if way in V2_WAYS:
            await _until_waiting(session, "two")
        else:
            await prompting
        gate.open.set()
        second = await prompting
        await asyncio.gather(first.drained(), second.drained())
        assert (first.text, second.text) == ("ONE", "TWO")
        assert [u.message_id async for u in second.updates() if isinstance(u, v2.UserMessage)] == [
            second.message_id
        ]


async def _until_waiting(session: ClientSession, text: str) -> None:
    if text not in waiting(session):
        async for _ in session.events():
            if text in waiting(session):
                return
