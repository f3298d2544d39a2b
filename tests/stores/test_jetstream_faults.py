"""The store on NATS JetStream when processes and servers die: one writer per session, and no event lost."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from nats.errors import TimeoutError as NatsTimeout
from tests.stores.conftest import MakeOptions
from tests.stores.jetstream_client import jetstream
from tests.stores.nats_servers import NatsCluster
from tests.stores.several_stores import DEADLINE, line, store_process

from antiphon.errors import SessionClaimed
from antiphon.stores import JetStreamOptions, JetStreamStore, RecordPatch
from antiphon.testing.store_samples import events, read_all, session

# --- one writer ---------------------------------------------------------------------------------------


CLAIMS_AND_STAYS = """
import asyncio, sys
from antiphon.errors import StaleWriter
from antiphon.stores import JetStreamOptions, JetStreamStore
from antiphon.testing.store_samples import events

async def main():
    address, name, lease = sys.argv[1:]
    async with JetStreamStore(address, JetStreamOptions(name=name, shards=2, lease=float(lease))) as store:
        await store.claim("a", "the first owner")
        await store.append("a", events(1, 3))
        print("claimed", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        try:
            await store.append("a", events(4, 4))
        except StaleWriter:
            print("refused", flush=True)
        else:
            print("written", flush=True)

asyncio.run(main())
"""


async def claimed_within(store: JetStreamStore, seconds: float) -> None:
    """Claim a session as soon as that is possible."""
    async with asyncio.timeout(seconds):
        while True:
            with suppress(SessionClaimed):
                await store.claim("a", "the second owner")
                return
            await asyncio.sleep(0.1)


async def test_a_paused_owner_that_comes_back_is_refused(nats: str, apart: MakeOptions) -> None:
    options = apart(lease=1.0)
    async with JetStreamStore(nats, options) as store:
        await store.create(session("a"))
        with store_process(CLAIMS_AND_STAYS, nats, options) as first:
            assert await line(first) == "claimed"
            with pytest.raises(SessionClaimed, match="the first owner"):
                await store.claim("a", "the second owner")
            first.send_signal(signal.SIGSTOP)
            await claimed_within(store, DEADLINE)
            first.send_signal(signal.SIGCONT)
            assert first.stdin is not None
            first.stdin.write("go on\n")
            first.stdin.flush()
            # Its numbers would fit: nothing was appended since. The claim is what refuses it.
            assert await line(first) == "refused"
        await store.append("a", events(4, 5))
        assert await read_all(store, "a") == list(events(1, 5).events)


async def test_the_claim_of_a_killed_owner_ends_with_its_lease(nats: str, apart: MakeOptions) -> None:
    options = apart(lease=1.0)
    async with JetStreamStore(nats, options) as store:
        await store.create(session("a"))
        with store_process(CLAIMS_AND_STAYS, nats, options) as first:
            assert await line(first) == "claimed"
            first.kill()
        await claimed_within(store, DEADLINE)
        assert await read_all(store, "a") == list(events(1, 3).events)


async def test_a_live_owner_keeps_its_claim_longer_than_its_lease(nats: str, apart: MakeOptions) -> None:
    options = apart(lease=1.0)
    async with JetStreamStore(nats, options) as one, JetStreamStore(nats, options) as other:
        await one.create(session("a"))
        await one.claim("a", "the first owner")
        with pytest.raises(TimeoutError):
            await claimed_within(other, 3.0)


# --- servers that die ---------------------------------------------------------------------------------


async def leader_of_journal(address: str, options: JetStreamOptions) -> str:
    """The server that leads the stream with the only session's journal. A cluster that has just lost a server
    may not answer at once, or not about all streams: it is asked again. The caller has a deadline."""
    async with jetstream(address) as streams:
        while True:
            with suppress(NatsTimeout):
                for info in await streams.streams_info():
                    name, cluster = info.config.name or "", info.cluster
                    holds = name.startswith(f"{options.name}-journal-") and info.state.messages
                    if holds and cluster is not None and cluster.leader:
                        return cluster.leader


async def test_no_confirmed_event_is_lost_or_doubled_when_servers_are_killed(
    nats_cluster: NatsCluster, apart: MakeOptions
) -> None:
    options = apart(replicas=3)
    address = nats_cluster.address
    async with JetStreamStore(address, options) as store, JetStreamStore(address, options) as reader:
        await store.create(session("a"))
        await store.claim("a", "me")
        confirmed = 0

        async def write(batches: int) -> None:
            nonlocal confirmed
            for _ in range(batches):
                await store.append("a", events(confirmed + 1, confirmed + 10))
                confirmed += 10

        followed: list[int] = []

        async def follow() -> None:
            cursor = 0
            while cursor < 1800:
                await reader.grown("a", cursor)
                for batch in (await reader.read("a", cursor)).batches:
                    followed.extend(range(batch.first, batch.last + 1))
                    cursor = batch.last

        async with asyncio.timeout(120):
            following = asyncio.create_task(follow())
            for _ in range(3):
                await write(20)
                victim = nats_cluster.named(await leader_of_journal(address, options))
                writing = asyncio.create_task(write(40))
                await reader.grown("a", confirmed + 20)  # in the middle of it
                victim.kill()
                await writing
                victim.start()
                victim.wait()
            assert confirmed == 1800
            assert await read_all(reader, "a") == list(events(1, 1800).events)
            await following
        assert followed == list(range(1, 1801)), "a reader on another host got every event once, in order"


@asynccontextmanager
async def losing_answers(address: str, lose: Callable[[bytes], bool]) -> AsyncIterator[str]:
    """A proxy in front of a server that ends the connection instead of passing on an answer of `lose`."""
    host, port = address.removeprefix("nats://").split(":")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection(host, int(port))

        async def answers() -> None:
            while data := await upstream_reader.read(65536):
                if lose(data):
                    break
                writer.write(data)

        async def requests() -> None:
            while data := await reader.read(65536):
                upstream_writer.write(data)

        tasks = [asyncio.create_task(answers()), asyncio.create_task(requests())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            writer.close()
            upstream_writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def test_a_write_whose_confirmation_is_lost_is_written_once(nats: str, apart: MakeOptions) -> None:
    chance = random.Random(7)
    lost = 0

    def lose(data: bytes) -> bool:
        nonlocal lost
        is_lost = b'"stream":' in data and b'"seq":' in data and chance.random() < 0.2
        lost += is_lost
        return is_lost

    options = apart()
    async with losing_answers(nats, lose) as address, JetStreamStore(address, options) as store:
        async with asyncio.timeout(DEADLINE):
            await store.create(session("a"))
            for seq in range(1, 31):
                await store.append("a", events(seq, seq), record=RecordPatch(title=f"{seq}"))
        async with JetStreamStore(nats, options) as reader:
            assert await read_all(reader, "a") == list(events(1, 30).events)
            found = await reader.get("a")
            assert found is not None
            assert (found.last, found.title) == (30, "30")
    assert lost >= 3, "the proxy lost nothing: the test shows nothing"


# --- imports ------------------------------------------------------------------------------------------


DIES_WHILE_IMPORTING = """
import asyncio, os, sys
from antiphon.stores import JetStreamOptions, JetStreamStore
from antiphon.testing.store_samples import events, session

async def main():
    async with JetStreamStore(sys.argv[1], JetStreamOptions(name=sys.argv[2], shards=2)) as store:
        async with store.arrival(session("a")) as arriving:
            await arriving.append(events(1, 50))
            await (await arriving.beside(session("b"))).append(events(1, 50))
            os._exit(1)

asyncio.run(main())
"""


async def test_an_import_whose_process_dies_leaves_nothing_to_see(nats: str, apart: MakeOptions) -> None:
    options = apart()
    died = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DIES_WHILE_IMPORTING, nats, options.name
    )
    assert await asyncio.wait_for(died.wait(), DEADLINE) == 1
    async with JetStreamStore(nats, options) as store:
        assert (await store.list()).records == ()
        assert await store.get("a") is None
        await store.create(session("a"))
        assert await read_all(store, "a") == []
