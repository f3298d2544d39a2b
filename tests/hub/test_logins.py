"""Logins of an agent through the hub: offered to its clients, done at the agent, and done again when that is
started again."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import Client, ClientOptions, connect
from antiphon.client.elicitation import Elicitation
from antiphon.errors import CallFailed, LocalError
from antiphon.hub import Hub
from tests.hub.running import AGENT, DEADLINE
from tests.hub.test_processes import OLD, hub_of
from tests.hub.test_sharing import told
from tests.requirements.marks import requirement

RICH = [sys.executable, str(Path(__file__).with_name("rich_agent.py"))]
AGENTS = pytest.mark.parametrize("agent_version", [1, 2])
CLIENTS = pytest.mark.parametrize("version", [1, 2])


class Answers:
    """Answers forms with a name, and visits what it is asked to."""

    elicits = ("form", "url")

    def __init__(self, name: str = "ann") -> None:
        self.name = name
        self.asked: list[Elicitation] = []

    async def decide(self, _: Any) -> None:
        return None

    async def elicit(self, elicitation: Elicitation) -> Any:
        self.asked.append(elicitation)
        return elicitation.accept(name=self.name) if elicitation.mode == "form" else elicitation.accept()


async def refused(client: Client) -> CallFailed:
    with pytest.raises(CallFailed) as failed:
        await client.new_session("/")
    return failed.value


@requirement("AUTH-01", "AUTH-18", "AUTH-20")
@AGENTS
@CLIENTS
async def test_a_client_of_the_hub_logs_in_at_the_agent(
    tmp_path: Path, agent_version: int, version: int
) -> None:
    async with (
        hub_of(tmp_path, [*RICH, "--store", str(tmp_path / "a.db"), "--login"], version=agent_version) as (
            hub,
            _,
        ),
        connect(hub, version=version) as client,
    ):
        assert [method.method_id for method in client.auth_methods] == ["key", "form", "visit"]
        assert (await refused(client)).needs_login
        with pytest.raises(CallFailed) as failed:
            await client.login("key", meta={"key": "wrong"})
        assert failed.value.needs_login
        with pytest.raises(LocalError, match="no login"):
            await client.login("nothing")
        await client.login("key")
        session = await client.new_session("/")
        turn = await session.prompt("say hello")
        assert (await turn.drained()).stop_reason == "end_turn"
        assert (await client.auth_status()).state == "authenticated"
        await client.logout()
        assert (await refused(client)).needs_login


@requirement("ELIC-04", "PROXY-06")
@AGENTS
async def test_what_a_login_asks_is_asked_of_who_logs_in(tmp_path: Path, agent_version: int) -> None:
    answers, others = Answers(), Answers()
    sent: list[dict[str, Any]] = []

    def note(way: str, frame: Any) -> None:
        sent.extend([json.loads(frame)] if way == "out" else [])

    agent = [*RICH, "--store", str(tmp_path / "a.db"), "--login"]
    async with (
        hub_of(tmp_path, agent, version=agent_version) as (hub, _),
        connect(hub, answers=answers, options=ClientOptions(tap=note)) as client,
        connect(hub, version=1, answers=others) as other,
    ):
        await client.login("form")
        assert [asked.message for asked in answers.asked] == ["Who are you?"]
        assert answers.asked[0].session is None
        [login] = [frame for frame in sent if frame.get("method") in ("auth/login", "authenticate")]
        assert answers.asked[0].request_id == login["id"]
        await other.login("visit")
        assert others.asked[0].url == "https://login.example/"
        assert await others.asked[0].completed()
        assert len(answers.asked) == 1
        await client.new_session("/")
    nobody = Answers(name="nobody")
    async with hub_of(tmp_path, agent) as (hub, silent), connect(hub, answers=nobody) as client:
        with pytest.raises(CallFailed) as failed:
            await client.login("form")
        assert failed.value.needs_login
        with pytest.raises(CallFailed):
            await silent.login("form")  # it takes no questions


async def test_a_process_that_is_started_later_gets_the_login_again(tmp_path: Path) -> None:
    agent = [*OLD, str(tmp_path / "kept.json"), "--login"]  # it forgets the login with its process
    async with hub_of(tmp_path, agent) as (_, client):
        assert (await refused(client)).needs_login
        await client.login("key")
        session = await client.new_session("/")
        await (await session.prompt("die")).drained()
        turn = await session.prompt("two")
        assert (await turn.drained()).stop_reason == "end_turn"
        other = await client.new_session("/")  # a process of its own
        assert (await (await other.prompt("one")).drained()).stop_reason == "end_turn"
        await client.logout()
        for one in (session, other):
            end = await (await one.prompt("three")).drained()
            assert end.error is not None
            assert end.error.code == -32000
        await client.login("key")  # at both processes: they have asked for it
        for one in (session, other):
            assert (await (await one.prompt("four")).drained()).stop_reason == "end_turn"
        assert told(session)[-1] == ("agent", "ask small heard four")
    async with hub_of(tmp_path, agent) as (_, client):  # another life of the hub knows of no login
        back = await client.load_session(session.id, "/")
        with pytest.raises(CallFailed) as failed:
            await back.prompt("five")
        assert failed.value.needs_login
        await client.login("key")
        await (await back.prompt("six")).drained()
        assert told(back)[-2:] == [("user", "six"), ("agent", "ask small heard six")]
        assert len([text for _, text in told(back) if text == "four"]) == 1


async def test_the_login_of_another_agent_than_the_first_has_its_name(tmp_path: Path) -> None:
    hub = Hub({"one": AGENT, "two": [*OLD, str(tmp_path / "kept.json"), "--login"]})
    async with asyncio.timeout(DEADLINE), hub.serving(), connect(hub) as early:
        with pytest.raises(CallFailed) as failed:
            await early.new_session("/", agent="two")
        assert failed.value.needs_login
        async with connect(hub) as client:
            assert [method.method_id for method in client.auth_methods] == ["two/key"]
            await client.login("two/key")
            session = await client.new_session("/", agent="two")
            assert (await (await session.prompt("one")).drained()).stop_reason == "end_turn"
            other = await client.new_session("/")
            assert (await (await other.prompt("say one")).drained()).stop_reason == "end_turn"


@requirement("AUTH-14", "AUTH-19")
async def test_a_login_that_only_a_terminal_can_do_is_a_clear_error(tmp_path: Path) -> None:
    async with hub_of(tmp_path, [*OLD, str(tmp_path / "kept.json"), "--terminal-only"]) as (_, client):
        assert list(client.auth_methods) == []
        error = await refused(client)
        assert not error.needs_login
        assert "terminal, on the hub's machine" in error.error.message
        advice = "log in with the agent's own command on the hub's machine, then try again"
        assert error.error.data == {"reason": "login", "advice": advice}
