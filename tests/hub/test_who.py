"""Who sent what and who is there, behind a hub: agents of both versions, restarts and reconnects."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import ClientOptions, ClientSession, Permissions, SessionEvent, connect
from antiphon.hub import Hub
from antiphon.schema.antiphon.clients import Who
from tests.agent.test_who import asked, client_id, named, present, strange
from tests.hub.by_hand import ByHand
from tests.hub.running import AGENT, DEADLINE, SLOPPY, Served, served
from tests.hub.test_sharing import VERSIONS, Waits, settled


def senders(session: ClientSession) -> list[tuple[str, str | None]]:
    return [
        (message.text, None if message.sender is None else message.sender.name)
        for message in session.messages
        if message.type == "user"
    ]


def names(session: ClientSession) -> list[str]:
    return [one.name for one in session.clients]


async def until(session: ClientSession, condition: Any) -> SessionEvent | None:
    """Until it is so; the event that made it so."""
    async with asyncio.timeout(DEADLINE):
        events = session.events()
        if condition(session):
            return None
        async for event in events:
            if condition(session):
                return event
    raise AssertionError("the session ended")


@VERSIONS
async def test_each_client_sees_who_prompted_live_replayed_and_after_a_restart(
    tmp_path: Path, version: str
) -> None:
    expected = [("say a", "ann"), ("say b", "bob"), ("say c", "eve")]
    with served(tmp_path, "--acp-version", version, agent=[*AGENT, "--store", str(tmp_path / "a.db")]) as hub:
        async with (
            asyncio.timeout(DEADLINE),
            hub.client(version=2, name="ann", reconnect=False) as ann,
            hub.client(version=1, name="bob", reconnect=False) as bob,
            hub.client(version="v2-proposed", name="eve", reconnect=False) as eve,
        ):
            own = await ann.new_session("/")
            sessions = [own, await bob.load_session(own.id, "/"), await eve.load_session(own.id, "/")]
            for session, (text, _) in zip(sessions, expected, strict=True):
                turn = await session.prompt(text)
                await turn.drained()
                assert turn.sender == session.client.who
                for other in sessions:
                    await settled(other, f"heard {text}")
            for session in sessions:
                assert senders(session) == expected
                assert {m.sender.client_id for m in session.messages if m.sender is not None} == {
                    client.who.client_id for client in (ann, bob, eve)
                }
        hub.kill()
        hub.restart()
        for speaks in (1, 2):
            async with hub.client(version=speaks, reconnect=False) as later:
                late = await later.load_session(own.id, "/")
                assert senders(late) == expected, "replays tell it too"
                await (await late.prompt("say d")).drained()
                assert senders(late)[-1] == ("say d", "antiphon")
                expected.append(("say d", "antiphon"))


@VERSIONS
async def test_who_comes_goes_and_answers_is_told(tmp_path: Path, version: str) -> None:
    with served(tmp_path, "--acp-version", version, agent=AGENT) as hub:
        one, two = Waits(), Waits()
        async with (
            asyncio.timeout(DEADLINE),
            hub.client(version=2, name="ann", answers=Permissions(ask=one)) as ann,
            hub.talk(1) as plain,
        ):
            own = await ann.new_session("/")
            await plain.call("load", "session/load", sessionId=own.id, cwd="/", mcpServers=[])
            await until(own, lambda session: names(session) == ["ann", "talk"])
            async with hub.client(version=1, name="bob", answers=Permissions(ask=two)) as bob:
                other = await bob.load_session(own.id, "/")
                event = await until(own, lambda session: names(session) == ["ann", "talk", "bob"])
                assert event is None or (event.clients is not None and event.turn is None)
                await until(other, lambda session: names(session) == ["ann", "talk", "bob"])
                assert [present.you for present in other.clients] == [False, False, True]
                events = other.events()
                turn = await own.prompt("ask")
                await one.asked.wait()
                await two.asked.wait()
                [question] = own.questions
                assert question.permission is not None
                option = question.permission.options[0]
                one.choice.set_result(option.option_id)
                assert (await turn.drained()).stop_reason == "end_turn"
                news = [event.news async for event in upto(events, "answered") if event.news is not None]
                assert [each.state for each in news] == ["opened", "answered"]
                assert news[-1].by == ann.who
                assert (news[-1].option_id, news[-1].option_name) == (option.option_id, option.name)
                await two.over.wait()
                [ended] = other.fold.questions.all.values()
                assert (str(ended.state), ended.by) == ("answered", ann.who)
                await settled(other, "allowed: True")
            await until(own, lambda session: names(session) == ["ann", "talk"])
            assert not strange(plain)


async def upto(events: Any, state: str) -> Any:
    async for event in events:
        yield event
        if event.news is not None and event.news.state == state:
            return


async def test_who_leaves_by_attach_is_seen_to_leave(tmp_path: Path) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        async with asyncio.timeout(DEADLINE), hub.client(name="ann") as ann, hub.client(name="bob") as bob:
            own = await ann.new_session("/")
            async with bob.attach(own.id, cwd="/"):
                await until(own, lambda session: names(session) == ["ann", "bob"])
            await until(own, lambda session: names(session) == ["ann"])


async def test_a_client_that_comes_back_is_the_same_one(tmp_path: Path) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        async with asyncio.timeout(DEADLINE), hub.client(name="ann", client_id="ann") as ann:
            own = await ann.new_session("/")
            ids = []
            for _ in range(2):
                async with hub.client(name="bob", client_id="bob/1") as bob:
                    other = await bob.load_session(own.id, "/")
                    await until(own, lambda session: names(session) == ["ann", "bob"])
                    ids.append(own.clients[1].client_id)
                    await (await other.prompt("say hello")).drained()
                await until(own, lambda session: names(session) == ["ann"])
            assert ids == ["bob/1"] * 2
            told = [message.sender for message in own.messages if message.type == "user"]
            assert told == [Who(client_id="bob/1", name="bob")] * 2


async def test_clients_choose_an_agent_and_lists_tell_which(tmp_path: Path) -> None:
    hub = Served(tmp_path, ["--agent", f"two={' '.join(SLOPPY)}", "--", *AGENT])
    try:
        for version in (1, 2):
            async with asyncio.timeout(DEADLINE), hub.client(version=version) as client:
                assert "two" in client.agents
                assert len(client.agents) == 2
                first = await client.new_session("/")
                second = await client.new_session("/", agent="two")
                told = {info.session_id: info.meta async for info in client.list_sessions()}
                one, two = (told[session.id] or {} for session in (first, second))
                assert two == {"antiphon": {"agent": "two", "state": "idle", "clients": 1}}
                assert one["antiphon"]["agent"] in client.agents
        hub.kill()
        hub.restart()
        async with hub.client() as client:
            told = {info.session_id: info.meta async for info in client.list_sessions()}
            assert told[second.id] == {"antiphon": {"agent": "two"}}, "kept, and not open"
    finally:
        assert hub.end()[0] == 0


@VERSIONS
async def test_attach_through_a_hub_by_hand(tmp_path: Path, version: str) -> None:
    with served(tmp_path, "--acp-version", version, agent=AGENT) as hub:
        async with (
            asyncio.timeout(DEADLINE),
            hub.talk(**named("ann")) as ann,
            hub.talk(1, **named("bob", 1)) as bob,
            hub.talk(**named("eve")) as eve,
        ):
            id = (await ann.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
            ann.prompt(1, id, "ask")
            request, question = await asked(ann)
            await ann.update("state_update", state="requires_action")  # an agent asks first, and then says so
            for talk in (eve, bob):
                result = await talk.call("a", "_antiphon/attach", sessionId=id, historyPolicy="pending_only")
                assert result["state"] == "requires_action"
                copy, same = await asked(talk)
                assert same == question
            option = request["params"]["options"][0]["optionId"]
            bob.send(id=copy["id"], result={"outcome": {"outcome": "selected", "optionId": option}})
            for talk in (ann, eve):
                told = await talk.update("_antiphon_question", state="answered")
                assert told["by"] == {"clientId": client_id(bob), "name": "bob"}
                await talk.request("$/cancel_request")
            await eve.call("d", "_antiphon/detach", sessionId=id)
            await present(ann, "ann", "bob")


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "pieces"])
@pytest.mark.parametrize("early", [True, False], ids=["early", "late"])
async def test_however_an_agent_shows_a_prompt_it_is_signed(whole: bool, early: bool) -> None:
    """A v2 agent by hand, which tells the message before it takes the prompt or after, whole or in pieces."""
    agent = ByHand(whole=whole, early=early)
    hub = Hub({"hand": agent})
    async with (
        asyncio.timeout(DEADLINE),
        connect(hub, options=ClientOptions(name="ann")) as ann,
        connect(hub, options=ClientOptions(name="bob")) as bob,
    ):
        own = await ann.new_session("/")
        other = await bob.load_session(own.id, "/")
        await (await own.prompt("hello")).drained()
        await settled(other, "done")
        for session in (own, other):
            assert senders(session) == [("hello", "ann")]


async def test_the_agent_behind_a_hub_is_told_of_no_clients() -> None:
    """Invariant 10: to the agent there is one client, the hub."""
    agent = Agent("alone")
    told: list[str] = []

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        assert turn.prompt.sender is not None
        told.append(turn.prompt.sender.name)
        told.extend(present.name for present in turn.session.live.presence.clients())

    hub = Hub({"alone": agent})
    async with (
        asyncio.timeout(DEADLINE),
        connect(hub, options=ClientOptions(name="ann")) as ann,
        connect(hub, options=ClientOptions(name="bob")) as bob,
    ):
        own = await ann.new_session("/")
        await bob.load_session(own.id, "/")
        await (await own.prompt("hello")).drained()
        assert told == ["antiphon-hub"] * 2
        assert senders(own) == [("hello", "ann")]
