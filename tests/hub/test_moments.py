"""Cancelled, closed, killed and stopped at odd moments: while an agent is brought back, forked or let go."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import ClientSession, connect
from antiphon.errors import CallFailed
from tests.hub.operating import (
    IDLE,
    kill_processes,
    processes,
    running_agents,
    sessions_at_agent,
    until,
)
from tests.hub.running import AGENT
from tests.hub.test_logins import RICH
from tests.hub.test_processes import OLD, hub_of
from tests.hub.test_sharing import heard, told

STOPPED = "idle: its agent is stopped"
"""How the hub logs that it has left the agent of a session."""


async def kept_session(folder: Path) -> str:
    async with hub_of(folder, [*OLD, str(folder / "kept.json")]) as (_, client):
        session = await client.new_session("/")
        await (await session.prompt("one")).drained()
        return session.id


@pytest.mark.parametrize("version", [1, 2])
async def test_a_prompt_is_cancelled_while_its_agent_does_not_start(tmp_path: Path, version: int) -> None:
    session_id = await kept_session(tmp_path)
    async with hub_of(tmp_path, [*OLD, str(tmp_path / "kept.json")]) as (hub, _):
        (tmp_path / "kept.hang").touch()
        (learned_from,) = processes(str(tmp_path))
        assert kill_processes(str(tmp_path)) == 1

        async def starts() -> bool:
            return bool(set(processes(str(tmp_path), "old_agent.py")) - {learned_from})

        async def is_over() -> bool:
            return not processes(str(tmp_path))

        await until(is_over)
        async with connect(hub, version=version) as client:
            session = await client.load_session(session_id, "/")
            prompting = asyncio.ensure_future(session.prompt("two"))
            await until(starts)
            assert await running_agents(hub) == 0  # none has answered `initialize`
            await session.cancel()
            if version == 2:
                with pytest.raises(CallFailed, match="-32800"):
                    await prompting
            else:
                assert (await (await prompting).drained()).cancelled
            await session.close()
            await until(is_over)  # nobody waits for it any more


async def test_an_agent_that_dies_by_a_load_is_not_one_that_forgets(tmp_path: Path) -> None:
    session_id = await kept_session(tmp_path)
    broken = tmp_path / "kept.broken"
    broken.touch()
    async with hub_of(tmp_path, [*OLD, str(tmp_path / "kept.json")]) as (hub, client):
        session = await client.load_session(session_id, "/")
        with pytest.raises(CallFailed, match=r"exited with code 4 \(cannot read it\)"):
            await session.prompt("two")
        broken.unlink()
        await (await session.prompt("three")).drained()
        assert [text for _, text in told(session)][2:] == ["three", "ask small heard three"]
        assert await sessions_at_agent(hub, session_id) == ["old-1"]  # it is where it was


async def test_prompts_and_rests_at_the_same_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    caplog.set_level(logging.INFO, logger="antiphon.hub")

    async def rested(session: ClientSession, times: int) -> bool:
        return caplog.messages.count(f"session {session.id} {STOPPED}") >= times

    async with hub_of(tmp_path, agent, share=True, idle=IDLE) as (_, client):
        sessions = [await client.new_session("/") for _ in range(2)]
        for number in range(6):
            session, before = sessions[number % 2], number // 2
            await until(partial(rested, session, before))
            # The agent is being stopped, for this session and soon for the other one.
            assert (await (await session.prompt(f"say {number}")).drained()).stop_reason == "end_turn"
        for at, session in enumerate(sessions):
            heard_ = [text for kind, text in told(session) if kind == "user"]
            assert heard_ == [f"say {number}" for number in range(6) if number % 2 == at]


async def test_one_session_of_a_shared_process_rests_while_the_other_works(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    caplog.set_level(logging.INFO, logger="antiphon.hub")

    async def rested(session: ClientSession) -> bool:
        return f"session {session.id} {STOPPED}" in caplog.messages

    async with hub_of(tmp_path, agent, share=True, idle=IDLE) as (_, client):
        one, two = await client.new_session("/"), await client.new_session("/")
        await (await one.prompt("say one")).drained()
        turn = await two.prompt("wait")
        await heard(two, "waiting")
        before = processes(str(tmp_path))
        assert len(before) == 1
        await until(lambda: rested(one))
        assert not await rested(two)
        await (await one.prompt("say two")).drained()
        assert processes(str(tmp_path)) == before
        assert [text for _, text in told(one)][2:] == ["say two", "heard say two"]
        await two.cancel()
        assert (await turn.drained()).cancelled


async def test_an_agent_that_dies_by_a_fork_leaves_one_that_is_told(tmp_path: Path) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    async with hub_of(tmp_path, agent) as (_, client):
        session = await client.new_session("/")
        await (await session.prompt("say one")).drained()
        forking = asyncio.ensure_future(session.fork())
        await asyncio.sleep(0)
        assert kill_processes(str(tmp_path)) == 1
        fork = await forking
        assert [text for _, text in told(fork)] == ["say one", "heard say one"]
        for one in (fork, session):
            assert (await (await one.prompt("say two")).drained()).stop_reason == "end_turn"
            assert [text for _, text in told(one)][2:] == ["say two", "heard say two"]


@pytest.mark.parametrize("version", [1, 2])
async def test_who_leaves_amid_a_login_leaves_the_agent_to_others(tmp_path: Path, version: int) -> None:
    async with hub_of(tmp_path, [*RICH, "--login"], version=version) as (hub, client):

        class Leaves:
            elicits = ("form", "url")

            def __init__(self) -> None:
                self.asked = asyncio.Event()

            async def decide(self, _: Any) -> None:
                return None

            async def elicit(self, _: Any) -> Any:
                self.asked.set()
                await asyncio.Event().wait()

        leaves = Leaves()
        async with connect(hub, answers=leaves) as leaving:
            trying = asyncio.ensure_future(leaving.login("form"))
            await leaves.asked.wait()
            with pytest.raises(CallFailed, match="Somebody else"):
                await client.login("form")
            trying.cancel()
            with pytest.raises(asyncio.CancelledError):
                await trying
        await client.login("key")
        session = await client.new_session("/")
        assert (await (await session.prompt("say a")).drained()).stop_reason == "end_turn"
