"""The public API reads and runs as its examples show: an agent, a client, a hub."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon import START, Permissions, connect
from antiphon.schema import v2

DEADLINE = 60.0

TESTER = """
import sys

from antiphon import Agent, AgentTurn

agent = Agent("tester", version="1.0")


@agent.on_prompt
async def answer(turn: AgentTurn) -> None:
    async with turn.message() as message:
        await message.write("Let me run the tests.")

    async with turn.tool_call("pytest -q", kind="execute") as call:
        if await call.request_permission():
            await call.run([sys.executable, "-c", "print('12 passed')"])


agent.run()
"""

HUB = """
import sys

from antiphon import Hub, SQLiteStore

hub = Hub([sys.executable, "tester.py"], store=SQLiteStore("sessions.db"))
hub.run("127.0.0.1:0", on_ready=lambda: print(hub.port, hub.token, flush=True))
"""


@pytest.fixture
def tester(tmp_path: Path) -> list[str]:
    script = tmp_path / "tester.py"
    script.write_text(TESTER)
    return [sys.executable, str(script)]


@pytest.mark.parametrize("version", [1, 2])
async def test_an_agent_streams_a_message_and_runs_a_tool(tester: list[str], version: int) -> None:
    answers = Permissions(allow=["execute"])
    async with asyncio.timeout(DEADLINE), connect(tester, version=version, answers=answers) as agent:
        session = await agent.new_session()
        end = await (await session.prompt("Test it.")).drained()
        assert end.stop_reason == "end_turn"
        assert session.messages[-1].text == "Let me run the tests."
        (call,) = session.tool_calls
        assert (call.title, call.kind, call.status) == ("pytest -q", "execute", "completed")


async def test_a_client_prompts_and_waits_until_the_turn_is_drained(
    tester: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with asyncio.timeout(DEADLINE):
        async with connect(tester) as agent:
            session = await agent.new_session(cwd=tmp_path)
            turn = await session.prompt("Why is the build red?")
            async for message in turn.messages():
                print(f"{message.role}: {message.text}")
            end = await turn.drained()
            print(end.stop_reason, end.usage)
    assert capsys.readouterr().out.splitlines() == [
        "user: Why is the build red?",
        "agent: Let me run the tests.",
        "end_turn None",
    ]


async def test_a_hub_serves_a_session_that_a_client_attaches_to_from_its_start(
    tester: list[str], tmp_path: Path
) -> None:
    process = subprocess.Popen([sys.executable, "-c", HUB], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        port, token = (await asyncio.to_thread(process.stdout.readline)).split()
        address = f"ws://127.0.0.1:{port}/acp"
        async with (
            asyncio.timeout(DEADLINE),
            connect(address, token=token) as other,
            connect(address, token=token) as hub,
        ):
            own = await other.new_session(cwd=tmp_path)
            await (await own.prompt("Test it.")).drained()
            async with hub.attach(own.id, after=START) as session:
                seen = []
                async for event in session.events():
                    seen.append(event)
                    if isinstance(event.update, v2.SessionStateUpdate) and event.update.stop_reason:
                        break
                assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
                assert isinstance(seen[0].update, v2.UserMessage)
                assert session.messages[-1].text == "Let me run the tests."
    finally:
        process.terminate()
        process.communicate(timeout=DEADLINE)
    assert process.returncode == 0
