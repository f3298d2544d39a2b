"""Sessions outlive clients, agents and the hub: kill -9 of each, and an orderly end."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from antiphon.client import Client, ClientSession, ClientTurn
from tests.cli.command import ended
from tests.hub.running import AGENT, DEADLINE, SLOPPY, agents_of, kill_agents, left_by, served
from tests.hub.test_sharing import VERSIONS, heard, settled, told


async def begun(
    client: Client, prompt: str = "wait", says: str = "waiting"
) -> tuple[ClientSession, ClientTurn]:
    session = await client.new_session("/")
    turn = await session.prompt(prompt)
    await heard(session, says)
    return session, turn


@VERSIONS
async def test_an_agent_that_is_killed_cuts_its_turn_short_and_comes_back(
    tmp_path: Path, version: str
) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    with served(tmp_path, "--acp-version", version, agent=agent) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client, hub.client(version=1) as other:
            session, turn = await begun(client)
            second = await other.load_session(session.id, "/")
            assert kill_agents(hub) >= 1
            end = await turn.drained()
            assert end.stop_reason == "error"
            assert end.error is not None
            assert end.error.data == {"reason": "interrupted"}
            again = await session.prompt("say more")
            assert (await again.drained()).stop_reason == "end_turn"
            await settled(second, "heard say more")
            # What the agent replayed of itself is not said twice.
            assert told(session) == told(second)
            assert [text for _, text in told(session)] == ["wait", "waiting", "say more", "heard say more"]
            assert (tmp_path / "agent.log").read_text() == "wait\nsay more\n"


@pytest.mark.parametrize("how", ["--v2", ""])
async def test_an_agent_that_cannot_bring_a_session_back_is_told_what_happened(
    tmp_path: Path, how: str
) -> None:
    with served(tmp_path, agent=[*SLOPPY, *([how] if how else [])]) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            session = await client.new_session("/")
            await (await session.prompt("echo")).drained()
            turn = await session.prompt("kill")
            end = await turn.drained()
            assert end.error is not None
            assert end.error.data == {"reason": "interrupted"}
            assert "last words" in turn.text or how  # one id for all of its messages
    with served(tmp_path, agent=AGENT) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            session = await client.load_session(session.id, "/")
            turn = await session.prompt("story")
            assert (await turn.drained()).stop_reason == "end_turn"
            assert ("User: echo" in turn.text) is (how == "")  # the other one shows prompts as it likes
            assert "last words" in turn.text
            asked = [message.text for message in session.messages if message.type == "user"]
            assert asked[-1] == "story"  # and not what the agent was told beside it


async def test_a_prompt_that_kills_its_agent_is_not_sent_again(tmp_path: Path) -> None:
    with served(tmp_path, agent=SLOPPY) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            session = await client.new_session("/")
            for _ in range(2):
                assert (await (await session.prompt("crash")).drained()).stop_reason == "error"
            said = [text for _, text in told(session)]
            assert said[:3] == ["crash", "last words", "crash"]


@VERSIONS
async def test_after_kill_9_of_the_hub_every_session_is_back(tmp_path: Path, version: str) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    with served(tmp_path, "--acp-version", version, agent=agent) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            session, turn = await begun(client)
            queued = await session.queue("say later")
            assert queued.message_id
            hub.kill()
            assert (await turn.drained()).cut is not None
        hub.restart()
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            listed = [info.session_id async for info in client.list_sessions()]
            assert listed == [session.id]
            back = await client.load_session(session.id, "/")
            assert told(back) == [("user", "wait"), ("agent", "waiting")]
            assert back.turn is None
            last = back.fold.turns.latest
            assert getattr(last, "stop_reason", None) == "error"
            assert [entry["content"][0]["text"] for entry in back.queue_entries] == ["say later"]
            await back.resume_queue()
            await settled(back, "heard say later")
            assert (await (await back.prompt("say more")).drained()).stop_reason == "end_turn"
            assert [m for kind, m in told(back) if kind == "user"] == ["wait", "say later", "say more"]
            ids = [message.message_id for message in back.messages]
            assert len(set(ids)) == len(ids)
        assert (tmp_path / "agent.log").read_text() == "wait\nsay later\nsay more\n"


async def test_orphans_of_a_killed_hub_are_ended_at_the_next_start(tmp_path: Path) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            await begun(client, "child", "left behind")
            hub.kill()
        assert any("sleep" in left for left in left_by(tmp_path))
        hub.restart()
        assert not any("sleep" in left for left in left_by(tmp_path))


async def test_sigterm_lets_a_turn_end_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            session = await client.new_session("/")
            turn = await session.prompt("stream 30000")
            pids = agents_of(hub)
            os.kill(hub.process.pid, 15)
            end = await turn.drained()
            assert end.stop_reason == "end_turn"
        _, errors = hub.process.communicate(timeout=DEADLINE)
        assert hub.process.returncode == 0, errors
        assert b"Traceback" not in errors, errors
        assert all(map(ended, pids))


async def test_a_session_goes_on_with_nobody_attached(tmp_path: Path) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        async with asyncio.timeout(DEADLINE):
            async with hub.client() as client:
                session = await client.new_session("/")
                await session.prompt("stream 5000")
            async with hub.client(version=1) as client:
                later = await client.load_session(session.id, "/")
                await settled(later, "4999")
