"""Parts of the cluster cannot reach each other: a hub and NATS, or NATS without one of its servers."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

import pytest

from tests.cluster.members import agree, members, says
from tests.cluster.nats_proxy import Link
from tests.cluster.stand import LEASE, ClusterHub, Stand, note
from tests.faults.hub_client import Participant

SHORT, LONG = LEASE / 3, 2.0 * LEASE + 1


async def _busy(session_id: str, there: list[Participant], name: str) -> None:
    """Every client prompts, and waits for a long turn before it."""
    there[-1].prompt(session_id, f"stream 40 10 0.05 {name}", cancel_after=None)
    for each in there:
        await says(each.sessions[session_id], "2 ")
    for number, each in enumerate(there):
        each.prompt(session_id, f"say {name} {number}", cancel_after=None)


async def _settled(stand: Stand, session_id: str, there: list[Participant], name: str) -> None:
    """Every prompt has come to an end, once, and all clients agree."""
    for number, each in enumerate(there):
        await each.finish()
        assert each.outcomes[f"say {name} {number}"] == "end_turn"
    kept = await agree(stand, session_id, there)
    assert set(kept.queued.values()) == {1}
    heard = stand.heard_by_agents()
    assert [heard.count(f"say {name} {number}") for number in range(len(there))] == [1] * len(there)


async def _part(hub: ClusterHub, link: Link, seconds: float) -> None:
    hub.proxy.set(link)
    await asyncio.sleep(seconds)  # the length of the fault
    hub.proxy.heal()


@pytest.mark.parametrize(
    ("link", "seconds"),
    [(Link.STALLED, SHORT), (Link.STALLED, LONG), (Link.BLACK_HOLE, LONG), (Link.CUT, LONG)],
)
async def test_an_owner_that_cannot_reach_nats_loses_nothing(
    stand: Stand, link: Link, seconds: float
) -> None:
    a, b, c = stand.hubs
    name = f"owner {link} {seconds:g}"
    async with members((a, "v2"), (a, "v1"), (b, "v2"), (c, "v1")) as (session_id, there):
        await _busy(session_id, there, name)
        await _part(a, link, seconds)
        began = time.monotonic()
        await _settled(stand, session_id, there, name)
        note(f"{name}: all settled {time.monotonic() - began:.1f} s after it was healed")


@pytest.mark.parametrize(("link", "seconds"), [(Link.CUT, SHORT), (Link.BLACK_HOLE, LONG)])
async def test_a_follower_that_cannot_reach_nats_catches_up(stand: Stand, link: Link, seconds: float) -> None:
    a, b, c = stand.hubs
    name = f"follower {link} {seconds:g}"
    async with members((a, "v2"), (b, "v2"), (b, "v1"), (c, "v2")) as (session_id, there):
        await _busy(session_id, there, name)
        await _part(b, link, seconds)
        await _settled(stand, session_id, there, name)
        assert await stand.owner(session_id) is a


async def _journal_leader(stand: Stand) -> str:
    """Return the server that leads the stream of a session that is streaming."""
    async with stand.store() as store:
        before = {each.name: each.messages for each in await store.status()}
        while True:
            for each in await store.status():
                if "journal" in each.name and each.messages > before[each.name] and each.leader is not None:
                    return each.leader


@pytest.mark.parametrize("who", ["any", "leader"])
async def test_a_nats_server_that_dies_in_a_turn_is_not_noticed(patient_stand: Stand, who: str) -> None:
    stand = patient_stand
    a, b, c = stand.hubs
    async with members((a, "v2"), (b, "v1"), (c, "v2")) as (session_id, there):
        await _busy(session_id, there, f"nats {who}")
        victim = stand.nats.named(await _journal_leader(stand))
        if who == "any":
            victim = next(server for server in stand.nats.servers if server is not victim)
        victim.kill()
        await _settled(stand, session_id, there, f"nats {who}")
        for each in there:
            assert each.client.lost is None


async def test_an_outage_of_nats_that_is_longer_than_the_lease_moves_no_session(stand: Stand) -> None:
    """The leases of all hubs end. Clients prompt, and join, at hubs that do not own the sessions."""
    hubs = stand.hubs
    async with AsyncExitStack() as stack:
        talks = [await stack.enter_async_context(hub.talk(2)) for hub in hubs]
        owners = {}
        for number, (talk, hub) in enumerate(zip(talks, hubs, strict=True)):
            for again in "xyz":
                made = await talk.call(f"new {again}", "session/new", cwd="/", mcpServers=[])
                owners[made["sessionId"]] = hub
                other = talks[(number + 1) % len(talks)]
                setup = {"sessionId": made["sessionId"], "cwd": "/", "mcpServers": []}
                await other.call(f"join {made['sessionId']}", "session/resume", **setup)
        for server in stand.nats.servers[1:]:
            server.kill()
        await asyncio.sleep(2.0 * LEASE)  # the length of the fault
        for number, id in enumerate(owners):
            after = hubs.index(owners[id])
            text = f"say after the outage {number}"
            talks[(after + 1) % 3].prompt(f"p {id}", id, text, operationId=id)
            late = {"sessionId": id, "cwd": "/", "mcpServers": []}
            talks[(after + 2) % 3].send(id=f"late {id}", method="session/resume", params=late)
        for server in stand.nats.servers:
            server.ensure()
        for number, (id, owner) in enumerate(owners.items()):
            after = hubs.index(owner)
            asking, request = talks[(after + 1) % 3], f"p {id}"
            while "error" in (answer := await asking.answer_to(request)):  # the servers were too slow
                assert answer["error"]["data"]["reason"] == "owner_unreachable"
                request += " again"
                asking.prompt(request, id, f"say after the outage {number}", operationId=id)
            assert "result" in await talks[(after + 2) % 3].answer_to(f"late {id}")
        moved = [id for id, owner in owners.items() if await stand.owner(id) is not owner]
        assert not moved, f"{len(moved)} of {len(owners)} sessions have another owner"
        heard = stand.heard_by_agents()
        assert all(heard.count(f"say after the outage {number}") == 1 for number in range(len(owners)))
