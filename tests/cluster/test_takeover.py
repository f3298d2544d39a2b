"""The owner of a session dies, or is paused: another hub takes the session over, and nothing is lost."""

from __future__ import annotations

import asyncio
import time

from tests.cluster.members import agree, members, says
from tests.cluster.stand import LEASE, ClusterHub, Stand, note
from tests.faults.hub_checks import Kept, read_kept
from tests.faults.hub_client import Participant


async def _taken_over(stand: Stand, session_id: str, gone: ClusterHub, began: float) -> ClusterHub:
    owner = await stand.owned(session_id, not_by=gone)
    note(f"takeover after {time.monotonic() - began:.1f} s with a lease of {LEASE} s")
    return owner


def _interrupted(kept: Kept) -> int:
    """How many turns ended as interrupted."""
    return sum(
        update.get("sessionUpdate") == "state_update" and update.get("stopReason") == "interrupted"
        for update in kept.updates.values()
    )


async def _goes_on(stand: Stand, session_id: str, there: list[Participant], text: str) -> None:
    """A prompt of each client comes to its end, and all agree."""
    for number, each in enumerate(there):
        each.prompt(session_id, f"{text} {number}", cancel_after=None)
    for number, each in enumerate(there):
        await each.finish()
        assert each.outcomes[f"{text} {number}"] == "end_turn"
    await agree(stand, session_id, there)
    heard = stand.heard_by_agents()
    assert [heard.count(f"{text} {number}") for number in range(len(there))] == [1] * len(there)


async def test_a_killed_owner_is_replaced_and_the_cut_turn_ends_once_for_everybody(stand: Stand) -> None:
    a, b, c = stand.hubs
    async with members((a, "v2"), (b, "v2"), (b, "v1"), (c, "proposed")) as (session_id, there):
        first, cut, *_ = there
        cut.prompt(session_id, "wait", cancel_after=None)
        for each in there:
            await says(each.sessions[session_id], "waiting")
        there[2].prompt(session_id, "say what waited", cancel_after=None)
        await there[3].sessions[session_id].queue.add("say what was queued")
        a.process.kill()
        began = time.monotonic()
        owner = await _taken_over(stand, session_id, a, began)
        await cut.finish()
        assert cut.outcomes["wait"] == "failed: interrupted"
        note(f"cut turn ended after {time.monotonic() - began:.1f} s")
        for each in there[1:]:
            await says(each.sessions[session_id], "heard say what was queued")
        await there[2].finish()
        assert there[2].outcomes["say what waited"] == "end_turn"
        assert owner in (b, c)
        await a.heal()
        await first.client.link.connected()
        await _goes_on(stand, session_id, there, "say after the kill")
        kept = await agree(stand, session_id, there)
        assert kept.ends["wait"] == "failed: interrupted"
        assert sum(turn == "failed: interrupted" for turn in kept.ends.values()) == 1


async def test_an_idle_session_of_a_killed_owner_is_taken_over_with_the_next_prompt(stand: Stand) -> None:
    a, b, c = stand.hubs
    async with members((a, "v2"), (b, "v2"), (c, "v1")) as (session_id, there):
        await _goes_on(stand, session_id, there, "say before")
        a.process.kill()
        began = time.monotonic()
        there[1].prompt(session_id, "say first after", cancel_after=None)
        there[2].prompt(session_id, "say second after", cancel_after=None)
        for each in there[1:]:
            await each.finish()
        note(f"prompt of an idle session ended {time.monotonic() - began:.1f} s after the kill")
        assert there[1].outcomes["say first after"] == "end_turn"
        assert there[2].outcomes["say second after"] == "end_turn"
        await a.heal()
        await there[0].client.link.connected()
        await agree(stand, session_id, there)


