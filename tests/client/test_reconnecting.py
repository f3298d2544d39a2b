"""A client whose link is cut comes back by itself, and its turns go on as if nothing had happened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import Client, Link, LinkState, Permission, Permissions, Reconnect, connect
from antiphon.errors import LinkLost
from antiphon.remote.websocket_server import websocket_server
from antiphon.transports.base import Transport
from tests.agent.talk import client as another_client
from tests.client.cutting import Way, becomes, way_to
from tests.client.driving import DEADLINE, WAYS, ByHand
from tests.connection.scripted import V1_ANSWER, V2_ANSWER
from tests.options import connect_options

SOON = Reconnect(first=0.01, longest=0.05, patience=10.0)
EVERY_WAY = pytest.mark.parametrize("way_of", WAYS)


class Worker:
    """An agent that counts, and counts what it is asked to do."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.answers: list[bool] = []
        self.go = asyncio.Event()
        self.began = asyncio.Event()
        self.agent = Agent("counts")
        self.agent.on_prompt(self.work)

    async def work(self, turn: AgentTurn) -> str | None:
        self.prompts.append(turn.prompt.text)
        self.began.set()
        word, _, number = turn.prompt.text.partition(" ")
        if word == "ask":
            async with turn.tool_call("Touch", kind="edit") as call:
                self.answers.append(await call.request_permission())
        if word == "wait":
            await self.go.wait()
        async with turn.message() as message:
            for count in range(int(number or 3)):
                await message.write(f"{count} ")
                if count % 10 == 0:
                    await asyncio.sleep(0)
        return None


def counted(upto: int) -> str:
    return "".join(f"{number} " for number in range(upto))


@asynccontextmanager
async def reached(
    worker: Worker, way_of: str = "v2", *, gate: Any = None, reconnect: Reconnect | bool = SOON, **asked: Any
) -> AsyncIterator[tuple[Client, Way]]:
    async with (
        asyncio.timeout(DEADLINE),
        worker.agent.serving(),
        websocket_server(worker.agent.serve, check=gate) as server,
        way_to(f"ws://127.0.0.1:{server.port}/acp") as way,
        connect(way.address, reconnect=reconnect, **connect_options(**{**WAYS[way_of], **asked})) as client,
    ):
        yield client, way


async def back(client: Client, way: Way, links: int) -> None:
    """Until it came back so often."""
    async for state in client.link.changes():
        if state is LinkState.CONNECTED and way.links >= links:
            return


@EVERY_WAY
async def test_a_turn_goes_on_where_its_link_was_cut(way_of: str) -> None:
    worker = Worker()
    async with reached(worker, way_of) as (client, way):
        session = await client.new_session("/")
        turn = await session.prompt("count 2000")
        heard = 0
        async for _ in turn.updates():
            heard += 1
            if heard in (100, 300, 900):
                way.cut()
        end = await turn.drained()
        assert end.stop_reason == "end_turn"
        assert end.cut is None
        assert turn.text == counted(2000)
        assert [message.text for message in session.messages] == ["count 2000", counted(2000)]
        assert (await (await session.prompt("count 5")).drained()).stop_reason == "end_turn"
        assert session.messages[-1].text == counted(5)
        assert worker.prompts == ["count 2000", "count 5"]
        assert way.links > 1


@EVERY_WAY
async def test_cut_at_any_byte_nothing_is_missing_and_nothing_there_twice(way_of: str) -> None:
    worker = Worker()
    async with reached(worker, way_of) as (client, way):
        session = await client.new_session("/")
        cuts = iter([120, 400, 777, 1500, 1501, 2903, 5207, 8111, 12_001, 20_011])

        def next_cut() -> None:
            upto = next(cuts, None)
            if upto is not None:
                way.watch = lambda seen: upto if len(seen) >= upto else None

        next_cut()
        for number in range(6):
            turn = await session.prompt(f"count {200 + number}")
            assert (await turn.drained()).stop_reason == "end_turn"
            next_cut()
        texts = [message.text for message in session.messages]
        said = [[f"count {200 + number}", counted(200 + number)] for number in range(6)]
        assert texts == [text for pair in said for text in pair]
        assert worker.prompts == texts[::2]


