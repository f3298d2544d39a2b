"""The store on NATS JetStream: the contract, long journals, notes, and clear errors."""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from nats.js import JetStreamContext
from nats.js.api import StreamConfig, StreamInfo
from nats.js.errors import APIError
from tests.stores.conftest import MakeOptions
from tests.stores.jetstream_client import jetstream
from tests.stores.nats_servers import NatsCluster, NatsServer, free_ports, one_server
from tests.stores.several_stores import DEADLINE

from antiphon.errors import LocalError, StoreError, StoreFull
from antiphon.stores import Batch, JetStreamOptions, JetStreamStore, Page, RecordPatch, Store
from antiphon.testing import check_damaged_store, check_shared_store, check_store
from antiphon.testing.store_samples import events, read_all, session

SIZES = (1, 1, 1, 200_000, 600_000)
"""Of events: one that fits into a message, many of which do not fit into memory, and one in pieces."""


def make(address: str, options: Callable[[], JetStreamOptions]):
    @asynccontextmanager
    async def opened() -> AsyncIterator[Store]:
        async with JetStreamStore(address, options()) as store:
            yield store

    return opened


def make_two(address: str, options: Callable[[], JetStreamOptions]):
    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[Store, Store]]:
        shared = options()
        async with JetStreamStore(address, shared) as one, JetStreamStore(address, shared) as other:
            yield one, other

    return opened


# --- the contract -------------------------------------------------------------------------------------


async def test_the_contract_is_kept(nats: str, apart: MakeOptions) -> None:
    await check_store(make(nats, apart), deadline=DEADLINE)
    await check_shared_store(make_two(nats, apart), deadline=DEADLINE)


async def test_the_contract_is_kept_with_three_replicas(
    nats_cluster: NatsCluster, apart: MakeOptions
) -> None:
    def replicated() -> JetStreamOptions:
        return apart(replicas=3)

    await check_store(make(nats_cluster.address, replicated), deadline=DEADLINE)
    await check_shared_store(make_two(nats_cluster.address, replicated), deadline=DEADLINE)


async def test_missing_events_are_reported_and_nothing_is_deleted(nats: str, apart: MakeOptions) -> None:
    async def forget_first(_: Store, session_id: str) -> None:
        """Remove the message with the first three events of a session from its stream."""
        async with jetstream(nats) as streams:
            for stream in await streams.streams_info():
                if "-journal-" not in stream.config.name:
                    continue
                for seq in range(1, stream.state.last_seq + 1):
                    try:
                        message = await streams.get_msg(stream.config.name, seq)
                    except Exception:
                        continue
                    if (
                        b'"first":1,' in message.data
                        and f'"session_id":"{session_id}"'.encode() in message.data
                    ):
                        await streams.delete_msg(stream.config.name, seq)

    await check_damaged_store(make(nats, apart), forget_first, deadline=DEADLINE)


# --- long journals and snapshots ----------------------------------------------------------------------


async def test_reading_begins_anywhere_in_a_long_journal_of_another_store(
    nats: str, apart: MakeOptions
) -> None:
    options = apart()
    async with JetStreamStore(nats, options) as writer:
        for name in ("a", "b"):
            await writer.create(session(name))
        for first in range(1, 3000, 3):
            await writer.append("a", events(first, first + 2))
            await writer.append("b", events(first, first + 2))
    async with JetStreamStore(nats, options) as reader:
        for after in (0, 1, 1499, 2999, 3000, 2, 2500):
            expected = list(events(after + 1, 3000).events) if after < 3000 else []
            assert await read_all(reader, "a", after=after) == expected, f"after {after}"


async def test_what_a_waiting_reader_has_received_is_read_without_the_servers(
    tmp_path: Path, apart: MakeOptions
) -> None:
    server, options = NatsServer(tmp_path, "alone", free_ports(1)[0]), apart()
    address = f"nats://127.0.0.1:{server.port}"
    server.start()
    server.wait()
    try:
        async with JetStreamStore(address, options) as writer, JetStreamStore(address, options) as reader:
            await writer.create(session("a"), batch=events(1, 3))
            waiting = asyncio.ensure_future(reader.grown("a", 3))
            done, _ = await asyncio.wait([waiting], timeout=0.5)
            assert not done
            await writer.append("a", events(4, 6))
            assert await waiting == 6
            server.kill()
            async with asyncio.timeout(DEADLINE / 4):
                page = await reader.read("a", 4)
            assert page == Page((events(5, 6),), cursor=6, last=6)
    finally:
        server.kill()


