"""Leases of stores of one installation, and who owns a session while leases last and end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from nats.js.api import RawStreamMsg
from nats.js.errors import BadRequestError
from tests.stores.conftest import MakeOptions
from tests.stores.several_stores import line, plain_client, store_process, stores, until

from antiphon.errors import (
    SessionClaimed,
    SessionUnknown,
    StaleWriter,
    StoreBusy,
)
from antiphon.stores import (
    Claim,
    JetStreamOptions,
    JetStreamStore,
    Owner,
    Page,
    Peer,
)
from antiphon.stores.jetstream.journal import SessionJournal
from antiphon.testing.store_samples import events, read_all, session

HAS_A_LEASE = """
import asyncio, sys
from antiphon.errors import StaleWriter
from antiphon.stores import JetStreamOptions, JetStreamStore
from antiphon.testing.store_samples import events

async def main():
    address, name, lease = sys.argv[1:]
    async with JetStreamStore(address, JetStreamOptions(name=name, shards=2, lease=float(lease))) as store:
        store.describe({"name": "hub"})
        await store.begin_lease()
        for session_id in ("a", "b"):
            await store.claim(session_id, "the first owner")
        print(store.store_id, flush=True)
        lost = await store.lost_claim()
        owner = await store.owner(lost)
        print("lost", lost, "to", owner.store_id, flush=True)
        kept = await store.owner("b")
        print("kept b" if kept.store_id == store.store_id else "lost b", flush=True)
        await store.append("b", events(1, 1))
        try:
            await store.append("a", events(1, 1))
        except StaleWriter:
            print("refused", flush=True)
        print("read", await store.grown("a", 0), flush=True)

asyncio.run(main())
"""


@asynccontextmanager
async def other_owner(
    nats: str, options: JetStreamOptions
) -> AsyncIterator[tuple[JetStreamStore, subprocess.Popen[str], str]]:
    """Another process owns sessions `a` and `b`. Gives a store of ours, the process, and its store's id."""
    async with stores(nats, options, 1) as (store,):
        for session_id in ("a", "b"):
            await store.create(session(session_id))
        with store_process(HAS_A_LEASE, nats, options) as process:
            yield store, process, await line(process)


async def test_stores_with_a_lease_are_peers_and_say_who_they_are(nats: str, apart: MakeOptions) -> None:
    async with stores(nats, apart(), 3) as (one, two, three):
        assert await three.peers() == []
        one.describe({"name": "first", "sessions": 0})
        await one.begin_lease()
        await two.begin_lease()
        first = Peer(one.store_id, {"name": "first", "sessions": 0})
        assert sorted(map(str, await three.peers())) == sorted(map(str, [first, Peer(two.store_id, {})]))
        await two.aclose()
        assert await three.peers() == [first], "a store that is closed is gone at once"


async def test_a_changed_description_is_seen_long_before_the_lease_ends(
    nats: str, apart: MakeOptions
) -> None:
    async with stores(nats, apart(lease=3600.0)) as (one, other):
        await one.begin_lease()
        about = {"sessions": 1}
        one.describe(about)
        about["sessions"] = 2  # what was described does not change with it

        async def is_seen() -> bool:
            return await other.peers() == [Peer(one.store_id, {"sessions": 1})]

        await until(is_seen)


def test_a_description_that_is_not_json_is_refused_at_once() -> None:
    with pytest.raises(TypeError):
        JetStreamStore("nats://127.0.0.1").describe({"loop": object()})


async def test_a_killed_process_is_no_peer_once_its_lease_ends(nats: str, apart: MakeOptions) -> None:
    options = apart(lease=1.0)
    async with other_owner(nats, options) as (store, process, store_id):
        owner = await store.owner("a")
        assert owner is not None
        assert (owner.store_id, owner.pid) == (store_id, process.pid)
        assert await store.peers() == [Peer(store_id, {"name": "hub"})]
        process.kill()

        async def is_gone() -> bool:
            return await store.peers() == []

        await until(is_gone)
        assert await store.owner("a") is None
        assert Claim("a", owner, False) in await store.owners(), "its claim is there, and not alive"


# --- owners -------------------------------------------------------------------------------------------


async def test_the_owner_of_a_session_is_known_to_all(nats: str, apart: MakeOptions) -> None:
    async with stores(nats, apart()) as (one, other):
        await one.create(session("a"))
        assert await other.owner("a") is None
        await one.claim("a", "me")
        owner = await other.owner("a")
        assert owner is not None
        assert owner == Owner(one.store_id, owner.host, os.getpid()) == await one.owner("a")
        await one.release("a", "me")
        assert await other.owner("a") is None
        with pytest.raises(SessionUnknown):
            await other.owner("nowhere")


