"""What stores of one installation say to each other: leases, owners, requests and announcements."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import RawStreamMsg
from nats.js.errors import BadRequestError
from tests.stores.conftest import MakeOptions
from tests.stores.nats_servers import NatsCluster

from antiphon.errors import (
    LocalError,
    NobodyAnswers,
    SessionClaimed,
    SessionUnknown,
    StaleWriter,
    StoreBusy,
    StoreError,
)
from antiphon.stores import (
    Claim,
    JetStreamOptions,
    JetStreamStore,
    MemoryStore,
    Owner,
    Peer,
    SharedStore,
    SQLiteStore,
)
from antiphon.stores.jetstream import exchange
from antiphon.stores.jetstream.journal import SessionJournal
from antiphon.testing.store_samples import events, read_all, session

DEADLINE = 60.0
LARGE = 20 * 1024 * 1024


@asynccontextmanager
async def stores(
    address: str, options: JetStreamOptions, count: int = 2
) -> AsyncIterator[list[JetStreamStore]]:
    async with AsyncExitStack() as stack, asyncio.timeout(DEADLINE):
        yield [await stack.enter_async_context(JetStreamStore(address, options)) for _ in range(count)]


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Ask again until something holds."""
    async with asyncio.timeout(DEADLINE):
        while not await holds():  # noqa: ASYNC110 -- another process or server changes it
            await asyncio.sleep(0.05)


async def echo(data: bytes) -> bytes:
    return data


def test_only_stores_for_several_hosts_are_shared() -> None:
    assert isinstance(JetStreamStore("nats://127.0.0.1"), SharedStore)
    assert not isinstance(MemoryStore(), SharedStore)
    assert not isinstance(object.__new__(SQLiteStore), SharedStore)


# --- leases -------------------------------------------------------------------------------------------

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


@contextmanager
def process_with_lease(address: str, options: JetStreamOptions) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HAS_A_LEASE, address, options.name, f"{options.lease}"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return (await asyncio.wait_for(asyncio.to_thread(process.stdout.readline), DEADLINE)).strip()


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
    async with stores(nats, options, 1) as (store,):
        for session_id in ("a", "b"):
            await store.create(session(session_id))
        with process_with_lease(nats, options) as process:
            store_id = await line(process)
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
    async with stores(nats, options, 1) as (store,):
        for session_id in ("a", "b"):
            await store.create(session(session_id))
        with process_with_lease(nats, options) as process:
            first = await line(process)
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


@asynccontextmanager
async def plain_client(address: str) -> AsyncIterator[Client]:
    client = Client()
    await client.connect(address)
    try:
        yield client
    finally:
        await client.close()


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


# --- requests -----------------------------------------------------------------------------------------


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


async def test_the_status_counts_what_streams_keep(nats: str, apart: MakeOptions) -> None:
    options = apart()
    async with stores(nats, options, 1) as (one,):
        await one.create(session("a"), batch=events(1, 3))
        status = {stream.name: stream for stream in await one.status()}
        assert len(status) == 7
        journals = [status[f"{options.name}-journal-{n}"] for n in range(2)]
        assert sum(stream.messages for stream in journals) == 1
        assert sum(stream.bytes for stream in journals) > 0
        assert {stream.lag for stream in status.values()} == {0}


# --- announcements ------------------------------------------------------------------------------------


async def test_announcements_reach_all_other_stores_in_order(nats: str, apart: MakeOptions) -> None:
    async with stores(nats, apart(), 3) as (one, two, three):
        heard: dict[str, list[tuple[str, bytes]]] = {store.store_id: [] for store in (one, two, three)}
        ended = {store.store_id: asyncio.Event() for store in (two, three)}
        for store in (one, two, three):

            def receive(sender: str, data: bytes, name: str = store.store_id) -> None:
                heard[name].append((sender, data))
                if data == b"end":
                    ended[name].set()

            await store.listen("presence", receive)
        said = [b"%d" % n if n % 10 else os.urandom(200_000) for n in range(1, 50)] + [b"end"]
        for data in said:
            await one.announce("presence", data)
            await one.announce("limits", b"nobody listens to this")
        for event in ended.values():
            await event.wait()
        expected = [(one.store_id, data) for data in said]
        assert heard == {one.store_id: [], two.store_id: expected, three.store_id: expected}


async def test_a_listener_that_fails_hears_the_next_announcement(nats: str, apart: MakeOptions) -> None:
    async with stores(nats, apart()) as (one, other):
        heard: asyncio.Queue[bytes] = asyncio.Queue()

        def receive(_: str, data: bytes) -> None:
            if data == b"1":
                raise ValueError("a bug")
            heard.put_nowait(data)

        await other.listen("news", receive)
        for data in (b"1", b"2"):
            await one.announce("news", data)
        assert await heard.get() == b"2"


async def test_a_topic_that_is_no_name_is_refused(nats: str, apart: MakeOptions) -> None:
    async with stores(nats, apart(), 1) as (one,):
        for topic in ("", "a.b", ">", "two words"):
            with pytest.raises(LocalError, match="topic must be"):
                await one.announce(topic, b"")
            with pytest.raises(LocalError, match="topic must be"):
                await one.listen(topic, lambda *_: None)
