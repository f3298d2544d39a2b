"""What an agent asks of the user, through the hub: forms and addresses, both ends of both versions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import connect
from antiphon.client.elicitation import Elicitation
from tests.hub.operating import until
from tests.hub.test_files import by_hand
from tests.hub.test_logins import AGENTS, CLIENTS, RICH, Answers
from tests.hub.test_processes import hub_of
from tests.hub.test_sharing import heard, settled
from tests.requirements.marks import requirement


class Waits(Answers):
    """Answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self.withdrawn = asyncio.Event()

    async def elicit(self, elicitation: Elicitation) -> Any:
        self.asked.append(elicitation)
        self.begun.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.withdrawn.set()
            raise
        return elicitation.decline()


@requirement("ELIC-04")
@AGENTS
@CLIENTS
async def test_a_form_and_an_address(tmp_path: Path, agent_version: int, version: int) -> None:
    answers = Answers()
    async with (
        hub_of(tmp_path, RICH, version=agent_version) as (hub, _),
        connect(hub, version=version, answers=answers) as client,
    ):
        session = await client.new_session("/")
        turn = await session.prompt("form")
        assert (await turn.drained()).stop_reason == "end_turn"
        assert turn.text == "accept ann"
        assert answers.asked[0].agent == "agent"  # as the hub calls it, and not the hub
        turn = await session.prompt("visit")
        assert (await turn.drained()).stop_reason == "end_turn"
        assert turn.text == "accept"
        assert answers.asked[1].url == "https://page.example/"
        assert await answers.asked[1].completed()


@AGENTS
@CLIENTS
async def test_the_first_answer_counts_and_the_others_are_withdrawn(
    tmp_path: Path, agent_version: int, version: int
) -> None:
    slow, quick = Waits(), Waits()
    quick.go_on.set()
    async with (
        hub_of(tmp_path, RICH, version=agent_version) as (hub, _),
        connect(hub, version=version, answers=slow) as first,
        connect(hub, answers=quick) as second,
    ):
        session = await first.new_session("/")
        turn = await session.prompt("form")
        await slow.begun.wait()
        other = await second.load_session(session.id, "/")  # a late joiner is asked, too
        assert other.agent_name == "agent"
        await slow.withdrawn.wait()
        assert (await turn.drained()).stop_reason == "end_turn"
        assert turn.text == "decline None"
        await settled(other, "decline None")


@requirement("ELIC-20")
@AGENTS
async def test_a_cancel_ends_the_question(tmp_path: Path, agent_version: int) -> None:
    answers = Waits()
    async with (
        hub_of(tmp_path, RICH, version=agent_version) as (hub, _),
        connect(hub, answers=answers) as client,
    ):
        session = await client.new_session("/")
        turn = await session.prompt("form")
        await answers.begun.wait()
        await session.cancel()
        assert (await turn.drained()).cancelled
        await answers.withdrawn.wait()


@requirement("ELIC-02")
@AGENTS
async def test_with_nobody_able_it_is_cancelled(tmp_path: Path, agent_version: int) -> None:
    async with hub_of(tmp_path, RICH, version=agent_version) as (_, client):
        session = await client.new_session("/")
        for how in ("form", "visit"):
            turn = await session.prompt(how)
            assert (await turn.drained()).stop_reason == "end_turn"
            assert "cancel" in turn.text


@AGENTS
async def test_with_nobody_attached_it_waits_for_somebody(tmp_path: Path, agent_version: int) -> None:
    waits = Waits()
    async with hub_of(tmp_path, RICH, version=agent_version) as (hub, _):
        async with connect(hub, answers=waits) as leaving:
            session = await leaving.new_session("/")
            await session.prompt("form")
            await waits.begun.wait()
        answers = Answers()
        async with connect(hub, answers=answers) as client:
            back = await client.load_session(session.id, "/")
            await heard(back, "accept ann")


@AGENTS
async def test_unattended_it_can_be_cancelled_at_once(tmp_path: Path, agent_version: int) -> None:
    async with hub_of(tmp_path, RICH, version=agent_version, unattended="reject") as (hub, client):
        async with by_hand(hub, elicitation={"form": {}}) as leaving:
            session = (await leaving.call("n", "session/new", cwd="/", mcpServers=[]))["sessionId"]
            leaving.prompt(1, session, f"hold {tmp_path / 'go'}")
            await leaving.until(lambda frame: "holding" in str(frame))

        async def is_listed(*, clients: int, state: str) -> bool:
            [ours] = [info.meta["antiphon"] async for info in client.list_sessions() if info.meta is not None]
            return bool((ours["clients"], ours["state"]) == (clients, state))

        await until(lambda: is_listed(clients=0, state="running"))
        (tmp_path / "go").touch()  # the agent asks with nobody there
        await until(lambda: is_listed(clients=0, state="idle"))
        back = await client.load_session(session, "/")
        await heard(back, "cancel None")


@requirement("ELIC-15")
@pytest.mark.parametrize("agent_version", [1, 2])
async def test_an_answer_that_does_not_fit_is_none(tmp_path: Path, agent_version: int) -> None:
    async with (
        hub_of(tmp_path, RICH, version=agent_version) as (hub, _),
        by_hand(hub, elicitation={"form": {}}) as client,
    ):
        session = (await client.call("n", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        client.prompt(1, session, "form")
        asked = await client.request("elicitation/create")
        assert asked["params"]["sessionId"] == session
        client.send(id=asked["id"], result={"action": "accept", "content": {"age": 7}})
        await client.answer_to(1)
        assert "cancel None" in str(client.seen)
