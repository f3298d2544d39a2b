"""Requests from one store of an installation to another."""

from __future__ import annotations

import asyncio
import os

import pytest
from nats.aio.msg import Msg
from tests.stores.conftest import MakeOptions
from tests.stores.nats_servers import NatsCluster
from tests.stores.several_stores import DEADLINE, plain_client, stores, until

from antiphon.errors import (
    LocalError,
    NobodyAnswers,
    StoreBusy,
    StoreError,
)
from antiphon.stores import (
    JetStreamStore,
)
from antiphon.stores.jetstream import exchange

LARGE = 20 * 1024 * 1024


async def echo(data: bytes) -> bytes:
    return data


async def test_a_request_is_answered_by_the_store_that_it_names(nats: str, apart: MakeOptions) -> None:
    async with stores(nats, apart(), 3) as (one, two, three):
        for store in (two, three):

            async def handle(data: bytes, name: str = store.store_id) -> bytes:
                return data + name.encode()

            await store.serve(handle)
        for store in (two, three):
            assert await one.request(store.store_id, b"you are ", timeout=10) == (
                f"you are {store.store_id}".encode()
            )
        assert await two.request(two.store_id, b"", timeout=10) == two.store_id.encode()


async def test_installations_on_the_same_servers_do_not_hear_each_other(
    nats: str, apart: MakeOptions
) -> None:
    async with stores(nats, apart(), 1) as (one,), stores(nats, apart(), 1) as (other,):
        await other.serve(echo)
        with pytest.raises(NobodyAnswers):
            await one.request(other.store_id, b"", timeout=DEADLINE)


async def test_nobody_answers_at_once(nats: str, apart: MakeOptions) -> None:
    async with stores(nats, apart()) as (one, other):
        with pytest.raises(NobodyAnswers, match="nowhere"):
            await one.request("nowhere", b"", timeout=10 * DEADLINE)
        with pytest.raises(NobodyAnswers):
            await one.request(other.store_id, bytes(LARGE), timeout=10 * DEADLINE)
        await other.serve(echo)
        assert await one.request(other.store_id, b"1", timeout=10) == b"1"
        await other.aclose()
        with pytest.raises(NobodyAnswers):
            await one.request(other.store_id, b"2", timeout=10 * DEADLINE)


async def test_a_store_has_one_handler(nats: str, apart: MakeOptions) -> None:
    async with stores(nats, apart(), 1) as (one,):
        await one.serve(echo)
        with pytest.raises(LocalError, match="serve was already called"):
            await one.serve(echo)


async def test_handlers_begin_in_the_order_of_sending_and_run_at_once(nats: str, apart: MakeOptions) -> None:
    begun: list[bytes] = []
    all_begun = asyncio.Event()

    async def handle(data: bytes) -> bytes:
        begun.append(data[:4])
        if len(begun) == 200:
            all_begun.set()
        await all_begun.wait()  # no handler ends before the last one has begun
        return data[:4]

    async with stores(nats, apart()) as (one, other):
        await other.serve(handle)
        # Every tenth is large, and takes longer on its way than those that follow it.
        sizes = [3 * 1024 * 1024 if n % 10 == 0 else 10 for n in range(200)]
        requests = [b"%04d" % n + bytes(size) for n, size in enumerate(sizes)]
        answers = await asyncio.gather(
            *(one.request(other.store_id, request, timeout=DEADLINE) for request in requests)
        )
        expected = [b"%04d" % n for n in range(200)]
        assert begun == expected
        assert answers == expected


async def test_a_large_request_of_one_sender_does_not_delay_another(nats: str, apart: MakeOptions) -> None:
    async with stores(nats, apart(), 3) as (one, two, server):
        ended: list[str] = []

        async def ask(store: JetStreamStore, size: int, name: str) -> None:
            await store.request(server.store_id, bytes(size), timeout=DEADLINE)
            ended.append(name)

        async def handle(data: bytes) -> bytes:
            return b""

        await server.serve(handle)
        large = asyncio.create_task(ask(one, 2 * LARGE, "large"))
        await asyncio.sleep(0)
        await ask(two, 10, "small")
        await large
        assert ended == ["small", "large"]