@EVERY_WAY
async def test_a_prompt_whose_answer_was_lost_is_taken_once(way_of: str) -> None:
    worker = Worker()
    async with reached(worker, way_of) as (client, way):
        session = await client.new_session("/")
        way.watch = lambda seen: 0  # whatever comes next does not arrive
        turn = await session.prompt("count 50")
        assert (await turn.drained()).stop_reason == "end_turn"
        assert turn.text == counted(50)
        assert [message.text for message in session.messages] == ["count 50", counted(50)]
        assert worker.prompts == ["count 50"]


@EVERY_WAY
async def test_what_is_prompted_or_begun_while_the_agent_is_away_waits(way_of: str) -> None:
    worker = Worker()
    async with reached(worker, way_of) as (client, way):
        session = await client.new_session("/")
        way.closed = True
        way.cut()
        await becomes(client, LinkState.RECONNECTING)
        assert client.link.reason
        prompting = asyncio.ensure_future(session.prompt("count 9"))
        beginning = asyncio.ensure_future(client.new_session("/"))
        with pytest.raises(LinkLost):
            await client.archive(session.id)  # nothing says that it may be asked twice
        way.closed = False
        await client.link.connected()
        assert (await (await prompting).drained()).stop_reason == "end_turn"
        assert [message.text for message in session.messages] == ["count 9", counted(9)]
        assert (await beginning).id != session.id


@EVERY_WAY
async def test_what_is_queued_while_the_agent_is_away_is_there_once(way_of: str) -> None:
    worker = Worker()
    async with reached(worker, way_of) as (client, way):
        session = await client.new_session("/")
        if not session.queue.available:
            return  # there is no queue for such a client
        way.closed = True
        way.cut()
        await becomes(client, LinkState.RECONNECTING)
        queueing = asyncio.ensure_future(session.queue.add("count 9"))
        await asyncio.sleep(0)  # it is begun by its first step
        way.closed = False
        turn = await (await queueing).accepted()
        assert (await turn.drained()).stop_reason == "end_turn"
        assert turn.text == counted(9)
        assert worker.prompts == ["count 9"]


@EVERY_WAY
async def test_a_question_is_asked_again_and_never_twice_at_once(way_of: str) -> None:
    worker, asked, at_once = Worker(), 0, 0

    async def ask(permission: Permission) -> Any:
        nonlocal asked, at_once
        asked += 1
        at_once += 1
        assert at_once == 1
        try:
            if asked < 3:
                client_way.cut()
                await asyncio.Event().wait()
            return permission.allow()
        finally:
            await asyncio.sleep(0.02)  # it takes its time to leave
            at_once -= 1

    async with reached(worker, way_of, answers=Permissions(ask=ask)) as (client, client_way):
        session = await client.new_session("/")
        turn = await session.prompt("ask 2")
        assert (await turn.drained()).stop_reason == "end_turn"
        assert worker.answers == [True]
        assert asked == 3
        assert not session.questions


@EVERY_WAY
async def test_cut_again_while_it_comes_back(way_of: str) -> None:
    worker = Worker()
    async with reached(worker, way_of) as (client, way):
        session = await client.new_session("/")
        turn = await session.prompt("wait 300")
        await worker.began.wait()
        way.cut()
        worker.go.set()
        for upto in (10, 200, 900, 1800, 4000):  # in the upgrade, in `initialize`, in what is replayed
            way.watch = lambda seen, upto=upto: upto if len(seen) >= upto else None  # type: ignore[misc]
            again = asyncio.ensure_future(way.came(way.links + 1))
            await asyncio.wait([again, asyncio.ensure_future(turn.drained())], return_when="FIRST_COMPLETED")
            again.cancel()
        assert (await turn.drained()).stop_reason == "end_turn"
        assert turn.text == counted(300)
        assert [message.text for message in session.messages] == ["wait 300", counted(300)]


