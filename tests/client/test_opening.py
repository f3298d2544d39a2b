"""Sessions begin, and begin again, and what comes before their answer is theirs."""

from __future__ import annotations

import asyncio

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import Client, ClientSession, connect
from antiphon.errors import CallFailed
from tests.client.driving import WAYS, ByHand, driven, opened
from tests.options import connect_options


def echoes() -> Agent:
    agent = Agent("echoes")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await turn.say(turn.prompt.text.upper())

    return agent


def held(session: ClientSession) -> list[tuple[str, str]]:
    return [(str(message.role), message.text) for message in session.messages]


@pytest.mark.parametrize("way", WAYS)
async def test_a_loaded_session_holds_what_was_said_and_goes_on(way: str) -> None:
    agent = echoes()
    async with agent.serving(), driven(agent, way) as session:
        await (await session.prompt("one")).drained()
        async with connect(agent, **connect_options(**WAYS[way])) as other:
            again = await other.load_session(session.id, "/")
            assert held(again) == [("user", "one"), ("agent", "ONE")]
            assert again.state == "idle"
            turn = await again.prompt("two")
            await turn.drained()
            assert turn.text == "TWO"


@pytest.mark.parametrize("way", WAYS)
async def test_a_resumed_session_begins_without_its_history(way: str) -> None:
    agent = echoes()
    async with agent.serving(), driven(agent, way) as session:
        await (await session.prompt("one")).drained()
        async with connect(agent, **connect_options(**WAYS[way])) as other:
            again = await other.resume_session(session.id, "/")
            assert held(again) == []
            await (await again.prompt("two")).drained()
            assert held(again)[-1] == ("agent", "TWO")


@pytest.mark.parametrize("version", [1, 2])
async def test_what_comes_before_the_answer_is_the_sessions_and_no_others(version: int) -> None:
    async with opened(version) as (client, agent):
        first, second = (asyncio.ensure_future(client.new_session("/")) for _ in range(2))
        ids = [(await agent.expect("session/new"))["id"] for _ in range(2)]
        named = {"messageId": "m"}
        for session in ("s1", "s2", "nobodys"):
            agent.update(session, f"in {session}", **named)
        agent.send(id=ids[1], result={"sessionId": "s2"})
        agent.send(id=ids[0], result={"sessionId": "s1"})
        assert held(await first) == [("agent", "in s1")]
        assert held(await second) == [("agent", "in s2")]
        assert len(client._agent.opener._early) == 0  # and nothing is kept for sessions that never were


@pytest.mark.parametrize("method", ["new", "load"])
async def test_a_refusal_leaves_nothing_behind(method: str) -> None:
    async with opened(1, {"loadSession": True}) as (client, agent):
        call = client.new_session("/") if method == "new" else client.load_session("s", "/")
        opening = asyncio.ensure_future(call)
        request = await agent.expect(f"session/{method}")
        agent.send(id=request["id"], error={"code": -32000, "message": "log in"})
        with pytest.raises(CallFailed, match="log in"):
            await opening
        assert client.sessions == []


async def test_an_agent_that_cannot_resume_is_loaded() -> None:
    async with opened(1, {"loadSession": True}) as (client, agent):
        resuming = asyncio.ensure_future(client.resume_session("s", "/"))
        agent.send(id=(await agent.expect("session/load"))["id"], result={})
        assert (await resuming).id == "s"


async def test_whoever_gives_up_on_a_session_tells_the_agent() -> None:
    async with opened(2) as (client, agent):
        opening = asyncio.ensure_future(client.new_session("/"))
        id = (await agent.expect("session/new"))["id"]
        opening.cancel()
        await asyncio.wait([opening])
        assert (await agent.expect("$/cancel_request"))["params"] == {"requestId": id}
        assert client.sessions == []


async def test_a_session_opened_again_replaces_the_one_that_was() -> None:
    async with opened(2) as (client, agent):
        first = await _new(client, agent)
        events = first.events()
        prompt = asyncio.ensure_future(first.prompt("hi"))
        agent.takes(await agent.prompted(), "u1")
        turn = await prompt
        loading = asyncio.ensure_future(client.load_session("s", "/"))
        agent.send(id=(await agent.expect("session/resume"))["id"], result={})
        second = await loading
        assert client.sessions == [second]
        assert (await turn.drained()).cut == "the session was opened again"
        assert [event async for event in events] == []


async def test_a_resume_of_a_session_at_work_finds_its_turn_open() -> None:
    async with opened(2) as (client, agent):
        loading = asyncio.ensure_future(client.load_session("s", "/"))
        id = (await agent.expect("session/resume"))["id"]
        agent.shows("u0")
        agent.state("running")
        agent.send(id=id, result={})
        session = await loading
        assert session.turn is not None
        agent.say("more")
        agent.state("idle", stopReason="end_turn")
        assert (await session.turn.drained()).stop_reason == "end_turn"


async def _new(client: Client, agent: ByHand) -> ClientSession:
    opening = asyncio.ensure_future(client.new_session("/"))
    agent.send(id=(await agent.expect("session/new"))["id"], result={"sessionId": "s"})
    return await opening
