"""What comes over which stream, who may read it, and how it goes on where it was cut."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.client import connect
from antiphon.remote.stream_router import StreamBounds
from tests.http.raw import DEADLINE, NEW, Events, Raw
from tests.http.serving import Links, agent_at_hand, hub_at_hand
from tests.requirements.marks import requirement

SEQ = {"_meta": {"antiphon": {"seq": True}}}


def texts(updates: list[Any]) -> str:
    said: list[str] = []
    for update in (params["update"] for params in updates):
        if update["sessionUpdate"] == "agent_message_chunk":
            said.append(update["content"]["text"])
        elif update["sessionUpdate"] == "agent_message":
            said += [block["text"] for block in update["content"]]
    return "".join(said)


def numbers(count: int, size: int = 0) -> str:
    return "".join(f"{number}{'x' * size} " for number in range(count))


@requirement("HTTP-10", "HTTP-11")
@pytest.mark.parametrize("version", [1, 2])
async def test_each_message_comes_over_its_stream(version: int) -> None:
    async with hub_at_hand() as (_, raw, _):
        await raw.initialize(version)
        async with raw.stream() as own:
            one, two = await raw.new_session(own), await raw.new_session(own)
            async with raw.stream(one) as first, raw.stream(two) as second:
                await raw.prompt(one, "to the one", "p1")
                await raw.prompt(two, "to the other", "p2")
                for events, session, id in ((first, one, "p1"), (second, two, "p2")):
                    await events.answer(id)
                    if version == 2:
                        await events.idle()
                    assert {params["sessionId"] for params in events.updates} == {session}
                assert (texts(first.updates), texts(second.updates)) == (
                    "heard to the one",
                    "heard to the other",
                )
                assert [frame["id"] for frame in own.frames] == ["new", "new"]


@requirement("HTTP-11")
async def test_a_load_is_answered_on_the_connections_stream_and_a_resume_on_the_sessions() -> None:
    async with hub_at_hand() as (hub, raw, _):
        async with connect(f"ws://127.0.0.1:{hub.port}/acp", token=hub.token) as client:
            session = (await client.new_session("/")).id
        await raw.initialize(1)
        params = {"sessionId": session, **NEW}
        async with raw.stream() as own, raw.stream(session) as events:
            await raw.post({"id": "l", "method": "session/load", "params": params}, session)
            await own.answer("l")
            await raw.post({"id": "r", "method": "session/resume", "params": params}, session)
            await events.answer("r")


@requirement("HTTP-09")
@pytest.mark.parametrize("named", [True, False])
async def test_a_permission_is_answered_over_http(named: bool) -> None:
    """Also without the header of its session: the connection knows where it asked."""
    async with hub_at_hand() as (_, raw, _):
        await raw.initialize()
        async with raw.stream() as own:
            session = await raw.new_session(own)
            async with raw.stream(session) as events:
                await raw.prompt(session, "ask")
                asked = await events.frame(lambda frame: frame.get("method") == "session/request_permission")
                chosen = next(o for o in asked["params"]["options"] if o["kind"] == "allow_once")
                outcome = {"outcome": {"outcome": "selected", "optionId": chosen["optionId"]}}
                answer = {"id": asked["id"], "result": outcome}
                assert (await raw.post(answer, "another")).status == 400
                assert (await raw.post(answer, session if named else None)).status == 202
                await events.idle()
                assert texts(events.updates) == "allowed: True"


@requirement("HTTP-10")
async def test_a_stream_has_one_receiver() -> None:
    async with hub_at_hand() as (_, raw, _):
        await raw.initialize()
        async with raw.stream() as own:
            session = await raw.new_session(own)
            async with raw.stream(session), raw.stream() as again, raw.stream(session) as twice:
                assert (again.status, twice.status) == (409, 409)


@requirement("HTTP-10")
async def test_whoever_comes_back_takes_its_stream_over() -> None:
    async with hub_at_hand() as (_, raw, _):
        await raw.initialize()
        async with raw.stream() as own:
            session = await raw.new_session(own)
            async with raw.stream(session) as before:
                last = (await before.next()).id
                async with raw.stream(session, last=last) as after:
                    assert after.status == 200
                    while await before.chunk():
                        pass  # it ends
                    await raw.prompt(session, "hi")
                    await after.idle()


@requirement("HTTP-13")
async def test_nothing_to_say_is_said_by_comments() -> None:
    async with agent_at_hand(bounds=StreamBounds(keep_alive=0.02)) as (_, raw, _):
        await raw.initialize()
        async with asyncio.timeout(DEADLINE), raw.stream() as own:
            assert [await own.chunk() for _ in range(3)] == [b"id: 0\n\n", b":\n\n", b":\n\n"]
            await raw.post({"id": 1, "method": "session/list", "params": {}})
            while (chunk := await own.chunk()) == b":\n\n":
                pass
            assert chunk.startswith(b"id: 1\ndata: {")
            assert chunk.endswith(b"}\n\n")


@requirement("HTTP-15")
async def test_delete_ends_the_connection_and_the_session_goes_on() -> None:
    async with hub_at_hand() as (hub, raw, go):
        await raw.initialize()
        async with raw.stream() as own:
            session = await raw.new_session(own)
            async with raw.stream(session) as events:
                await raw.prompt(session, "wait")
                await events.frame(lambda frame: "waiting" in str(frame))
                assert (await raw.ask("DELETE")).status == 202
                while await own.chunk():
                    pass
        assert (await raw.ask("DELETE")).status == 404
        assert (await raw.post({"method": "x"})).status == 404
        go.set()
        async with connect(f"ws://127.0.0.1:{hub.port}/acp", token=hub.token) as client:
            joined = await client.load_session(session, "/")
            if joined.turn is not None:
                await joined.turn.drained()
            assert joined.messages[-1].text == "went on"


@requirement("WS-04", "HTTP-15")
async def test_a_connection_that_nobody_reads_from_is_freed() -> None:
    links = Links()
    bounds = StreamBounds(stall=0.1, keep_alive=0.05)
    async with agent_at_hand(links, bounds=bounds) as (agent, raw, _), asyncio.timeout(DEADLINE):
        await raw.initialize()
        async with raw.stream() as own:
            session = await raw.new_session(own)
            for _ in range(6):  # for three times as long it is read from, and stays
                assert await own.chunk() == b":\n\n"
        await links.gone.get()
        assert (await raw.post({"method": "x"})).status == 404
        assert agent.find(session) is not None, "the session lives on"


# --- cut, and gone on with ------------------------------------------------------------------------------


def is_over(updates: list[Any]) -> bool:
    return any(params["update"].get("state") == "idle" for params in updates)


async def read_some(raw: Raw, session: str, count: int, last: str | None) -> Events:
    """Some events, and then the stream is cut."""
    async with raw.stream(session, last=last) as events:
        assert events.status == 200
        while len(events.seen) < count and not is_over(events.updates):
            await events.next()
    return events


@requirement("HTTP-20")
async def test_a_stream_goes_on_behind_the_last_event_that_was_read() -> None:
    async with hub_at_hand() as (_, raw, _):
        await raw.initialize()
        async with raw.stream() as own:
            session = await raw.new_session(own)
            await raw.prompt(session, "stream 100")
            updates: list[Any] = []
            last = None
            while not is_over(updates):
                events = await read_some(raw, session, 7, last)
                last = events.seen[-1].id
                updates += events.updates
            assert texts(updates) == numbers(100)


@requirement("HTTP-20")
async def test_a_large_event_comes_whole_also_where_the_stream_was_cut_within_it() -> None:
    async with agent_at_hand(bounds=StreamBounds(window=1 << 25)) as (_, raw, _), asyncio.timeout(DEADLINE):
        await raw.initialize()
        async with raw.stream() as own:
            session = await raw.new_session(own)
            await raw.prompt(session, "stream 3 3000000")
            async with raw.stream(session) as cut:
                await cut.reader.readexactly(1_000_000)
            async with raw.stream(session, last="0") as events:
                await events.idle()
        assert texts(events.updates) == numbers(3, 3_000_000)
