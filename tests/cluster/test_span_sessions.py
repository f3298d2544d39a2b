"""Presence, the list of sessions and takeovers span the hubs of one store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.stores import JetStreamOptions, JetStreamStore
from tests.cluster.spanning import (
    DEADLINE,
    attach,
    begin,
    begun_by_alice,
    listed,
    store_name,
    talk_to,
    two_hubs,
    until,
    until_gone,
    until_listed,
    until_present,
    until_states,
)
from tests.stores.nats_servers import SERVER

pytestmark = pytest.mark.skipif(SERVER is None, reason="nats-server is not installed")


async def is_idle(store: JetStreamStore, session_id: str) -> bool:
    record = await store.get(session_id)
    return record is not None and record.state == "idle"


async def test_clients_of_other_hubs_are_present(tmp_path: Path, nats: str) -> None:
    with two_hubs(tmp_path, nats) as (a, b):
        async with asyncio.timeout(DEADLINE), talk_to(a, "alice") as alice, talk_to(b, "bob") as bob:
            id = await begin(alice)
            await until_listed(bob, id, clients=1)
            joined = await attach(bob, id)
            assert {one["clientId"] for one in joined["clients"]} == {"alice", "bob"}
            assert [one["clientId"] for one in joined["clients"] if one.get("you")] == ["bob"]
            shown = await until_present(alice, "alice", "bob")
            assert [one["clientId"] for one in shown if one.get("you")] == ["alice"]
            await bob.call("leave", "_antiphon/detach", sessionId=id)
            await until_present(alice, "alice")


async def test_a_client_of_a_hub_that_was_killed_is_not_present_for_ever(tmp_path: Path, nats: str) -> None:
    with two_hubs(tmp_path, nats) as (a, b):
        async with asyncio.timeout(DEADLINE), talk_to(a, "alice") as alice:
            id = await begin(alice)
            async with talk_to(b, "bob") as bob:
                await attach(bob, id)
                await until_present(alice, "alice", "bob")
                b.kill()
                await until_present(alice, "alice")


async def test_presence_outlives_a_takeover(tmp_path: Path, nats: str) -> None:
    with two_hubs(tmp_path, nats) as (a, b):
        async with asyncio.timeout(DEADLINE), talk_to(b, "bob") as bob:
            async with begun_by_alice(a, bob) as (_, id):
                pass
            await until_present(bob, "bob")
            a.kill()
            bob.prompt("p", id, "say hello")
            await bob.answer_to("p")
            a.restart()
            async with talk_to(a, "carol") as carol:
                joined = await attach(carol, id)
                assert {one["clientId"] for one in joined["clients"]} == {"bob", "carol"}
                await until_present(bob, "bob", "carol")


async def test_a_change_at_one_hub_is_told_to_the_clients_of_the_other(tmp_path: Path, nats: str) -> None:
    with two_hubs(tmp_path, nats) as (a, b):
        async with asyncio.timeout(DEADLINE), talk_to(a, "alice") as alice, talk_to(b, "bob") as bob:
            id = await begin(alice)
            await until_listed(bob, id, state="idle", clients=1)
            alice.prompt("p", id, "wait")
            await until_listed(bob, id, state="running")
            entry = await listed(bob, id, "list")
            assert (entry["state"], entry["clients"]) == ("running", 1)
            alice.send(method="session/cancel", params={"sessionId": id})
            await until_listed(bob, id, state="idle")
            await alice.call("t", "session/set_title", sessionId=id, title="Red build")
            await until_listed(bob, id, title="Red build")
            await bob.call("archive", "session/archive", sessionId=id)
            await until_listed(alice, id, archived=True)
            await bob.call("delete", "session/delete", sessionId=id)
            await until_gone(alice, id)


async def test_a_hub_that_starts_later_knows_what_is_open_elsewhere(tmp_path: Path, nats: str) -> None:
    with two_hubs(tmp_path, nats) as (a, b):
        async with asyncio.timeout(DEADLINE), talk_to(a, "alice") as alice:
            id = await begin(alice)
            b.kill()
            b.restart()
            async with talk_to(b, "bob") as bob:
                entry = await listed(bob, id, "list")
                assert (entry["state"], entry["clients"]) == ("idle", 1)
            a.kill()
            async with talk_to(b, "bob") as bob:
                await until_listed(bob, id, state=None)
                assert (await listed(bob, id, "list")).get("clients") is None


async def test_a_close_of_one_client_leaves_the_clients_of_other_hubs_attached(
    tmp_path: Path, nats: str
) -> None:
    with two_hubs(tmp_path, nats) as (a, b):
        async with asyncio.timeout(DEADLINE), talk_to(a, "alice") as alice, talk_to(b, "bob") as bob:
            id = await begin(alice)
            await attach(bob, id)
            await until_present(alice, "alice", "bob")
            await alice.call("close", "session/close", sessionId=id)
            await until_present(bob, "bob")
            bob.prompt("p", id, "say hello")
            assert "result" in await bob.answer_to("p")


async def test_a_session_that_is_closed_for_all_is_closed_at_every_hub(tmp_path: Path, nats: str) -> None:
    with two_hubs(tmp_path, nats) as (a, b):
        async with asyncio.timeout(DEADLINE), talk_to(a, "alice") as alice, talk_to(b, "bob") as bob:
            id = await begin(alice)
            await attach(bob, id)
            await until_present(alice, "alice", "bob")
            await alice.call("all", "session/close", sessionId=id, _meta={"antiphon": {"forAll": True}})
            await until_listed(bob, id, state=None)
            bob.prompt("p", id, "say hello")
            assert "no such session is active here" in str(await bob.answer_to("p"))
            assert (await listed(alice, id, "list")).get("state") is None, "no hub has opened it again"


async def test_the_hub_of_the_other_clients_takes_over_a_session_that_is_released(
    tmp_path: Path, nats: str
) -> None:
    with two_hubs(tmp_path, nats) as (a, b):
        async with asyncio.timeout(DEADLINE), talk_to(b, "bob") as bob:
            async with begun_by_alice(a, bob) as (alice, id):
                alice.prompt("1", id, "say one")
                await bob.update("state_update", state="idle")
            await asyncio.to_thread(a.end)
            async with JetStreamStore(nats, JetStreamOptions(name=store_name(b))) as store:
                owner = await until(lambda: store.owner(id))
                assert owner.pid == b.process.pid, "nobody prompted: the session was taken over at once"
            bob.prompt("2", id, "say two")
            assert "result" in await bob.answer_to("2")


async def test_a_sweep_ends_what_a_killed_hub_left_and_lets_queued_prompts_go_on(
    tmp_path: Path, nats: str
) -> None:
    with two_hubs(tmp_path, nats) as (a, b):
        async with asyncio.timeout(DEADLINE), talk_to(b, "bob") as bob:
            async with talk_to(a, "alice") as alice:
                cut, queued = await begin(alice), await begin(alice, "again")
                for id in (cut, queued):
                    alice.prompt(f"wait {id}", id, "wait")
                    await until_listed(bob, id, state="running")
                alice.prompt("queued", queued, "say later")
                await alice.update("_antiphon_queue")
                a.kill()
            await until_states(bob, {queued: "idle", cut: None})  # by the sweep: no client follows them
            async with JetStreamStore(nats, JetStreamOptions(name=store_name(b))) as store:
                await until(lambda: is_idle(store, cut))
            await attach(bob, queued)
            assert "heard say later" in str(bob.seen)


async def test_every_hub_says_the_status_of_a_session_as_its_owner_does(tmp_path: Path, nats: str) -> None:
    with two_hubs(tmp_path, nats) as (a, b):
        async with asyncio.timeout(DEADLINE), talk_to(a, "alice") as alice, talk_to(b, "bob") as bob:
            id = await begin(alice)

            async def status(when: str) -> dict[str, Any]:
                told = [await talk.call(when, "session/status", sessionId=id) for talk in (alice, bob)]
                assert told[0] == told[1], when
                return told[0]

            assert (await status("begun"))["state"]["state"] == "idle"
            alice.prompt("p", id, "wait")
            await alice.update("state_update", state="running")
            assert (await status("at work"))["state"]["state"] == "running"
            alice.send(method="session/cancel", params={"sessionId": id})
            await alice.update("state_update", state="idle")
            assert (await status("cancelled"))["state"]["stopReason"] == "cancelled"
            async with b.talk(1) as old:
                assert (await old.call("s", "session/status", sessionId=id))["status"] == "open"
            await alice.call("close", "session/close", sessionId=id)
            assert (await status("put away"))["status"] == "saved"
            bob.send(id="none", method="session/status", params={"sessionId": "sess_none"})
            assert (await bob.answer_to("none"))["error"]["code"] == -32002


async def test_a_killed_hub_owns_its_sessions_again_as_soon_as_it_is_back(tmp_path: Path, nats: str) -> None:
    with two_hubs(tmp_path, nats, "--lease", "600") as (a, b):
        async with asyncio.timeout(DEADLINE), talk_to(b, "bob") as bob:
            other = await begin(bob)
            async with talk_to(a, "alice") as alice:
                id = await begin(alice)
                alice.prompt("p", id, "wait")
                await alice.update("state_update", state="running")
                a.kill()
            a.restart()
            async with (
                talk_to(a, "alice") as alice,
                JetStreamStore(nats, JetStreamOptions(name=store_name(b))) as store,
            ):
                assert len(await store.peers()) == 2, "the first lease has ended, and no other one"
                await attach(alice, id)
                alice.prompt("again", id, "say again")
                assert "result" in await alice.answer_to("again")
                owners = [await store.owner(each) for each in (id, other)]
                assert [owner and owner.pid for owner in owners] == [a.process.pid, b.process.pid]
