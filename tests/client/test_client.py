"""A client has sessions: listed, followed, closed and deleted."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import Client, connect
from antiphon.errors import CallFailed, LinkLost, LocalError
from antiphon.schema import v2
from antiphon.transports.memory import memory_pair
from tests.client.driving import DEADLINE, WAYS, by_hand, driven, opened
from tests.options import connect_options

EVERYTHING = {"loadSession": True, "sessionCapabilities": {"list": {}, "close": {}, "delete": {}}}


def echoes() -> Agent:
    agent = Agent("echoes", version="3.2")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await turn.say(turn.prompt.text.upper())

    return agent


@pytest.mark.parametrize("way", WAYS)
async def test_sessions_are_listed_closed_and_deleted(way: str) -> None:
    async with driven(echoes(), way) as session:
        client = session.client
        assert client.info is not None
        assert (client.info.name, client.info.version) == ("echoes", "3.2")
        other = await client.new_session("/tmp")
        assert {info.session_id async for info in client.list_sessions()} == {session.id, other.id}
        assert [info.cwd async for info in client.list_sessions(cwd="/tmp")] == ["/tmp"]
        await other.close()
        assert client.sessions == [session]
        with pytest.raises(LocalError, match="has left"):
            await other.prompt("still there?")
        await client.delete_session(other.id)
        await client.delete_session(session.id)
        assert client.sessions == []
        assert [info async for info in client.list_sessions()] == []


async def test_closing_ends_what_is_open_even_if_the_agent_says_nothing() -> None:
    async with by_hand(1, EVERYTHING) as (session, agent):
        turn = await session.prompt("hi")
        await agent.prompted()
        events = session.events()
        closing = asyncio.ensure_future(session.close())
        agent.send(id=(await agent.expect("session/close"))["id"], error={"code": -32002, "message": "?"})
        await closing  # SESS-45
        assert (await turn.drained()).cut == "the session was closed"
        assert [event.turn async for event in events] == [turn]
        agent.say("anybody?")  # for nobody any more
        await agent.settled(session)
        assert [message.text for message in session.messages] == ["hi"]


async def test_a_refusal_to_close_is_an_error_and_the_session_stays() -> None:
    async with by_hand(1, EVERYTHING) as (session, agent):
        closing = asyncio.ensure_future(session.close())
        agent.send(id=(await agent.expect("session/close"))["id"], error={"code": -32603, "message": "no"})
        with pytest.raises(CallFailed):
            await closing
        assert session.client.sessions == [session]


async def test_pages_are_read_to_the_last() -> None:
    async with opened(1, EVERYTHING) as (client, agent):

        async def ids() -> list[str]:
            return [info.session_id async for info in client.list_sessions()]

        listing = asyncio.ensure_future(ids())
        for cursor, following in ((None, "c1"), ("c1", "c2"), ("c2", None)):
            request = await agent.expect("session/list")
            assert request["params"].get("cursor") == cursor
            info = {"sessionId": f"after {cursor}", "cwd": "/"}
            result = {"sessions": [info], **({} if following is None else {"nextCursor": following})}
            agent.send(id=request["id"], result=result)
        assert await listing == ["after None", "after c1", "after c2"]


@pytest.mark.parametrize("way", ["v2", "v2 as proposed"])
async def test_an_attached_client_follows_a_session_and_leaves_it_going_on(way: str) -> None:
    agent = echoes()
    async with agent.serving(), driven(agent, way) as session:
        await (await session.prompt("one")).drained()
        async with connect(agent, **connect_options(**WAYS[way], numbered=True)) as other:
            async with other.attach(session.id, cwd="/") as followed:
                assert [message.text for message in followed.messages] == ["one", "ONE"]
                cursor = followed.cursor
                assert cursor is not None
                events = followed.events()
                await (await session.prompt("two")).drained()
                seen = await anext(events)
                assert seen.turn is None or seen.turn.prompt is None  # it is no prompt of this client
                while followed.messages[-1].text != "TWO" or followed.state != "idle":
                    await anext(events)
            assert other.sessions == []
            with pytest.raises(LocalError, match="has left"):
                await followed.prompt("three")
            async with other.attach(session.id, cwd="/", after=cursor) as later:
                assert [message.text for message in later.messages] == ["two", "TWO"]
                replayed = (await anext(later.events())).update
                assert isinstance(replayed, v2.UserMessage)
        await (await session.prompt("three")).drained()


async def test_a_session_is_attached_to_after_an_event_only_where_that_is_offered() -> None:
    async with driven(echoes(), "v1") as session:
        with pytest.raises(LocalError, match="cannot replay after an event"):
            async with session.client.attach(session.id, after=1):
                pass


async def test_each_session_has_its_own_order() -> None:
    async with opened(1) as (client, agent):
        sessions = []
        for name in ("a", "b"):
            opening = asyncio.ensure_future(client.new_session("/"))
            agent.send(id=(await agent.expect("session/new"))["id"], result={"sessionId": name})
            sessions.append(await opening)
        turns = [await session.prompt("hi") for session in sessions]
        ids = [await agent.prompted() for _ in turns]
        agent.update("b", "from b")
        agent.ends(ids[1])
        assert (await turns[1].drained()).stop_reason == "end_turn"
        assert turns[0].end is None
        agent.ends(ids[0])
        await turns[0].drained()
        assert (turns[0].text, turns[1].text) == ("", "from b")


async def test_a_folder_is_sent_as_an_absolute_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    async with driven(echoes()) as session:
        assert (await session.client.new_session()).cwd == os.getcwd()
        assert (await session.client.new_session(Path("sub"))).cwd == str(tmp_path / "sub")


async def test_what_is_asked_of_a_lost_agent_fails_with_the_reason() -> None:
    async with by_hand(2) as (session, agent):
        await agent.transport.aclose()
        with pytest.raises(LinkLost):
            await session.client.new_session("/")
        assert session.client.lost is not None


def test_what_is_no_version_or_dialect_is_refused() -> None:
    ours, _ = memory_pair()
    for options in ({"version": 3}, {"version": "v9"}):
        with pytest.raises(LocalError):
            Client(ours, **options)  # type: ignore[arg-type]


async def test_what_is_remembered_of_sessions_that_were_left_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("antiphon.client.protocol.agent_connection.LEFT", 3)
    monkeypatch.setattr("antiphon.client.session.setup.KNOWN", 4)
    async with asyncio.timeout(DEADLINE), connect(Agent("many")) as client:
        sessions = [await client.new_session("/") for _ in range(6)]
        for session in sessions:
            await session.close()
        assert [session.id in client._agent._left for session in sessions] == [False] * 3 + [True] * 3
        assert list(client._setup.folders) == [session.id for session in sessions[2:]]