async def test_readers_that_wait_get_every_event_once_in_order(nats: str, apart: MakeOptions) -> None:
    options, chance, last = apart(), random.Random(11), 2000
    async with JetStreamStore(nats, options) as writer, JetStreamStore(nats, options) as reader:
        await writer.create(session("a"))

        async def write() -> None:
            seq = 1
            while seq <= last:
                upto = min(last, seq + chance.choice((0, 2, 40)))
                batch = Batch(seq, (*events(seq, upto).events[:-1], b'"%s"' % (b"x" * chance.choice(SIZES))))
                patch = RecordPatch(title=f"{seq}") if chance.random() < 0.2 else None
                await writer.append("a", batch, record=patch)
                written.extend(batch.events)
                seq = upto + 1

        async def follow() -> list[bytes]:
            found: list[bytes] = []
            while len(found) < last:
                await reader.grown("a", len(found))
                if chance.random() < 0.2:
                    await reader.get("a")  # learns of the end of the journal before the follower does
                limit = chance.choice((1, 1000, 1 << 20))
                found += await read_page(len(found), limit)
            return found

        async def read_page(after: int, limit: int) -> list[bytes]:
            page = await reader.read("a", after, limit_bytes=limit)
            assert page.batches[0].first == after + 1
            return [event for batch in page.batches for event in batch.events]

        written: list[bytes] = []
        async with asyncio.timeout(DEADLINE):
            _, *found = await asyncio.gather(write(), *(follow() for _ in range(3)))
    assert all(each == written for each in found)


async def test_a_snapshot_that_changes_often_is_written_anew(nats: str, apart: MakeOptions) -> None:
    options = apart()
    large = {f"m{n}": os.urandom(300_000) for n in range(4)}
    async with JetStreamStore(nats, options) as store:
        await store.create(session("a"), batch=events(1, 30))
        for upto in range(1, 31):
            large[f"m{upto % 4}"] = os.urandom(400_000)
            await store.save_parts("a", upto, large)
        await store.save_parts("a", 30, {"m1": None})
    kept = {name: part for name, part in large.items() if name != "m1"}
    async with JetStreamStore(nats, options) as store:
        upto, parts, more = await store.load_parts("a", limit_bytes=1 << 30)
        assert (upto, parts, more) == (30, kept, None)
    async with jetstream(nats) as streams:
        size = sum(
            stream.state.bytes
            for stream in await streams.streams_info()
            if stream.config.name.startswith(f"{options.name}-snapshot-")
        )
    assert size < 15_000_000, "outdated parts are removed: 30 saves of 1.6 MB were made"


# --- errors -------------------------------------------------------------------------------------------


async def test_servers_that_cannot_be_reached_are_named(apart: MakeOptions) -> None:
    address = f"nats://127.0.0.1:{free_ports(1)[0]}"
    with pytest.raises(StoreError, match=rf"cannot connect to NATS at {re.escape(address)}"):
        await JetStreamStore(address, apart()).open()


async def test_more_replicas_than_servers_are_refused(nats: str, apart: MakeOptions) -> None:
    with pytest.raises(StoreError, match="fewer servers than the replicas"):
        await JetStreamStore(nats, apart(replicas=3)).open()


