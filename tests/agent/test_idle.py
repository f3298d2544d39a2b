"""Work behind a turn that opens one of its own waits for those that are open, and never meets one."""

from __future__ import annotations

import asyncio

import pytest

from antiphon import Agent, AgentTurn
from antiphon.agent import ToolCallWriter
from antiphon.client import connect
from tests.requirements.marks import requirement

DEADLINE = 60.0


@requirement("PROMPT-V2-27")
@pytest.mark.parametrize("version", [1, 2])
async def test_it_waits_for_the_turn_and_for_what_was_queued_behind_it(version: int) -> None:
    agent, waits, go_on = Agent("late"), asyncio.Event(), asyncio.Event()
    said: list[str] = []

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        said.append(turn.prompt.text)
        if turn.prompt.text == "first":
            await turn.session.background("Behind", behind(turn))
            await go_on.wait()

    def behind(turn: AgentTurn):  # type: ignore[no-untyped-def]
        async def work(call: ToolCallWriter) -> None:
            waits.set()
            await turn.session.idle()
            async with turn.session.turn() as news:
                said.append("news")
                await news.say("news")

        return work

    async with asyncio.timeout(DEADLINE), connect(agent, version=version) as client:
        session = await client.new_session("/")
        events = session.events()
        first = await session.prompt("first")
        await waits.wait()
        queued = asyncio.ensure_future(session.prompt("second"))
        while not any("second" in str(entry) for entry in session.queue.entries):
            await anext(events)
        go_on.set()
        await first.drained()
        await (await queued).drained()
        while not session.tool_calls[0].final:
            await anext(events)
        assert said == ["first", "second", "news"]
        assert session.tool_calls[0].status == "completed"
        assert session.messages[-1].text == "news"


async def test_it_returns_at_once_where_no_turn_is_open() -> None:
    agent = Agent("idle")
    agent.on_prompt(lambda turn: turn.say("hello"))  # type: ignore[arg-type, return-value]
    async with asyncio.timeout(DEADLINE), connect(agent) as client:
        session = await client.new_session("/")
        at_work = agent.find(session.id)
        assert at_work is not None
        await at_work.idle()
