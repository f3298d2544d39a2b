"""A session is read at any time, and complete on the line after a turn is drained."""

from __future__ import annotations

import asyncio

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import Permissions
from antiphon.schema import v2
from tests.client.driving import WAYS, by_hand, driven


@pytest.mark.parametrize("way", WAYS)
async def test_everything_it_holds_is_there_on_the_line_after_drained(way: str) -> None:
    agent = Agent("does everything")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.plan(["Look", "Act"])
        async with turn.thought() as thought:
            await thought.write("hm")
        async with turn.tool_call("echo hi", kind="execute") as call:
            if await call.request_permission():
                await call.run(["echo", "hi"], cwd="/")
        await turn.session.set_title("A title")
        await turn.session.update(v2.UsageUpdate(used=10, size=100))
        command = v2.AvailableCommand(name="go", description="…")
        await turn.session.update(v2.AvailableCommandsUpdate(available_commands=[command]))
        await turn.say("done")

    async with driven(agent, way, answers=Permissions(allow="all")) as session:
        await (await session.prompt("go")).drained()
        assert [(str(message.role), message.text) for message in session.messages] == [
            ("user", "go"),
            ("thought", "hm"),
            ("agent", "done"),
        ]
        assert all(message.message_id and message.content for message in session.messages)
        assert [(call.title, str(call.status)) for call in session.tool_calls] == [("echo hi", "completed")]
        assert len(session.plans) == 1
        assert session.usage is not None
        assert session.usage.used == 10
        assert [command.name for command in session.commands] == ["go"]
        assert (session.title, session.state) == ("A title", "idle")
        assert (session.questions, session.queue.entries, session.turn) == ([], [], None)
        if not way.startswith("v1"):
            assert [terminal.command for terminal in session.terminals] == ["echo hi"]


@pytest.mark.parametrize("way", ["v2", "v2 as proposed"])
async def test_a_cursor_is_there_where_numbers_were_asked_for(way: str) -> None:
    agent = Agent("counts")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        await turn.say("one")

    async with driven(agent, way, numbered=True) as session:
        assert session.cursor == 1  # it was made
        await (await session.prompt("go")).drained()
        first = session.cursor
        assert first is not None
        await (await session.prompt("go")).drained()
        assert session.cursor is not None
        assert session.cursor > first


async def test_the_same_operation_is_one_prompt() -> None:
    agent = Agent("counts")
    texts: list[str] = []

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        texts.append(turn.prompt.text)

    async with driven(agent, "v1") as session:
        for _ in range(2):
            await (await session.prompt("go", operation_id="op")).drained()
    assert texts == ["go"]


async def test_options_of_a_new_session_are_known_when_it_is_there() -> None:
    modes = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]}
    async with by_hand(1) as (session, agent):
        opening = asyncio.ensure_future(session.client.new_session("/"))
        id = (await agent.expect("session/new"))["id"]
        agent.send(id=id, result={"sessionId": "m", "modes": modes})
        assert len((await opening).config_options) == 1
