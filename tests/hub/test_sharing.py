"""One session, many voices: clients of every version at once, over WebSockets, with one agent behind them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import ClientSession, Permissions
from antiphon.schema import v2
from tests.hub.running import AGENT, DEADLINE, REHEARSE, SLOPPY, Served, served

VERSIONS = pytest.mark.parametrize("version", ["1", "2"])


def told(session: ClientSession) -> list[tuple[str, str]]:
    return [(str(message.type), message.text) for message in session.messages]


async def settled(session: ClientSession, text: str) -> None:
    """Until the session has said something and rests."""
    async with asyncio.timeout(DEADLINE):
        while True:
            events = session.events()
            if any(text in message.text for message in session.messages) and session.fold.turn is None:
                return
            async for event in events:
                if event.update is not None:
                    break


@VERSIONS
async def test_v1_v2_and_proposed_clients_of_one_session_read_the_same(tmp_path: Path, version: str) -> None:
    with served(tmp_path, "--acp-version", version, agent=AGENT) as hub:
        async with (
            hub.client(version=2) as first,
            hub.client(version=1) as second,
            hub.client(version="v2-proposed") as third,
        ):
            own = await first.new_session("/")
            others = [await client.load_session(own.id, "/") for client in (second, third)]
            async with asyncio.timeout(DEADLINE):
                turn = await own.prompt("stream 200")
                end = await turn.drained()
            assert end.stop_reason == "end_turn"
            for other in others:
                await settled(other, "199")
            said = "".join(f"{number} " for number in range(200))
            assert told(own) == [("user", "stream 200"), ("agent", said)]
            assert [told(other) for other in others] == [told(own)] * 2
            assert [m.message_id for m in others[1].messages] == [m.message_id for m in own.messages]


@VERSIONS
async def test_whoever_prompts_the_others_see_it(tmp_path: Path, version: str) -> None:
    with served(tmp_path, "--acp-version", version, agent=AGENT) as hub:
        async with hub.client(version=1) as first, hub.client(version=2) as second:
            one = await first.new_session("/")
            two = await second.load_session(one.id, "/")
            async with asyncio.timeout(DEADLINE):
                await (await two.prompt("say a")).drained()
                await settled(one, "heard say a")
                end = await (await one.prompt("say b")).drained()
            assert end.stop_reason == "end_turn"
            await settled(two, "heard say b")
            expected = [
                ("user", "say a"),
                ("agent", "heard say a"),
                ("user", "say b"),
                ("agent", "heard say b"),
            ]
            assert told(one) == told(two) == expected


@VERSIONS
async def test_who_joins_amid_a_turn_gets_what_was_and_what_comes(tmp_path: Path, version: str) -> None:
    with served(tmp_path, "--acp-version", version, agent=AGENT) as hub:
        async with hub.client(version=2) as first, hub.client(version=2) as second:
            own = await first.new_session("/")
            turn = await own.prompt("wait")
            await heard(own, "waiting")
            late = await second.load_session(own.id, "/")
            assert told(late) == [("user", "wait"), ("agent", "waiting")]
            assert late.turn is not None  # 13: it learns that a turn is open
            await late.cancel()  # the second client's cancel
            async with asyncio.timeout(DEADLINE):
                assert (await turn.drained()).cancelled
            await settled(late, "waiting")


async def heard(session: ClientSession, text: str) -> None:
    async with asyncio.timeout(DEADLINE):
        while not any(text in message.text for message in session.messages):
            async for event in session.events():
                if event.update is not None:
                    break


class Waits:
    """Decides when it is told to."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.over = asyncio.Event()
        self.choice: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def __call__(self, permission: Any) -> str:
        self.asked.set()
        try:
            return await self.choice
        finally:
            self.over.set()


@VERSIONS
@pytest.mark.parametrize("client", [1, 2])
async def test_a_question_goes_to_all_and_the_first_answer_ends_it(
    tmp_path: Path, version: str, client: int
) -> None:
    with served(tmp_path, "--acp-version", version, agent=AGENT) as hub:
        one, two = Waits(), Waits()
        async with (
            asyncio.timeout(DEADLINE),
            hub.client(version=client, answers=Permissions(ask=one)) as first,
            hub.client(version=2, answers=Permissions(ask=two)) as second,
        ):
            own = await first.new_session("/")
            other = await second.load_session(own.id, "/")
            turn = await own.prompt("ask")
            await one.asked.wait()
            await two.asked.wait()
            options = other.questions[0].permission
            assert options is not None
            two.choice.set_result(next(o.option_id for o in options.options if o.kind == "allow_once"))
            assert (await turn.drained()).stop_reason == "end_turn"
            assert turn.text == "allowed: True"
            await one.over.wait()  # its copy was withdrawn
            assert own.questions == []


async def test_a_question_waits_with_nobody_there_and_reaches_who_comes(tmp_path: Path) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        async with asyncio.timeout(DEADLINE):
            never = Waits()
            async with hub.client(answers=Permissions(ask=never)) as first:
                own = await first.new_session("/")
                await own.prompt("ask")
                await never.asked.wait()
            async with hub.client(answers=Permissions(allow="all")) as second:
                later = await second.load_session(own.id, "/")
                await settled(later, "allowed: True")


