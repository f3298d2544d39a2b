"""Archive, title and status from a client, and what it refuses before it is sent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import connect
from antiphon.errors import CallFailed, LocalError
from antiphon.schema import v2
from tests.client.driving import driven
from tests.client.test_forking import able
from tests.requirements.agent_by_hand import DEADLINE, session
from tests.requirements.marks import requirement

VERSIONS = [1, 2]


def agent_of_words() -> Agent:
    agent = Agent("words")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await turn.say("a word")

    return agent


async def ids(client: Any, **wanted: Any) -> list[str]:
    return [info.session_id async for info in client.list_sessions(**wanted)]


@requirement("SESS-53", "SESS-54")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_session_is_archived_listed_and_brought_back(version: int) -> None:
    async with driven(agent_of_words(), f"v{version}") as opened:
        client = opened.client
        other = await client.new_session("/")
        await opened.archive()
        assert client.sessions == [other]
        with pytest.raises(LocalError, match="left"):
            await opened.prompt("too late")
        assert await ids(client) == [other.id]
        listed = [info async for info in client.list_sessions(archived="only")]
        assert [(info.session_id, info.archived) for info in listed] == [(opened.id, True)]
        assert set(await ids(client, archived="include")) == {opened.id, other.id}
        await client.archive(opened.id)
        await client.unarchive(opened.id)
        assert len(await ids(client)) == 2
        for work in (client.archive("no"), client.unarchive("no")):
            with pytest.raises(CallFailed, match="-32002"):
                await work
        with pytest.raises(LocalError, match="exclude"):
            await ids(client, archived="sometimes")


@requirement("SESS-57")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_title_is_given_and_kept(version: int) -> None:
    async with driven(agent_of_words(), f"v{version}") as opened:
        assert await opened.set_title("  My   title ") == "My title"
        assert opened.title == "My title"
        assert [info.title async for info in opened.client.list_sessions()] == ["My title"]
        with pytest.raises(LocalError):
            await opened.set_title("  ")
        with pytest.raises(CallFailed, match="-32602"):
            await opened.set_title("x" * 1001)
        await opened.close()
        assert await opened.client.set_title(opened.id, "Later") == "Later"


@requirement("SESS-57")
@pytest.mark.parametrize("version", VERSIONS)
async def test_the_title_is_known_though_no_update_tells_it(version: int) -> None:
    async with session(version, able(version, title={})) as (opened, agent):
        titling = agent.meanwhile(opened.set_title("Mine"))
        request = await agent.request("session/set_title")
        assert request["params"] == {"sessionId": "s", "title": "Mine"}
        agent.answer(request, {"title": "Mine, shortened"})
        assert await titling == opened.title == "Mine, shortened"


@requirement("SESS-55", "SESS-56")
@pytest.mark.parametrize("version", VERSIONS)
async def test_the_status_is_told_and_opens_nothing(version: int) -> None:
    agent = agent_of_words()
    async with (
        asyncio.timeout(DEADLINE),
        connect(agent, version=version) as first,
        connect(agent, version=version) as second,
    ):
        opened = await first.new_session("/")
        await (await opened.prompt("hello")).drained()
        status = await second.session_status(opened.id)
        assert status.status == "open"
        if version == 2:
            assert status.state is not None
            assert (status.state.state, status.state.stop_reason) == ("idle", "end_turn")
        else:
            assert status.state is None  # not idle: v1 does not tell
        assert second.sessions == []
        resumed = await second.resume_session(opened.id, "/")
        end = await (await resumed.prompt("again")).drained()
        assert end.stop_reason == "end_turn"
        with pytest.raises(CallFailed, match="-32002"):
            await second.session_status("no")


@requirement("SESS-55", "SESS-56")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_status_that_is_not_known_is_saved_and_no_state_is_no_idle(
    version: int,
) -> None:
    async with session(version, able(version, status={})) as (opened, agent):
        asking = agent.meanwhile(opened.client.session_status("s"))
        agent.answer(await agent.request("session/status"), {"status": "_frozen", "state": "odd"})
        status = await asking
        assert (status.status, status.state) == (v2.SessionStatus.SAVED, None)

        events = opened.events()
        asking = agent.meanwhile(opened.client.session_status("s"))
        idle = {"state": "idle", "stopReason": "end_turn"}
        agent.answer(await agent.request("session/status"), {"status": "open", "state": idle})
        await asking
        agent.update("s", "session_info_update", title="Next")
        first = await anext(events)
        assert isinstance(first.update, v2.SessionInfoUpdate)  # an idle snapshot ends nothing


@requirement("SESS-53", "SESS-54", "SESS-57")
@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_not_offered_is_not_asked_for(version: int) -> None:
    async with session(version) as (opened, agent):
        client = opened.client
        refused: list[Any] = [
            client.archive("s"),
            client.unarchive("s"),
            client.session_status("s"),
            opened.archive(),
            opened.set_title("T"),
            ids(client, archived="only"),
        ]
        for work in refused:
            with pytest.raises(LocalError):
                await work
        assert agent.methods() == ["session/new"]