async def test_all_owners_are_listed_however_many_there_are(nats: str, apart: MakeOptions) -> None:
    async with stores(nats, apart()) as (one, other):
        names = [f"s{n}" for n in range(1100)]  # more than one page has
        for at in range(0, len(names), 50):
            await asyncio.gather(*(one.create(session(name)) for name in names[at : at + 50]))
            await asyncio.gather(*(one.claim(name, "me") for name in names[at : at + 50]))
        owners = await other.owners()
        assert sorted(claim.session_id for claim in owners) == sorted(names)
        assert {(claim.owner.store_id, claim.alive) for claim in owners} == {(one.store_id, True)}


async def test_a_paused_owner_learns_which_claims_it_lost(nats: str, apart: MakeOptions) -> None:
    options = apart(lease=1.0)
    async with other_owner(nats, options) as (store, process, first):
        process.send_signal(signal.SIGSTOP)

        async def is_free() -> bool:
            return await store.owner("a") is None

        await until(is_free)
        await store.claim("a", "the second owner")
        process.send_signal(signal.SIGCONT)
        assert await line(process) == f"lost a to {store.store_id}"
        assert await line(process) == "kept b", "what nobody took over is its own again"
        assert await line(process) == "refused"
        with pytest.raises(SessionClaimed):
            await store.claim("b", "the second owner")
        assert {peer.store_id for peer in await store.peers()} == {first, store.store_id}
        await store.append("a", events(1, 2))
        assert await line(process) == "read 2", "it follows what the new owner writes"


async def end_lease(address: str, options: JetStreamOptions, store_id: str) -> None:
    """Remove the lease of a store from the servers, as if its time were over."""
    async with plain_client(address) as client:
        await client.jetstream().purge_stream(
            f"{options.name}-claims", subject=f"{options.name}.claim.store.{store_id}"
        )


async def test_a_lost_session_is_followed_and_can_be_claimed_again(nats: str, apart: MakeOptions) -> None:
    options = apart(lease=3.0)
    async with stores(nats, options) as (one, other):
        await one.create(session("a"))
        await one.claim("a", "one")
        growing = asyncio.create_task(one.grown("a", 0))
        await end_lease(nats, options, one.store_id)
        await other.claim("a", "other")
        assert await one.lost_claim() == "a"
        await other.append("a", events(1, 3))
        assert await growing == 3, "a call that waited since before the takeover"
        for _ in range(2):
            with pytest.raises(StaleWriter):
                await one.append("a", events(4, 4))
        with pytest.raises(SessionClaimed, match="other"):
            await one.claim("a", "one")
        await one.release("a", "one")
        await other.release("a", "other")
        await one.claim("a", "one")
        await one.append("a", events(4, 4))
        assert await read_all(other, "a") == list(events(1, 4).events)
        with pytest.raises(StaleWriter):
            await other.append("a", events(4, 4))


async def test_an_owner_that_does_not_know_of_a_takeover_reads_what_the_next_owner_writes(
    nats: str, apart: MakeOptions
) -> None:
    options = apart(lease=3600.0)
    async with stores(nats, options) as (one, other):
        await one.create(session("a"))
        await one.claim("a", "one")
        await end_lease(nats, options, one.store_id)
        await other.claim("a", "other")
        await other.append("a", events(1, 2))
        assert await one.read("a", 2) == Page((), 2, 2), "a journal that ended before 2 would be damaged"
        with pytest.raises(StaleWriter):
            await one.append("a", events(3, 3))


async def test_a_takeover_that_comes_after_the_owner_is_back_is_refused(
    nats: str, apart: MakeOptions
) -> None:
    options = apart(lease=3.0)
    async with stores(nats, options, 1) as (one,), plain_client(nats) as client:
        servers = client.jetstream()
        await one.create(session("a"))
        await one.claim("a", "one")

        async def last_claim() -> RawStreamMsg:
            return await servers.get_last_msg(f"{options.name}-claims", f"{options.name}.claim.session.*")

        seen = await last_claim()
        await end_lease(nats, options, one.store_id)

        async def is_back() -> bool:
            return (await last_claim()).seq != seen.seq and await one.owner("a") is not None

        await until(is_back)
        with pytest.raises(BadRequestError, match="wrong last sequence"):
            await servers.publish(
                str(seen.subject), b"", headers={"Nats-Expected-Last-Subject-Sequence": str(seen.seq)}
            )
        await one.append("a", events(1, 1))


async def test_a_claim_whose_fence_failed_is_fenced_by_the_next_try(
    nats: str, apart: MakeOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise StoreBusy("NATS did not confirm")

    options = apart(lease=3.0)
    async with stores(nats, options) as (one, other):
        await one.create(session("a"))
        await other.claim("a", "other")
        await end_lease(nats, options, other.store_id)
        with monkeypatch.context() as patch:
            patch.setattr(SessionJournal, "fence", fail)
            with pytest.raises(StoreBusy):
                await one.claim("a", "one")
        await one.claim("a", "one")
        with pytest.raises(StaleWriter):
            await other.append("a", events(1, 1))
        await one.append("a", events(1, 1))