async def test_an_owner_that_was_paused_comes_back_as_a_follower(stand: Stand) -> None:
    a, b, c = stand.hubs
    async with members((a, "v2"), (a, "v1"), (b, "v2"), (c, "v1")) as (session_id, there):
        there[2].prompt(session_id, "wait", cancel_after=None)
        for each in there:
            await says(each.sessions[session_id], "waiting")
        a.pause()
        began = time.monotonic()
        await _taken_over(stand, session_id, a, began)
        there[3].prompt(session_id, "say while it is paused", cancel_after=None)
        await there[3].finish()
        assert there[2].outcomes["wait"] == "failed: interrupted"
        a.go_on()
        for each in there[:2]:  # they stay attached and see the truth
            await says(each.sessions[session_id], "heard say while it is paused")
        assert there[0].client.lost is None
        await _goes_on(stand, session_id, there, "say after the pause")
        owner = await stand.owner(session_id)
        assert owner in (b, c)


async def test_a_paused_owner_passes_on_what_its_clients_ask_when_it_comes_back(stand: Stand) -> None:
    a, b, _ = stand.hubs
    async with members((a, "v2"), (a, "v1"), (b, "v2")) as (session_id, there):
        a.pause()
        for number, each in enumerate(there):  # the first two wait in the sockets of a hub that is not owner
            each.prompt(session_id, f"say in a pause {number}", cancel_after=None)
        await there[2].finish()
        a.go_on()
        for number, each in enumerate(there):
            await each.finish()
            assert each.outcomes[f"say in a pause {number}"] == "end_turn"
        await _goes_on(stand, session_id, there, "say after the idle pause")
        assert await stand.owner(session_id) is b


async def test_a_paused_owner_passes_on_changes_of_the_queue_when_it_comes_back(stand: Stand) -> None:
    a, b, _ = stand.hubs
    async with members((a, "v2"), (b, "v2")) as (session_id, there):
        queue = there[0].sessions[session_id].queue
        a.pause()
        asked = [
            asyncio.ensure_future(queue.add("say what was added")),
            asyncio.ensure_future(queue.resume()),
        ]
        there[1].prompt(session_id, "say in a pause", cancel_after=None)
        await there[1].finish()
        a.go_on()
        await asyncio.gather(*asked)
        for each in there:
            await says(each.sessions[session_id], "heard say what was added")
        kept = await agree(stand, session_id, there)
        assert kept.queued["say what was added"] == 1
        assert stand.heard_by_agents().count("say what was added") == 1


async def test_an_owner_that_is_stopped_ends_its_turn_and_hands_the_session_over(stand: Stand) -> None:
    a, b, c = stand.hubs
    async with members((b, "v2"), (c, "v2")) as (session_id, there):
        assert await stand.owner(session_id) is b
        there[1].prompt(session_id, "stream 30 10 0.05", cancel_after=None)
        await says(there[1].sessions[session_id], "0 ")
        await there[1].sessions[session_id].queue.add("say what was queued")
        ending = asyncio.ensure_future(b.process.end())
        began = time.monotonic()
        await there[1].finish()
        assert there[1].outcomes["stream 30 10 0.05"] == "end_turn"
        await says(there[1].sessions[session_id], "heard say what was queued")
        note(f"handed over {time.monotonic() - began:.1f} s after SIGTERM")
        await ending
        assert await stand.owner(session_id) in (a, c)
        await b.heal()
        await there[0].client.link.connected()
        await agree(stand, session_id, there)


async def test_an_open_question_is_closed_once_when_its_hub_dies(stand: Stand) -> None:
    a, b, c = stand.hubs
    async with (
        members(
            (a, "v2"),
        ) as (session_id, there),
        b.talk(2) as asked,
        c.talk(1) as also,
    ):
        await there[0].leave()
        await asked.call("r", "session/resume", sessionId=session_id, cwd="/", mcpServers=[])
        await also.call("r", "session/load", sessionId=session_id, cwd="/", mcpServers=[])
        asked.prompt("p", session_id, "ask")
        for talk in (asked, also):
            await talk.request("session/request_permission")
        a.process.kill()
        for talk in (asked, also):
            await talk.until(lambda frame: frame.get("method") == "$/cancel_request")
        also.prompt("next", session_id, "say after the question")
        await also.answer_to("next")
        async with stand.store() as store:
            kept = await read_kept(store, session_id)  # each question was closed once
        assert kept.ends["ask"] == "failed: interrupted"
        assert kept.ends["say after the question"] == "end_turn"
