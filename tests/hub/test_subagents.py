"""Subagents through the hub: announced, followed, replayed, cancelled; what a child asks, its parent asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antiphon.client import Client, ClientSession, Permissions, Subagent, connect
from tests.hub.operating import is_open, is_saved, kill_processes, metrics, until
from tests.hub.test_logins import AGENTS, CLIENTS, RICH, Answers
from tests.hub.test_processes import hub_of
from tests.hub.test_sharing import settled
from tests.requirements.marks import requirement


async def begun(client: Client, how: str = "") -> tuple[ClientSession, Any]:
    session = await client.new_session("/")
    return session, await session.prompt(f"child {how}".strip())


async def child_of(session: ClientSession, text: str = "on it") -> Subagent:
    """Once it has said something."""
    while not session.subagents:
        await anext(session.events())
    child = session.subagents[0]
    await said(child, text)
    return child


async def said(child: Subagent, text: str) -> None:
    while not any(text in message.text for message in child.session.messages):
        await anext(child.session.events())


def texts(child: Subagent) -> list[str]:
    return [message.text for message in child.session.messages]


@requirement("SUB-01", "SUB-03")
@AGENTS
@CLIENTS
async def test_a_child_of_the_agent_is_announced_followed_and_replayed(
    tmp_path: Path, agent_version: int, version: int
) -> None:
    async with (
        hub_of(tmp_path, RICH, version=agent_version) as (hub, late),
        connect(hub, version=version) as client,
    ):
        session, turn = await begun(client, "work")
        assert (await turn.drained()).stop_reason == "end_turn"
        child = await child_of(session)
        assert (child.title, child.description, child.can_cancel) == ("Helper", "helps", True)
        assert child.state == "idle"
        assert await is_open(client, child.id)  # a session of the hub's own
        notes = [(note.sender_session_id, note.recipient_session_id) for note in session.session_messages]
        assert notes == [(session.id, child.id), (child.id, session.id)]
        back = await late.load_session(session.id, "/")
        assert [told.id for told in back.subagents] == [child.id]
        alone = await late.load_session(child.id, "/")
        assert [message.text for message in alone.messages] == ["on it"]
        listed = [info.session_id async for info in late.list_sessions()]
        assert listed == [session.id]


@AGENTS
async def test_a_client_that_joins_follows_the_child_too_and_may_cancel_it(
    tmp_path: Path, agent_version: int
) -> None:
    async with (
        hub_of(tmp_path, RICH, version=agent_version) as (hub, _),
        connect(hub) as client,
        connect(hub, version=1) as other,
    ):
        session, turn = await begun(client)
        child = await child_of(session)
        joined = await other.load_session(session.id, "/")
        followed = await child_of(joined)
        assert texts(followed) == texts(child) == ["on it"]
        await followed.cancel()
        assert (await turn.drained()).stop_reason == "end_turn"
        assert turn.text == "the child is done"
        while child.state != "idle":
            await anext(session.events())
        await settled(joined, "the child is done")


@AGENTS
async def test_a_child_is_over_when_its_agent_dies(tmp_path: Path, agent_version: int) -> None:
    agent = [*RICH, "--store", str(tmp_path / "a.db")]
    async with hub_of(tmp_path, agent, version=agent_version) as (_, client):
        session, turn = await begun(client)
        child = await child_of(session)
        assert kill_processes(str(tmp_path)) == 1
        assert (await turn.drained()).stop_reason == "error"
        while child.state != "idle":
            await anext(session.events())
        assert (await (await session.prompt("say more")).drained()).stop_reason == "end_turn"
        assert [told.id for told in session.subagents] == [child.id]
        await until(lambda: is_saved(client, child.id))  # it is put away soon


@AGENTS
async def test_what_a_child_asks_is_asked_through_its_parent(tmp_path: Path, agent_version: int) -> None:
    answers = Permissions(allow="all")
    async with (
        hub_of(tmp_path, RICH, version=agent_version) as (hub, _),
        connect(hub, answers=answers) as client,
    ):
        session, turn = await begun(client, "ask")
        child = await child_of(session)
        await said(child, "allowed: True")
        assert (await turn.drained()).stop_reason == "end_turn"
        assert (await metrics(hub))["antiphon_questions"] == 0


@AGENTS
@CLIENTS
async def test_a_form_of_a_child_is_asked_through_its_parent(
    tmp_path: Path, agent_version: int, version: int
) -> None:
    answers = Answers()
    async with (
        hub_of(tmp_path, RICH, version=agent_version) as (hub, _),
        connect(hub, version=version, answers=answers) as client,
    ):
        session, turn = await begun(client, "form")
        assert (await turn.drained()).stop_reason == "end_turn"
        assert [asked.message for asked in answers.asked] == ["Whose child?"]
        asked_in = answers.asked[0].session
        assert asked_in is not None
        assert asked_in.id == session.id
        assert texts(await child_of(session, "accept ann")) == ["on it", "accept ann"]


@requirement("SUB-01")
@pytest.mark.parametrize("agent_version", [1, 2])
async def test_a_client_that_takes_no_subagents_is_told_of_none(tmp_path: Path, agent_version: int) -> None:
    from tests.hub.test_files import by_hand

    async with hub_of(tmp_path, RICH, version=agent_version) as (hub, _), by_hand(hub) as plain:
        session = (await plain.call("n", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        plain.prompt(1, session, "child work")
        assert (await plain.answer_to(1))["result"]["stopReason"] == "end_turn"
        assert "the child is done" in str(plain.seen)
        assert "subagent" not in str(plain.seen)
        named = {
            frame["params"]["sessionId"] for frame in plain.seen if "sessionId" in frame.get("params", {})
        }
        assert named == {session}