@EVERY_WAY
async def test_a_cancel_that_was_lost_is_sent_again(way_of: str) -> None:
    worker = Worker()
    async with reached(worker, way_of) as (client, way):
        session = await client.new_session("/")
        turn = await session.prompt("wait")
        await worker.began.wait()
        way.closed = True
        way.cut()
        await becomes(client, LinkState.RECONNECTING)
        await turn.cancel()
        way.closed = False
        assert (await turn.drained()).cancelled
        worker.began.clear()
        other = await session.prompt("wait")
        await worker.began.wait()
        worker.go.set()
        assert (await other.drained()).stop_reason == "end_turn"  # it was for that one turn


@EVERY_WAY
async def test_other_calls_under_way_fail(way_of: str) -> None:
    worker = Worker()
    async with reached(worker, way_of) as (client, way):
        await client.new_session("/")
        way.flows.clear()
        listing = asyncio.ensure_future(anext(client.list_sessions()))
        await asyncio.sleep(0)  # it is called
        way.cut()
        with pytest.raises(LinkLost):
            await listing
        way.flows.set()
        await client.link.connected()
        assert [info async for info in client.list_sessions()]


@EVERY_WAY
async def test_who_gives_up_says_why(way_of: str) -> None:
    worker, states = Worker(), list[LinkState]()

    def changed(link: Link) -> None:
        states.append(link.state)

    patience = Reconnect(first=0.01, patience=0.1)
    async with reached(worker, way_of, reconnect=patience, on_link=changed) as (client, way):
        session = await client.new_session("/")
        turn = await session.prompt("wait")
        await worker.began.wait()
        way.closed = True
        way.cut()
        end = await turn.drained()
        assert end.cut is not None
        assert "gave up after 0.1 s" in end.cut
        with pytest.raises(LinkLost, match="gave up"):
            await session.prompt("more")
        with pytest.raises(LinkLost, match="gave up"):
            await client.link.connected()
        assert client.link.state is LinkState.GONE
        assert states[0] is LinkState.RECONNECTING
        assert states[-1] is LinkState.GONE


async def test_who_is_not_let_in_any_more_does_not_try_again() -> None:
    worker, revoked, tries = Worker(), False, 0

    def gate(headers: Mapping[str, str]) -> tuple[int, str] | None:
        nonlocal tries
        tries += 1
        return (401, "No.") if revoked else None

    async with reached(worker, gate=gate) as (client, way):
        session = await client.new_session("/")
        turn = await session.prompt("wait")
        await worker.began.wait()
        revoked, tries = True, 0
        way.cut()
        assert "401" in ((await turn.drained()).cut or "")
        assert tries == 1


@pytest.mark.parametrize("moment", ["away", "reaching"])
async def test_leaving_meanwhile_ends_at_once(moment: str) -> None:
    worker, loop = Worker(), asyncio.get_running_loop()
    slow = Reconnect(first=60.0) if moment == "away" else SOON
    async with reached(worker, reconnect=slow) as (client, way):
        await client.new_session("/")
        if moment == "reaching":
            way.flows.clear()  # nobody answers the upgrade
        way.cut()
        await becomes(client, LinkState.RECONNECTING)
        if moment == "reaching":
            await way.came(2)
        left = loop.time()
    assert loop.time() - left < 1.0


async def test_without_reconnecting_a_lost_link_is_the_end() -> None:
    worker = Worker()
    async with reached(worker, reconnect=False) as (client, way):
        session = await client.new_session("/")
        turn = await session.prompt("wait")
        await worker.began.wait()
        way.cut()
        assert (await turn.drained()).cut is not None
        assert client.link.state is LinkState.GONE
        assert way.links == 1


async def test_a_session_that_is_gone_is_left_and_the_others_go_on() -> None:
    worker = Worker()
    async with reached(worker) as (client, way):
        doomed, other = await client.new_session("/"), await client.new_session("/")
        way.closed = True
        way.cut()
        async with another_client(worker.agent) as another:
            await another.call("delete", "session/delete", sessionId=doomed.id)
        way.closed = False
        await back(client, way, 2)
        assert client.sessions == [other]
        assert (await (await other.prompt("count 1")).drained()).stop_reason == "end_turn"


