"""The processes of agents behind a hub: one for each session or shared, stopped when nobody needs them; and
what becomes of those that do not start."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import Client, Permissions, connect
from antiphon.errors import CallFailed
from antiphon.hub import Hub
from antiphon.stores import SQLiteStore
from tests.hub.operating import IDLE, is_open, is_saved, processes, running_agents, until
from tests.hub.running import AGENT, DEADLINE, SLOPPY, agents_of, kill_agents, served
from tests.hub.test_sharing import Waits, heard, told
from tests.options import hub_options

OLD = [sys.executable, str(Path(__file__).with_name("old_agent.py"))]


@asynccontextmanager
async def hub_of(folder: Path, agent: Any, **how: Any) -> AsyncIterator[tuple[Hub, Client]]:
    """A hub in this process, with a real store and a real agent or several, and a client of it. Its agents
    carry the path of the folder as their mark (`processes`)."""
    agents = agent if isinstance(agent, dict) else {"agent": agent}
    how.setdefault("mark", str(folder))
    hub = Hub(agents, store=SQLiteStore(folder / "hub.db"), **hub_options(**how))
    async with asyncio.timeout(DEADLINE), hub.listening(), connect(hub) as client:
        yield hub, client


async def idle_for_long(hub: Hub, client: Client, *, agent: str = "agent") -> None:
    """Until the hub has let go of a new session without clients, which its `agent` can restore. A session
    that was idle before has then been looked at as well."""
    async with connect(hub) as leaving:
        session = await leaving.new_session("/", agent=agent)
    await until(lambda: is_saved(client, session.id))


async def test_sessions_share_a_process_if_that_is_wanted_and_all_come_back_when_it_dies(
    tmp_path: Path,
) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    with served(tmp_path, "--share", agent=agent) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            one, two = await client.new_session("/"), await client.new_session("/")
            turns = [await session.prompt("wait") for session in (one, two)]
            for session in (one, two):
                await heard(session, "waiting")
            assert len(agents_of(hub)) == 1
            assert kill_agents(hub) == 1
            for turn in turns:
                error = (await turn.drained()).error
                assert error is not None
                assert error.data == {"reason": "interrupted", "cause": "agent_lost"}
            for session in (one, two):
                assert (await (await session.prompt("say more")).drained()).stop_reason == "end_turn"
                assert [text for _, text in told(session)][2:] == ["say more", "heard say more"]
            assert len(agents_of(hub)) == 1


async def test_an_agent_that_names_its_sessions_alike_is_not_shared(tmp_path: Path) -> None:
    async with hub_of(tmp_path, SLOPPY, share=True) as (hub, client):
        one, two = await client.new_session("/"), await client.new_session("/")
        for session in (one, two, one):
            turn = await session.prompt("echo")
            assert (await turn.drained()).stop_reason == "end_turn"
            assert turn.text == "heard"
        assert await running_agents(hub) == len(processes(str(tmp_path))) == 2


async def test_who_closes_a_session_of_a_shared_process_leaves_the_others_alone(tmp_path: Path) -> None:
    async with hub_of(tmp_path, AGENT, share=True) as (hub, client):
        one, two = await client.new_session("/"), await client.new_session("/")
        turn = await two.prompt("stream 2000")
        await one.close()
        assert (await turn.drained()).stop_reason == "end_turn"
        assert await running_agents(hub) == len(processes(str(tmp_path))) == 1


async def test_an_idle_agent_is_stopped_and_the_next_prompt_brings_it_back(tmp_path: Path) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]

    async def stopped() -> bool:
        return not processes(str(tmp_path))

    async with hub_of(tmp_path, agent, idle=IDLE) as (hub, client):
        session = await client.new_session("/")
        await session.set_config("model", "large")
        await (await session.prompt("say one")).drained()
        await until(stopped)
        assert await running_agents(hub) == 0
        assert await is_open(client, session.id)  # a client is attached
        turn = await session.prompt("wait")
        await heard(session, "waiting")
        assert await running_agents(hub) == len(processes(str(tmp_path))) == 1
        await session.cancel()
        await turn.drained()
        assert [text for _, text in told(session)] == ["say one", "heard say one", "wait", "waiting"]
        assert session.config["model"].current_value == "large"


@pytest.mark.parametrize("busy", ["wait", "ask"])
async def test_an_agent_at_work_or_with_a_question_is_not_stopped(tmp_path: Path, busy: str) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    state = {"wait": "running", "ask": "requires_action"}[busy]

    async def works(client: Client, session_id: str) -> bool:
        now = await client.session_status(session_id)
        return getattr(now.state, "state", None) == state

    async with hub_of(tmp_path, agent, idle=IDLE) as (hub, client):
        async with connect(hub, answers=Permissions(ask=Waits())) as leaving:
            session = await leaving.new_session("/")
            await session.prompt(busy)
            await until(lambda: works(client, session.id))
            [at_work] = processes(str(tmp_path))
        await idle_for_long(hub, client)
        assert await works(client, session.id)
        assert at_work in processes(str(tmp_path))
        back = await client.load_session(session.id, "/")
        assert back.turn is not None


async def test_an_agent_that_would_forget_its_session_is_kept(tmp_path: Path) -> None:
    restored = [*AGENT, "--store", str(tmp_path / "agent.db")]
    for forgets, prompt in (
        (AGENT, "say one"),  # in memory, as it says
        (SLOPPY, "echo"),  # it can neither resume nor load
    ):
        agents = {"agent": forgets, "restored": restored}
        async with hub_of(tmp_path, agents, idle=IDLE) as (hub, client):
            session = await client.new_session("/")
            await (await session.prompt(prompt)).drained()
            (kept,) = processes(str(tmp_path))
            await idle_for_long(hub, client, agent="restored")
            assert await running_agents(hub) == 1
            assert kept in processes(str(tmp_path))


async def test_a_session_that_nobody_needs_is_let_go_and_opened_again(tmp_path: Path) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    async with hub_of(tmp_path, agent, idle=IDLE) as (hub, client):
        async with connect(hub) as leaving:
            session = await leaving.new_session("/")
            await (await session.prompt("say one")).drained()
        await until(lambda: is_saved(client, session.id))
        back = await client.load_session(session.id, "/")
        await (await back.prompt("say two")).drained()
        assert [text for _, text in told(back)] == ["say one", "heard say one", "say two", "heard say two"]
    assert not processes(str(tmp_path))


async def test_an_agent_that_answers_nothing_is_an_error_in_time(tmp_path: Path) -> None:
    async with hub_of(tmp_path, [*OLD, str(tmp_path / "f"), "--hang"], start=0.3) as (_, client):
        with pytest.raises(CallFailed, match=r"did not answer `initialize` within 0\.3 s"):
            await client.new_session("/")


async def test_an_agent_that_dies_at_its_start_rejects_prompts_with_its_last_words(tmp_path: Path) -> None:
    file = str(tmp_path / "f")
    async with hub_of(tmp_path, [*OLD, file]) as (_, client):
        session = await client.new_session("/")
        await (await session.prompt("one")).drained()
    async with hub_of(tmp_path, [*OLD, file, "--die"]) as (_, client):
        back = await client.load_session(session.id, "/")
        for _ in range(2):
            with pytest.raises(CallFailed, match=r"exited with code 7 \(giving up\)") as failed:
                await back.prompt("two")
            assert failed.value.error.data == {
                "reason": "agent",
                "stderr": "cannot find my settings\ngiving up",
            }
        assert [text for _, text in told(back)] == ["one", "ask small heard one"]
    async with hub_of(tmp_path, [*OLD, file]) as (_, client):
        back = await client.load_session(session.id, "/")
        await (await back.prompt("three")).drained()
        assert [text for _, text in told(back)][2:] == ["three", "ask small heard three"]


async def test_an_agent_that_prints_what_is_no_protocol_works(tmp_path: Path) -> None:
    async with hub_of(tmp_path, [*OLD, str(tmp_path / "f"), "--noise"]) as (_, client):
        session = await client.new_session("/")
        await (await session.prompt("one")).drained()
        assert [text for _, text in told(session)] == ["one", "ask small heard one"]