async def test_a_server_of_the_cluster_that_is_not_there_yet_is_waited_for(
    nats: str, apart: MakeOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = [
        APIError(code=400, err_code=10005, description="no suitable peers for placement, peer offline")
    ]
    add_stream = JetStreamContext.add_stream

    async def add_or_refuse(js: JetStreamContext, config: StreamConfig) -> StreamInfo:
        if refusals:
            raise refusals.pop()
        return await add_stream(js, config)

    monkeypatch.setattr(JetStreamContext, "add_stream", add_or_refuse)
    async with JetStreamStore(nats, apart()) as store:
        assert (await store.list()).records == ()
    assert not refusals


async def test_a_server_that_is_too_old_is_refused(apart: MakeOptions) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b'INFO {"server_id":"x","version":"2.9.1","proto":1,"headers":true,"max_payload":1048576}\r\n'
        )
        while data := await reader.readline():
            if data.startswith(b"PING"):
                writer.write(b"PONG\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        address = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(StoreError, match=r"NATS server 2\.9 at \S+ is too old: 2\.11 or newer is needed"):
            await JetStreamStore(address, apart()).open()


async def test_a_full_server_says_so_and_loses_nothing(tmp_path: Path, apart: MakeOptions) -> None:
    with one_server(tmp_path, jetstream="max_file_store: 3MB") as address:
        async with JetStreamStore(address, apart(patience=2.0)) as store:
            await store.create(session("a"))
            last = 0
            try:
                while last < 100:
                    await store.append("a", Batch(last + 1, (b'"' + b"x" * 200_000 + b'"',)))
                    last += 1
            except StoreFull as error:
                refusal = str(error)
            assert "NATS has no room left" in refusal
            assert 0 < last < 100
            assert len(await read_all(store, "a")) == last


async def test_a_user_without_the_right_password_is_refused(tmp_path: Path, apart: MakeOptions) -> None:
    users = "authorization { user: antiphon, password: secret }"
    with one_server(tmp_path, users) as address:
        with pytest.raises(StoreError, match="cannot connect to NATS"):
            await JetStreamStore(address, apart()).open()
        known = address.replace("nats://", "nats://antiphon:secret@")
        async with JetStreamStore(known, apart()) as store:
            await store.create(session("a"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"replicas": 6}, "replicas must be 1 to 5, got 6"),
        ({"name": "a.b"}, "store name must be"),
        ({"shards": 0}, "shards must be 1 to 1024, got 0"),
        ({"lease": 0.1}, "lease must be >= 1 s, got 0.1"),
    ],
)
def test_an_option_out_of_range_is_refused(wrong: dict, message: str) -> None:
    with pytest.raises(LocalError, match=message):
        JetStreamOptions(**wrong)


async def test_a_store_tells_how_many_servers_really_keep_it(
    nats_cluster: NatsCluster, caplog: pytest.LogCaptureFixture
) -> None:
    one, three = (JetStreamOptions(name="made", shards=1, replicas=replicas) for replicas in (1, 3))
    async with JetStreamStore(nats_cluster.address, one) as store:
        assert store.replicas == 1
    async with JetStreamStore(nats_cluster.address, three) as store:
        assert store.replicas == 1
    assert "streams of made exist with replicas: 1, asked for: 3" in caplog.text


async def test_a_store_that_may_not_make_streams_makes_none(nats: str) -> None:
    options = JetStreamOptions(name="absent", create=False)
    for _ in range(2):
        with pytest.raises(StoreError, match="no sessions under the name 'absent'"):
            await JetStreamStore(nats, options).open()


# --- notes --------------------------------------------------------------------------------------------


async def test_all_stores_have_the_same_notes(nats: str, apart: MakeOptions) -> None:
    options = apart()
    async with (
        asyncio.timeout(DEADLINE),
        JetStreamStore(nats, options) as one,
        JetStreamStore(nats, options) as other,
    ):
        assert await one.notes("colours") == []
        await one.add_note("colours", "sky", b"blue")
        await other.add_note("colours", "sky", b"green")  # it is there
        await other.add_note("sizes", "sky", b"large")
        assert await one.notes("colours") == await other.notes("colours") == [b"blue"]
        await other.replace_note("colours", "sky", b"grey", seconds=1)
        assert await one.notes("colours") == [b"grey"]
        left = await one.notes("colours")
        while left:  # until the server removes it
            await asyncio.sleep(0.05)
            left = await one.notes("colours")
        assert await one.notes("sizes") == [b"large"]
        with pytest.raises(LocalError, match="key must be"):
            await one.add_note("colours", "a.b", b"")
