"""Forks through the hub: the agent's own where it has one, else a new session that is told what happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.client import connect
from antiphon.errors import CallFailed
from antiphon.schema import v2
from tests.hub.operating import processes, running_agents, sessions_at_agent
from tests.hub.running import AGENT
from tests.hub.test_processes import OLD, hub_of
from tests.hub.test_sharing import told


@pytest.mark.parametrize("agent_version", [1, 2])
@pytest.mark.parametrize("version", [1, 2])
async def test_an_agent_s_own_fork_goes_on_in_its_process(
    tmp_path: Path, agent_version: int, version: int
) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    async with (
        hub_of(tmp_path, agent, version=agent_version) as (hub, _),
        connect(hub, version=version) as client,
    ):
        session = await client.new_session("/")
        await (await session.prompt("say one")).drained()
        fork = await session.fork()
        assert told(fork) == told(session) == [("user", "say one"), ("agent", "heard say one")]
        turn = await fork.prompt("story")
        await turn.drained()
        assert turn.text == "story"  # nothing had to be told
        await (await session.prompt("say two")).drained()
        assert [text for _, text in told(fork)] == ["say one", "heard say one", "story", "story"]
        assert await running_agents(hub) == len(processes(str(tmp_path))) == 1
        await session.close()
        assert (await (await fork.prompt("say three")).drained()).stop_reason == "end_turn"


async def test_a_fork_at_a_message_is_the_agent_s_own_where_it_can_do_that(tmp_path: Path) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    async with hub_of(tmp_path, agent, version=2) as (hub, client):
        session = await client.new_session("/")
        for word in ("one", "two"):
            await (await session.prompt(f"say {word}")).drained()
        at = session.messages[1].message_id
        fork = await session.fork(at=at)
        assert [text for _, text in told(fork)] == ["say one", "heard say one"]
        assert await sessions_at_agent(hub, fork.id)
        with pytest.raises(CallFailed) as failed:
            await session.fork(at="msg_unknown")
        assert failed.value.error.data["reason"] == "unknown_message_id"
        assert (await (await fork.prompt("say three")).drained()).stop_reason == "end_turn"
        assert await running_agents(hub) == len(processes(str(tmp_path))) == 1


@pytest.mark.parametrize("at_message", [False, True])
async def test_an_agent_that_cannot_fork_is_told_what_happened_and_that_is_announced(
    tmp_path: Path, *, at_message: bool
) -> None:
    async with hub_of(tmp_path, [*OLD, str(tmp_path / "kept.json")]) as (_, client):
        session = await client.new_session("/")
        await session.set_config("model", "large")
        for word in ("one", "two"):
            await (await session.prompt(word)).drained()
        fork = await session.fork(at=session.messages[1].message_id if at_message else None)
        held = ["one", "ask large heard one", *([] if at_message else ["two", "ask large heard two"])]
        assert [text for _, text in told(fork)] == held
        told_live = fork.events()
        turn = await fork.prompt("three")
        await turn.drained()
        event = await anext(told_live)
        while not isinstance(event.update, v2.Notice):
            event = await anext(told_live)
        assert event.update.title == "The agent cannot fork this session"
        assert turn.text == "ask large heard three"
        assert [text for _, text in told(fork)] == [*held, "three", "ask large heard three"]
        given = (tmp_path / "kept.json").read_text()
        assert "User: one" in given
        assert ("User: two" in given) is not at_message
        assert [text for _, text in told(session)][-1] == "ask large heard two"