async def test_unattended_reject(tmp_path: Path) -> None:
    with served(tmp_path, "--unattended", "reject", agent=AGENT) as hub:
        async with asyncio.timeout(DEADLINE):
            async with hub.talk() as talk:
                session = (await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
                await talk.call(
                    "in", "_antiphon/inject", sessionId=session, content=[{"type": "text", "text": "wait"}]
                )
                await talk.update("agent_message", content=[{"type": "text", "text": "waiting"}])
                await talk.call(
                    "on", "_antiphon/inject", sessionId=session, content=[{"type": "text", "text": "ask"}]
                )
                talk.send(method="session/cancel", params={"sessionId": session})
                await talk.update("state_update", state="idle")
                talk.send(id="go", method="_antiphon/resume_queue", params={"sessionId": session})
            async with hub.client() as second:
                await settled(await second.load_session(session, "/"), "allowed: False")


@VERSIONS
async def test_prompts_of_two_clients_wait_in_one_queue(tmp_path: Path, version: str) -> None:
    with served(tmp_path, "--acp-version", version, agent=[*AGENT, "--store", str(tmp_path / "a.db")]) as hub:
        async with asyncio.timeout(DEADLINE), hub.talk(2) as one, hub.talk(1) as two:
            session = (await one.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
            await two.call("load", "session/load", sessionId=session, cwd="/", mcpServers=[])
            one.prompt("a", session, "wait")
            await one.answer_to("a")
            two.prompt("b", session, "say b", operationId="same")
            one.prompt("c", session, "say c")
            await one.until(lambda frame: "waiting" in str(frame))
            await one.call("l", "_antiphon/list_inject", sessionId=session)  # "c" is there before the cancel
            two.send(method="session/cancel", params={"sessionId": session})
            assert (await two.answer_to("b"))["result"]["stopReason"] == "cancelled"
            assert (await one.answer_to("c"))["error"]["code"] == -32800
            await one.update("state_update", state="idle", stopReason="cancelled")
            two.prompt("d", session, "say d")
            one.prompt("e", session, "say e")
            assert (await two.answer_to("d"))["result"]["stopReason"] == "end_turn"
            await one.answer_to("e")
            await one.update("state_update", state="idle", stopReason="end_turn")
            assert (tmp_path / "a.log").read_text().split("\n") == ["wait", "say d", "say e", ""]


@VERSIONS
async def test_a_turn_that_the_agent_opens_by_itself_goes_through(tmp_path: Path, version: str) -> None:
    with served(tmp_path, "--acp-version", version, agent=AGENT) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            session = await client.new_session("/")
            await (await session.prompt("speak")).drained()
            await settled(session, "by myself")


@VERSIONS
async def test_config_options_pass_through_and_everybody_hears(tmp_path: Path, version: str) -> None:
    with served(tmp_path, "--acp-version", version, agent=AGENT) as hub:
        async with asyncio.timeout(DEADLINE), hub.client(version=2) as one, hub.client(version=1) as two:
            own = await one.new_session("/")
            other = await two.load_session(own.id, "/")
            assert list(own.config) == ["model"]
            events = own.events()
            await other.set_config("model", "large")
            async for event in events:
                if isinstance(event.update, v2.ConfigOptionUpdate):
                    break
            assert own.config["model"].current_value == other.config["model"].current_value == "large"  # type: ignore[union-attr]


async def test_a_client_that_never_reads_costs_the_others_nothing(tmp_path: Path) -> None:
    with served(tmp_path, agent=REHEARSE) as hub:
        async with asyncio.timeout(DEADLINE), hub.talk() as deaf, hub.client() as client:
            session = await client.new_session("/")
            deaf.send(
                id="r",
                method="session/resume",
                params={"sessionId": session.id, "cwd": "/", "replayFrom": {"type": "start"}},
            )
            await deaf.answer_to("r")
            deaf.transport.pause()
            turn = await session.prompt("stream 20000")
            assert (await turn.drained()).stop_reason == "end_turn"
            assert turn.text.count("Sentence") == 20000
            deaf.transport.resume()
            await deaf.update("state_update", state="idle")
            assert deaf.text().count("Sentence") == 20000


@pytest.mark.parametrize("how", ["--v2", ""])
async def test_an_agent_with_bad_manners(tmp_path: Path, how: str) -> None:
    with served(tmp_path, agent=[*SLOPPY, "--early", *([how] if how else [])]) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            session = await client.new_session("/")
            events = session.events()
            while not session.commands:  # they come behind the answer, as the agent sent them
                await anext(events)
            assert [command.name for command in session.commands] == ["early"]  # type: ignore[union-attr]
            for word in ("no_ids", "unknown_kinds", "garbage", "stray_answers", "echo"):
                turn = await session.prompt(word)
                assert (await turn.drained()).stop_reason == "end_turn", word


async def test_several_agents_to_choose_from(tmp_path: Path) -> None:
    hub = Served(tmp_path, ["--agent", f"two={' '.join(SLOPPY)}", "--", *AGENT])
    try:
        async with asyncio.timeout(DEADLINE), hub.talk() as talk:
            result = talk.seen[0]["result"]["capabilities"]["_meta"]["antiphon"]["agents"]
            assert "two" in result
            chosen = {"antiphon": {"agent": "two"}}
            session = (await talk.call("n", "session/new", cwd="/", mcpServers=[], _meta=chosen))["sessionId"]
            talk.prompt("p", session, "echo")
            await talk.update("state_update", state="idle")
            assert talk.text() == "heard"
            talk.send(
                id="x",
                method="session/new",
                params={"cwd": "/", "mcpServers": [], "_meta": {"antiphon": {"agent": "three"}}},
            )
            assert (await talk.answer_to("x"))["error"]["code"] == -32602
    finally:
        assert hub.end()[0] == 0
