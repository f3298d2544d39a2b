"""Connecting: to a command, an address or an agent in this process; and nothing is left behind."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import connect
from antiphon.errors import LinkLost, LocalError, SpawnFailed
from antiphon.remote.websocket_server import websocket_server
from antiphon.stores import SQLiteStore
from antiphon.stores.base import Store
from antiphon.stores.memory import MemoryStore
from tests.client.driving import DEADLINE, SLOPPY
from tests.options import connect_options

ROOT = Path(__file__).parents[2]
SMALLEST = str(ROOT / "examples" / "smallest_agent.py")


def echoes(store: Store | None = None) -> Agent:
    agent = Agent("echoes", store=store)

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await turn.say(turn.prompt.text.upper())

    return agent


async def said(target: Any, **options: Any) -> str:
    async with asyncio.timeout(DEADLINE), connect(target, **connect_options(**options)) as client:
        session = await client.new_session("/")
        turn = await session.prompt("hi")
        await turn.drained()
        return turn.text


async def test_six_lines_drive_an_agent_of_either_version() -> None:
    for version in (None, 1, 2):
        assert await said([sys.executable, SMALLEST], version=version) == "You said: hi"


async def test_a_command_may_be_one_string() -> None:
    assert await said(f"{sys.executable} {SMALLEST}") == "You said: hi"


async def test_an_agent_in_this_process_is_as_good() -> None:
    assert await said(echoes()) == "HI"


async def test_the_sessions_of_an_agent_in_this_process_outlive_a_connection() -> None:
    agent = echoes()
    async with asyncio.timeout(DEADLINE):
        async with connect(agent) as client:
            session = await client.new_session("/")
            await (await session.prompt("hi")).drained()
        async with connect(agent) as client:
            again = await client.load_session(session.id, "/")
            await (await again.prompt("ho")).drained()
            assert [message.text for message in again.messages] == ["hi", "HI", "ho", "HO"]


async def test_a_store_that_was_given_to_an_agent_is_closed_with_it(tmp_path: Path) -> None:
    for store in (MemoryStore(), SQLiteStore(tmp_path / "sessions.db")):
        agent = echoes(store)
        assert await said(agent) == "HI"
        with pytest.raises(LocalError, match="store was closed"):
            await said(agent)


async def test_an_address_leads_to_an_agent() -> None:
    agent = echoes()
    async with agent.serving(), websocket_server(agent.serve, "127.0.0.1", 0, path="/acp") as server:
        assert await said(f"ws://127.0.0.1:{server.port}/acp") == "HI"


async def test_a_token_is_for_an_address() -> None:
    with pytest.raises(LocalError, match="token"):
        async with connect(echoes(), token="secret"):
            pass


async def test_a_command_that_is_not_there_says_so() -> None:
    with pytest.raises(SpawnFailed, match="no-such-agent"):
        async with connect(["no-such-agent"]):
            pass


async def test_an_agent_that_dies_at_once_is_told_with_its_last_words() -> None:
    dies = [sys.executable, "-c", "import sys; sys.exit('no key')"]
    with pytest.raises(LinkLost, match="no key"):
        async with connect(dies):
            pass


@pytest.mark.parametrize("target", ["agent", "command"])
async def test_a_mistake_in_the_options_leaves_nothing_running(target: str) -> None:
    wanted: Any = echoes() if target == "agent" else [sys.executable, str(SLOPPY)]
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(LocalError, match="got 7"):
            async with connect(wanted, version=7):
                pass


async def test_a_version_that_the_agent_does_not_speak_is_refused() -> None:
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(Exception, match="version"):
            async with connect([sys.executable, str(SLOPPY)], version=2):
                pass


async def test_an_exception_in_the_block_is_raised_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        async with connect(echoes()):
            raise ZeroDivisionError


async def test_leaving_the_block_ends_the_turns_that_are_open() -> None:
    for version in (1, 2):
        agent = Agent("waits")

        @agent.on_prompt
        async def wait(turn: AgentTurn) -> None:
            await asyncio.Event().wait()

        async with asyncio.timeout(DEADLINE):
            async with connect(agent, version=version) as client:
                turn = await (await client.new_session("/")).prompt("hi")
            assert (await turn.drained()).cut == "closed by this side"


async def test_stderr_and_frames_can_be_watched() -> None:
    lines: list[str] = []
    frames: list[str] = []
    runs = f"import runpy; runpy.run_path({SMALLEST!r}, run_name='__main__')"
    command = [sys.executable, "-c", f"import sys; print('starting', file=sys.stderr); {runs}"]
    await said(command, on_stderr=lines.append, tap=lambda way, frame: frames.append(way))
    assert lines == ["starting"]
    assert {"in", "out"} == set(frames)