@pytest.mark.parametrize(
    "size",
    [0, exchange.INLINE, exchange.INLINE + 1, exchange.PIECE_BYTES, exchange.PIECE_BYTES + 1, LARGE],
)
async def test_a_request_and_its_reply_may_have_any_size(
    nats: str, apart: MakeOptions, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    async def backwards(data: bytes) -> bytes:
        return data[::-1]

    monkeypatch.setattr(exchange, "MOST_OFFERED", size)  # a body that is kept leaves no room for the next
    async with stores(nats, apart()) as (one, other):
        await other.serve(backwards)
        for _ in range(3):
            data = os.urandom(size)
            assert await one.request(other.store_id, data, timeout=DEADLINE) == data[::-1]


async def test_what_is_too_large_is_refused_before_it_is_sent(nats: str, apart: MakeOptions) -> None:
    asked: list[bytes] = []

    async def handle(data: bytes) -> bytes:
        asked.append(data)
        return bytes(65 * 1024 * 1024)

    async with stores(nats, apart()) as (one, other):
        await other.serve(handle)
        with pytest.raises(StoreError, match="68157440 bytes, at most 67108864"):
            await one.request(other.store_id, bytes(65 * 1024 * 1024), timeout=DEADLINE)
        assert asked == []
        with pytest.raises(StoreError, match="failed to handle a request"):
            await one.request(other.store_id, b"give me much", timeout=DEADLINE)


async def test_large_messages_under_way_are_bounded(
    nats: str, apart: MakeOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "MOST_OFFERED", LARGE)
    is_handled = asyncio.Event()

    async def handle(data: bytes) -> bytes:
        is_handled.set()
        await asyncio.Event().wait()
        return b""

    async with stores(nats, apart()) as (one, other):
        await other.serve(handle)
        first = asyncio.create_task(one.request(other.store_id, bytes(LARGE), timeout=DEADLINE))
        await is_handled.wait()
        with pytest.raises(StoreBusy, match="too many large messages"):
            await one.request(other.store_id, bytes(LARGE), timeout=DEADLINE)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        with pytest.raises(TimeoutError):
            await one.request(other.store_id, bytes(LARGE), timeout=0.1)


async def test_a_lost_reply_is_a_timeout_and_the_request_was_handled_once(
    nats: str, apart: MakeOptions
) -> None:
    handled: list[bytes] = []

    async def handle(data: bytes) -> bytes:
        handled.append(data)
        if len(handled) == 1:
            await asyncio.Event().wait()  # the reply never comes
        return b"done"

    async with stores(nats, apart()) as (one, other):
        await other.serve(handle)
        with pytest.raises(TimeoutError, match=rf"store {other.store_id} sent no reply within 0\.3 s"):
            await one.request(other.store_id, b"1", timeout=0.3)
        assert handled == [b"1"]
        assert await one.request(other.store_id, b"2", timeout=10) == b"done", "the others go on"


async def test_a_request_with_a_lost_piece_is_dropped_and_the_next_one_arrives(
    nats: str, apart: MakeOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "PIECE_WAIT", 0.3)
    options, handled = apart(), asyncio.Queue[int]()

    async def handle(data: bytes) -> bytes:
        handled.put_nowait(len(data))
        return b""

    asked: list[bytes] = []

    async def lose_last(message: Msg) -> None:
        asked.append(message.data)
        if b'"piece":3' not in message.data:
            await message.respond(bytes(exchange.PIECE_BYTES))

    async with stores(nats, options, 1) as (store,), plain_client(nats) as client:
        await store.serve(handle)
        await client.subscribe(f"{options.name}.piece.ghost", cb=lose_last)
        to = f"{options.name}.request.{store.store_id}"
        large = b'{"sender":"ghost","offer":"x","size":%d}\n' % (4 * exchange.PIECE_BYTES)
        await client.publish(to, large, reply="nobody")
        await client.request(to, b'{"sender":"ghost"}\n12', timeout=DEADLINE)
        assert await handled.get() == 2
        assert handled.empty()
        assert len(asked) == 4


async def test_a_handler_that_fails_says_so_and_tells_no_details(nats: str, apart: MakeOptions) -> None:
    async def handle(data: bytes) -> bytes:
        raise ValueError("the secret of this store")

    async with stores(nats, apart()) as (one, other):
        await other.serve(handle)
        with pytest.raises(StoreError, match="failed to handle a request") as error:
            await one.request(other.store_id, b"", timeout=10 * DEADLINE)
        assert "secret" not in str(error.value)


async def test_closing_a_store_ends_requests_on_both_sides(nats: str, apart: MakeOptions) -> None:
    async with stores(nats, apart(), 3) as (one, two, three):
        begun = asyncio.Queue[bytes]()

        async def handle(data: bytes) -> bytes:
            begun.put_nowait(data)
            await asyncio.Event().wait()
            return b""

        await two.serve(handle)
        first = asyncio.create_task(one.request(two.store_id, b"1", timeout=10 * DEADLINE))
        second = asyncio.create_task(three.request(two.store_id, b"2", timeout=10 * DEADLINE))
        for _ in range(2):
            await begun.get()
        await three.aclose()
        with pytest.raises(StoreError, match="the store is closed"):
            await second
        await two.aclose()
        with pytest.raises(TimeoutError, match="was closed while it handled a request"):
            await first


async def test_messages_that_nobody_understands_are_ignored(nats: str, apart: MakeOptions) -> None:
    options = apart()
    async with stores(nats, options) as (one, other), plain_client(nats) as client:
        await other.serve(echo)
        heard: asyncio.Queue[bytes] = asyncio.Queue()
        await other.listen("news", lambda _, data: heard.put_nowait(data))
        for junk in (b"", b"{}", b"\xff\xfe", b'{"sender":1}\n', b'{"sender":"x","offer":"y","size":-1}\n'):
            await client.publish(f"{options.name}.request.{other.store_id}", junk)
            await client.publish(f"{options.name}.announce.news", junk)
        await client.flush()
        assert await one.request(other.store_id, b"1", timeout=10) == b"1"
        await one.announce("news", b"2")
        assert await heard.get() == b"2"


async def test_requests_cross_a_cluster_and_outlive_a_server(
    nats_cluster: NatsCluster, apart: MakeOptions
) -> None:
    options = apart(replicas=3)
    addresses = [f"nats://127.0.0.1:{server.port}" for server in nats_cluster.servers]
    async with (
        JetStreamStore(addresses[0], options) as one,
        JetStreamStore(addresses[1], options) as two,
        JetStreamStore(nats_cluster.address, options) as three,
        asyncio.timeout(DEADLINE),
    ):
        for store in (two, three):
            await store.serve(echo)
            await store.begin_lease()
        data = os.urandom(LARGE)

        async def answers(store: JetStreamStore) -> bool:
            try:
                return await one.request(store.store_id, data, timeout=10) == data
            except (NobodyAnswers, TimeoutError):
                return False

        for store in (two, three):
            await until(lambda store=store: answers(store))
        status = await one.status()
        assert [stream.name for stream in status] == sorted(
            [f"{options.name}-{kind}" for kind in ("claims", "index", "notes")]
            + [f"{options.name}-{kind}-{n}" for kind in ("journal", "snapshot") for n in range(2)]
        )
        assert {stream.replicas for stream in status} == {3}
        assert {stream.leader for stream in status} <= {server.name for server in nats_cluster.servers}
        nats_cluster.servers[2].kill()
        for store in (two, three):
            await until(lambda store=store: answers(store))
        assert {peer.store_id for peer in await one.peers()} == {two.store_id, three.store_id}
