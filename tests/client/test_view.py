"""What is told is folded and reaches whom it concerns: a turn only what belongs to it, the session all."""

from __future__ import annotations

import asyncio
import gc

from antiphon.agent import Agent, AgentSession, AgentTurn
from antiphon.agent.tool_calls import ToolCallWriter
from antiphon.client import SessionEvent
from antiphon.client.session.event_log import EventQueue
from antiphon.schema import v2
from tests.client.driving import by_hand, driven, kinds, updates_of


async def test_background_work_belongs_to_the_session_in_whatever_turn_it_goes_on() -> None:
    agent = Agent("background")
    go_on, done = asyncio.Event(), asyncio.Event()

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async def watch(call: ToolCallWriter) -> None:
            await go_on.wait()
            await call.write("step")
            done.set()

        if turn.prompt.text == "start":
            await turn.session.background("Watch", watch)
        else:
            go_on.set()
            await done.wait()
        await turn.say("ok")

    async with driven(agent) as session:
        events = session.events()
        await (await session.prompt("start")).drained()
        assert session.fold.background
        second = await session.prompt("next")
        await second.drained()
        assert second.text == "ok"
        assert "tool_call_content_chunk" not in kinds(await updates_of(second))
        async for event in events:
            if isinstance(event.update, v2.ToolCallContentChunk):
                assert event.turn is None
                break


async def test_background_terminals_belong_to_the_session_too() -> None:
    async with by_hand() as (session, agent):
        agent.told("terminal_update", terminalId="t", command="make", cwd="/")
        agent.state("running", background=[{"type": "terminal", "terminalId": "t"}])
        agent.told("terminal_output_chunk", terminalId="t", data="aGk=")
        agent.say("meanwhile")
        await agent.settled(session)
        turn = session.turn
        assert turn is not None
        agent.state("idle", stopReason="end_turn", background=[])
        assert kinds(await updates_of(turn)) == ["state_update", "agent_message_chunk", "state_update"]


async def test_a_turn_that_the_agent_opens_is_seen_by_who_watches_the_session() -> None:
    agent = Agent("greets")
    watched = asyncio.Event()

    @agent.on_session
    async def greet(session: AgentSession) -> None:
        await watched.wait()
        async with session.turn() as turn:
            await turn.say("good morning")

    async with driven(agent) as session:
        events = session.events()
        watched.set()
        turn = None
        while turn is None:  # who is there is told, too
            turn = (await anext(events)).turn
        assert turn.prompt is None
        assert (await turn.drained()).stop_reason == "end_turn"
        assert turn.text == "good morning"


async def test_updates_in_idle_change_no_state_and_belong_to_no_turn() -> None:
    """PROMPT-V2-28, -29."""
    async with by_hand() as (session, agent):
        events = session.events()
        agent.say("by the way")
        agent.told("session_info_update", title="A title")
        agent.told("weather", sky="blue")
        await agent.settled(session)
        told = [await anext(events) for _ in range(3)]
        assert [event.turn for event in told] == [None] * 3
        assert [event.seq for event in told] == [1, 2, 3]
        assert (session.title, session.state, session.turn) == ("A title", "idle", None)


async def test_an_unknown_state_ends_nothing() -> None:
    """PROMPT-V2-48, -50."""
    async with by_hand() as (session, agent):
        agent.state("running")
        agent.state("_dreaming")
        await agent.settled(session)
        turn = session.turn
        assert turn is not None
        agent.state("idle", stopReason="end_turn")
        assert (await turn.drained()).stop_reason == "end_turn"


async def test_a_session_is_watched_from_the_call_on_and_not_from_the_first_step() -> None:
    async with by_hand() as (session, agent):
        events = session.events()
        agent.say("early")
        await agent.settled(session)
        event: SessionEvent = await anext(events)
        assert kinds([event.update]) == ["agent_message_chunk"]


def queues() -> int:
    """How many queues of events are kept anywhere."""
    gc.collect()
    return sum(isinstance(each, EventQueue) for each in gc.get_objects())


async def test_a_watcher_that_is_dropped_is_forgotten() -> None:
    async with by_hand() as (session, _):
        before = queues()
        events = session.events()
        assert queues() == before + 1
        del events
        assert queues() == before


async def test_watching_ends_with_the_link_and_not_before_its_last_words() -> None:
    async with by_hand() as (session, agent):
        events = session.events()
        agent.state("running")
        agent.say("last words")
        await agent.transport.aclose()
        assert kinds([event.update async for event in events]) == [
            "state_update",
            "agent_message_chunk",
            "state_update",
        ]
        assert [event async for event in session.events()] == []