async def test_where_to_go_is_asked_at_each_attempt() -> None:
    worker = Worker()
    async with asyncio.timeout(DEADLINE), worker.agent.serving():
        async with websocket_server(worker.agent.serve) as first:
            found: list[tuple[str, str | None] | None] = []
            finding = Reconnect(first=0.01, find=lambda: found.pop(0))
            connecting = connect(f"ws://127.0.0.1:{first.port}/acp", reconnect=finding)
            client = await connecting.__aenter__()
            session = await client.new_session("/")
        async with websocket_server(worker.agent.serve) as second:
            found += [None, (f"ws://127.0.0.1:{second.port}/acp", "token")]
            turn = await session.prompt("count 4")
            assert (await turn.drained()).stop_reason == "end_turn"
            await connecting.__aexit__(None, None, None)


@pytest.mark.parametrize("version", [1, 2])
async def test_without_a_cursor_a_session_is_opened_again_and_told_once(version: int) -> None:
    agents: asyncio.Queue[ByHand] = asyncio.Queue()
    over = asyncio.Event()

    async def serve(transport: Transport) -> None:
        agents.put_nowait(ByHand(transport))
        await over.wait()

    async def begins() -> ByHand:
        agent = await agents.get()
        answer = dict(V1_ANSWER if version == 1 else V2_ANSWER)
        if version == 1:
            answer["agentCapabilities"] = {"loadSession": True}
        agent.send(id=(await agent.expect("initialize"))["id"], result=answer)
        return agent

    async with (
        asyncio.timeout(DEADLINE),
        websocket_server(serve) as server,
        way_to(f"ws://127.0.0.1:{server.port}/acp") as way,
    ):
        beginning = asyncio.ensure_future(begins())
        async with connect(way.address, version=version, reconnect=SOON) as client:
            agent = await beginning
            making = asyncio.ensure_future(client.new_session("/"))
            agent.send(id=(await agent.expect("session/new"))["id"], result={"sessionId": "s"})
            session = await making
            prompting = asyncio.ensure_future(session.prompt("go"))
            id = await agent.prompted()
            if version == 2:
                agent.takes(id, "u")
                agent.shows("u")
                agent.state("running")
            agent.say("half", "m")
            turn = await prompting
            async for message in turn.messages():
                assert message.text in ("go", "…", "half")
                break
            beginning = asyncio.ensure_future(begins())
            way.cut()
            assert (await turn.drained()).cut is not None  # nothing would give its outcome again
            agent = await beginning
            method = "session/load" if version == 1 else "session/resume"
            id = (await agent.expect(method))["id"]
            if version == 1:
                agent.told("user_message_chunk", messageId="u", content={"type": "text", "text": "go"})
            else:
                agent.shows("u")
            agent.say("half and whole", "m")
            if version == 2:
                agent.state("idle")
            agent.send(id=id, result={})
            await back(client, way, 2)
            assert [message.text for message in session.messages][1:] == ["half and whole"]
            assert session.turn is None
            prompting = asyncio.ensure_future(session.prompt("more"))
            id = await agent.prompted()
            if version == 1:
                agent.ends(id)
            else:
                agent.takes(id, "v")
                agent.shows("v")
                agent.state("running")
                agent.state("idle", stopReason="end_turn")
            assert (await (await prompting).drained()).stop_reason == "end_turn"
            over.set()


@pytest.mark.parametrize("way_of", ["v1", "v2"])
async def test_a_child_at_work_is_followed_on(way_of: str) -> None:
    worker, half, go = Worker(), asyncio.Event(), asyncio.Event()

    async def work(turn: AgentTurn) -> None:
        async with turn.subagent("Researcher") as child, child.message() as message:
            for number in range(40):
                await message.write(f"{number} ")
                if number == 20:
                    half.set()
                    await go.wait()

    worker.agent = Agent("boss")
    worker.agent.on_prompt(work)
    async with reached(worker, way_of) as (client, way):
        session = await client.new_session("/")
        turn = await session.prompt("go")
        await half.wait()
        while not (session.subagents and session.subagents[0].session.messages):
            await anext(session.events() if not session.subagents else session.subagents[0].session.events())
        way.cut()
        go.set()
        assert (await turn.drained()).stop_reason == "end_turn"
        child = session.subagents[0].session
        events = child.events()
        while [message.text for message in child.messages] != [counted(40)]:
            await anext(events)
