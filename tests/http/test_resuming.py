"""A stream that is cut where nothing is kept of it any more goes on from the journal, in v1 as in v2."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from antiphon import Agent
from antiphon.hub import Hub
from antiphon.remote.stream_router import StreamBounds
from tests.http.raw import DEADLINE, Events, Raw
from tests.http.serving import agent_at_hand
from tests.http.test_streams import numbers, texts
from tests.requirements.marks import requirement

pytestmark = pytest.mark.parametrize("version", [1, 2])

SEQ: dict[str, Any] = {"_meta": {"antiphon": {"seq": True}}}
TOLD: dict[str, Any] = {"_meta": {"antiphon": {"seq": True, "turnComplete": True}}}
NOTHING_KEPT = StreamBounds(window=1)


def is_end(frame: Any, version: int, id: str) -> bool:
    """Whether a turn is over with it: v1 answers its prompt, v2 tells it by the state."""
    if version == 1:
        return frame.get("id") == id and "method" not in frame
    return bool(frame.get("params", {}).get("update", {}).get("state") == "idle")


async def read_turn(events: Events, version: int, id: str, *, of: int = 1) -> None:
    """To its end, which is the last of so many."""
    for _ in range(1 if version == 1 else of):
        await events.frame(lambda frame: is_end(frame, version, id))


def in_journal(frames: list[Any]) -> list[Any]:
    """Without what is told beside the journal, which is told again."""
    updates = [frame for frame in frames if frame.get("method") == "session/update"]
    beside = [update for update in updates if "antiphon" not in update["params"].get("_meta", {})]
    return [frame for frame in frames if frame not in beside]


async def tell(raw: Raw, session: str, first: Events, version: int) -> None:
    """A session of some turns, read to its end."""
    for id, text in (("p1", "blocks 3"), ("p2", "stream 4"), ("p3", "hi")):
        await raw.prompt(session, text, id)
        await read_turn(first, version, id)


def behind_a_hub(agent: Agent) -> Agent:
    return Hub({"echo": agent}, version=1)


@requirement("HTTP-20")
@pytest.mark.parametrize("behind", [lambda agent: agent, behind_a_hub], ids=["agent", "v1 agent, hub"])
async def test_from_every_event_the_rest_is_the_same(version: int, behind: Callable[[Agent], Agent]) -> None:
    at, count = 0, 1
    at_hand = agent_at_hand(behind=behind, bounds=NOTHING_KEPT)
    async with at_hand as (_, server, _), asyncio.timeout(4 * DEADLINE):
        while at < count:
            raw = Raw(server.port)
            await raw.initialize(version, **TOLD)
            async with raw.stream() as own:
                session = await raw.new_session(own)
                async with raw.stream(session) as first:
                    await tell(raw, session, first, version)
                    told = [event for event in first.seen if event.data]
                    count = len(told)
                    expected = in_journal([json.loads(event.data) for event in told[at + 1 :] if event.data])
                    async with raw.stream(session, last=told[at].id) as again:
                        assert again.status == 200, told[at].id
                        while in_journal(again.frames) != expected:
                            assert len(in_journal(again.frames)) < len(expected), told[at].id
                            await again.next()
                        await raw.prompt(session, "and on", "p4")
                        await read_turn(again, version, "p4")
                        assert texts(again.updates[-3:]) == "heard and on"
            at += 1
    assert count > 10


@requirement("HTTP-20")
async def test_in_the_midst_of_a_turn(version: int) -> None:
    async with agent_at_hand(bounds=StreamBounds(window=1000)) as (_, raw, go), asyncio.timeout(DEADLINE):
        await raw.initialize(version, **SEQ)
        async with raw.stream() as own:
            session = await raw.new_session(own)
            async with raw.stream(session) as first:
                await raw.prompt(session, "stream 200 20", "p1")
                while len(first.updates) < 30:
                    await first.next()
                last, read = first.seen[-1].id, first.updates
                await read_turn(first, version, "p1")  # it was all sent, and only 30 of it got through
                await raw.prompt(session, "wait", "p2")
                await first.frame(lambda frame: "waiting" in str(frame))
            async with raw.stream(session, last=last) as again:
                await again.frame(lambda frame: "waiting" in str(frame))
                assert texts(read + again.updates) == f"{numbers(200, 20)}waiting"
                answered = [frame["id"] for frame in again.frames if "result" in frame]
                assert answered == ["p1" if version == 1 else "p2"], "where a turn is not over, v1 has none"
                go.set()
                await read_turn(again, version, "p2")
                assert texts(read + again.updates) == f"{numbers(200, 20)}waitingwent on"
                whole = [beside(params) for params in read + again.updates]
                seqs = [seq for seq in whole if seq is not None]
                assert seqs == sorted(set(seqs)), "each of them once, in order"


def beside(params: Any) -> tuple[int, float] | None:
    ours = params.get("_meta", {}).get("antiphon", {})
    return (ours["seq"], ours.get("part", float("inf"))) if "seq" in ours else None


@requirement("HTTP-20")
async def test_cut_again_and_again_while_it_goes_on(version: int) -> None:
    async with agent_at_hand(bounds=NOTHING_KEPT) as (_, raw, _), asyncio.timeout(DEADLINE):
        await raw.initialize(version, **SEQ)
        async with raw.stream() as own:
            session = await raw.new_session(own)
            async with raw.stream(session) as first:
                await raw.prompt(session, "stream 500 1000", "p")
                await first.frame(lambda frame: "0x" in str(frame))
            read, last = list(first.updates), first.seen[-1].id
            cuts = 0
            over = False
            while not over:
                async with raw.stream(session, last=last) as again:
                    assert again.status == 200
                    for _ in range(40):
                        await again.next()
                        over = over or any(is_end(frame, version, "p") for frame in again.frames[-1:])
                        if over:
                            break
                read += again.updates
                last = again.seen[-1].id
                cuts += 1
            assert cuts > 10
            assert texts(read) == numbers(500, 1000)


@requirement("HTTP-20")
async def test_an_answer_that_was_lost_long_ago_comes_once(version: int) -> None:
    async with agent_at_hand(bounds=StreamBounds(window=2000)) as (_, raw, _), asyncio.timeout(DEADLINE):
        await raw.initialize(version, **SEQ)
        async with raw.stream() as own:
            session = await raw.new_session(own)
            async with raw.stream(session) as first:
                await raw.prompt(session, "hi", "p1")
                await first.frame(lambda frame: "heard hi" in str(frame))
                last = first.seen[-1].id
                if version == 1:
                    await first.answer("p1")
                config = {"sessionId": session, "configId": "none", "value": "x"}
                await raw.post({"id": "c", "method": "session/set_config_option", "params": config}, session)
                await first.frame(lambda frame: frame.get("id") == "c")
                await raw.prompt(session, "stream 300 50", "p2")
                await read_turn(first, version, "p2")
            async with raw.stream(session, last=last) as again:
                await read_turn(again, version, "p2", of=2)
                answered = [frame["id"] for frame in again.frames if "id" in frame]
                assert answered == (["p1", "c", "p2"] if version == 1 else ["c", "p2"])


@requirement("HTTP-20")
async def test_a_question_is_asked_again_where_the_journal_is_gone_through(version: int) -> None:
    async with agent_at_hand(bounds=StreamBounds(window=600)) as (_, raw, _), asyncio.timeout(DEADLINE):
        await raw.initialize(version, **SEQ)
        async with raw.stream() as own:
            session = await raw.new_session(own)
            async with raw.stream(session) as first:
                await raw.prompt(session, "stream 50 20", "p1")
                await read_turn(first, version, "p1")
                last = next(event.id for event in first.seen if event.data and "-" in event.id)
                await raw.prompt(session, "ask", "p2")
                lost = await first.frame(lambda frame: frame.get("method") == "session/request_permission")
            async with raw.stream(session, last=last) as again:
                asked = await again.frame(lambda frame: frame.get("method") == "session/request_permission")
                assert asked["id"] != lost["id"]
                assert not [frame for frame in again.frames if frame.get("method") == "$/cancel_request"], (
                    "nobody takes back what was never read"
                )
                outcome = {"outcome": {"outcome": "cancelled"}}
                assert (await raw.post({"id": asked["id"], "result": outcome}, session)).status == 202
                await read_turn(again, version, "p2")


@requirement("HTTP-20")
async def test_a_question_that_was_read_is_taken_back(version: int) -> None:
    async with agent_at_hand(bounds=NOTHING_KEPT) as (_, raw, _), asyncio.timeout(DEADLINE):
        await raw.initialize(version, **SEQ)
        async with raw.stream() as own:
            session = await raw.new_session(own)
            async with raw.stream(session) as first:
                await raw.prompt(session, "ask", "p")
                read = await first.frame(lambda frame: frame.get("method") == "session/request_permission")
                last = first.seen[-1].id
                await raw.prompt(session, "stream 20 20", "p2")
                answer = {"id": read["id"], "result": {"outcome": {"outcome": "cancelled"}}}
                await raw.post(answer, session)
                await read_turn(first, version, "p2", of=2)
            async with raw.stream(session, last=last) as again:
                await read_turn(again, version, "p2", of=2)
                assert texts(again.updates).endswith(numbers(20, 20))


@requirement("HTTP-20")
async def test_what_cannot_be_gone_on_from_is_refused(version: int) -> None:
    async with agent_at_hand(bounds=NOTHING_KEPT) as (_, raw, _), asyncio.timeout(DEADLINE):
        await raw.initialize(version)  # without numbers there is no place in the journal
        async with raw.stream() as own:
            session = await raw.new_session(own)
            async with raw.stream(session) as first:
                await raw.prompt(session, "stream 20 20", "p")
                await read_turn(first, version, "p")
                early = first.seen[3].id
            async with raw.stream(session, last=early) as again:
                assert again.status == 409, "not silently from here on"
