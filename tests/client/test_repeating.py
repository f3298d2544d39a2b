"""A prompt that is sent again under its operation id: its turn ends, and holds what was said in it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon import Agent, AgentTurn
from antiphon.client import connect
from antiphon.errors import CallFailed
from antiphon.schema.v2.prompt import StopReason
from tests.client.driving import DEADLINE, V2_WAYS, WAYS, by_hand, driven
from tests.options import connect_options
from tests.requirements.marks import requirement


class Halting:
    """Says a word, waits to be let go on, and says another one."""

    def __init__(self) -> None:
        self.agent = Agent("halting")
        self.go_on = asyncio.Event()
        self.prompts: list[str] = []
        self.agent.on_prompt(self.work)

    async def work(self, turn: AgentTurn) -> str:
        self.prompts.append(turn.prompt.text)
        async with turn.message() as message:
            await message.write("one ")
            await self.go_on.wait()
            await message.write("two")
        return "max_tokens"


async def said(turn: Any) -> list[str]:
    return [message.text async for message in turn.messages() if message.role == "agent"]


@pytest.mark.parametrize("way", WAYS)
async def test_a_turn_that_is_over_ends_again_as_it_did_then(way: str) -> None:
    halting = Halting()
    halting.go_on.set()
    async with driven(halting.agent, way) as session:
        for time in (1, 2):
            turn = await session.prompt("go", operation_id="op")
            assert (await turn.drained()).stop_reason == StopReason.MAX_TOKENS
            if time == 1 or way in V2_WAYS:  # in v1 the client names its message itself, and cannot find it
                assert await said(turn) == ["one two"]
                assert turn.text == "one two"
        await (await session.prompt("other")).drained()
        assert session.turn is None
    assert halting.prompts == ["go", "other"]


@pytest.mark.parametrize("way", WAYS)
async def test_a_client_that_comes_back_finds_the_turn_it_missed(way: str) -> None:
    halting = Halting()
    halting.go_on.set()
    async with asyncio.timeout(DEADLINE), halting.agent.serving():
        async with connect(halting.agent, **connect_options(**WAYS[way])) as client:
            session = await client.new_session("/")
            for words, operation in (("before", "a"), ("go", "op"), ("after", "b")):
                await (await session.prompt(words, operation_id=operation)).drained()
        async with connect(halting.agent, **connect_options(**WAYS[way])) as client:
            session = await client.load_session(session.id, "/")
            turn = await session.prompt("go", operation_id="op")
            assert (await turn.drained()).stop_reason == StopReason.MAX_TOKENS
            assert await said(turn) == ["one two"]
    assert halting.prompts == ["before", "go", "after"]


@pytest.mark.parametrize("way", WAYS)
async def test_a_client_that_comes_back_in_the_middle_gets_the_rest(way: str) -> None:
    halting = Halting()
    async with asyncio.timeout(DEADLINE), halting.agent.serving():
        async with connect(halting.agent, **connect_options(**WAYS[way])) as client:
            session = await client.new_session("/")
            turn = await session.prompt("go", operation_id="op")
            async for update in turn.updates():
                if getattr(update, "content", None) and "one" in str(update):
                    break
        async with connect(halting.agent, **connect_options(**WAYS[way])) as client:
            session = await client.load_session(session.id, "/")
            turn = await session.prompt("go", operation_id="op")
            assert turn.end is None
            halting.go_on.set()
            assert (await turn.drained()).stop_reason == StopReason.MAX_TOKENS
            assert turn.text.endswith("two")
            if way in V2_WAYS:
                assert await said(turn) == ["one two"]
            next = await session.prompt("other")
            assert (await next.drained()).stop_reason == StopReason.MAX_TOKENS
    assert halting.prompts == ["go", "other"]


async def test_a_failure_is_told_again_with_its_error() -> None:
    agent = Agent("broken")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        raise RuntimeError("secret")

    async with driven(agent) as session:
        for _ in range(2):
            end = await (await session.prompt("go", operation_id="op")).drained()
            assert end.stop_reason == StopReason.ERROR
            assert end.error is not None
            assert (end.error.code, end.error.message) == (-32603, "Internal error")


async def test_a_prompt_that_was_taken_back_fails_again_alike() -> None:
    halting = Halting()
    async with driven(halting.agent) as session:
        busy = await session.prompt("busy")
        waiting = asyncio.ensure_future(session.prompt("go", operation_id="op"))
        await asyncio.sleep(0)  # it is sent by its first step
        await session.cancel()
        for attempt in (waiting, session.prompt("go", operation_id="op")):
            with pytest.raises(CallFailed) as failed:
                await attempt
            assert failed.value.error.code == -32800
        await busy.drained()
    assert halting.prompts == ["busy"]


@pytest.mark.parametrize(
    "ours", [{"repeated": True, "stopReason": 7}, {"repeated": True, "stopReason": None}]
)
async def test_an_end_that_cannot_be_read_is_an_end(ours: dict[str, Any]) -> None:
    async with by_hand() as (session, agent):
        prompting = asyncio.ensure_future(session.prompt("go", operation_id="op"))
        agent.send(id=await agent.prompted(), result={"messageId": "u", "_meta": {"antiphon": ours}})
        end = await (await prompting).drained()
        assert end.stop_reason is None


@pytest.mark.parametrize("ours", [{"repeated": 1, "stopReason": "end_turn"}, ["repeated"], "repeated"])
async def test_what_is_no_repetition_is_waited_for(ours: Any) -> None:
    async with by_hand() as (session, agent):
        prompting = asyncio.ensure_future(session.prompt("go"))
        agent.send(id=await agent.prompted(), result={"messageId": "u", "_meta": {"antiphon": ours}})
        turn = await prompting
        agent.shows("u")
        agent.state("running")
        agent.say("hi")
        await agent.settled(session)
        assert turn.end is None
        agent.state("idle", stopReason="end_turn")
        assert (await turn.drained()).stop_reason == StopReason.END_TURN
        assert turn.text == "hi"


@requirement("SD-05")
async def test_another_clients_message_is_not_taken_for_ours_where_the_answer_names_it() -> None:
    async with by_hand(only="v2-proposed") as (session, agent):
        prompting = asyncio.ensure_future(session.prompt("go"))
        id = await agent.prompted()
        agent.shows("theirs")
        agent.told("state_change", state="running")
        agent.say("to them", "m1")
        agent.told("state_change", state="idle", stop_reason="refusal")
        agent.send(id=id, result={"_meta": {"antiphon": {"messageId": "ours"}}})
        turn = await prompting
        assert turn.message_id == "ours"
        agent.shows("ours")
        agent.told("state_change", state="running")
        agent.say("to us", "m2")
        agent.told("state_change", state="idle", stop_reason="end_turn")
        assert (await turn.drained()).stop_reason == StopReason.END_TURN
        assert turn.text == "to us"
