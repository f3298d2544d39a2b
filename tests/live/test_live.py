"""A live session: committed before published, one order for all, and no cut shows where a client joined."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.engine.journals import replay

from antiphon.engine.events import AnyBody, Event, Updated, encode_event
from antiphon.engine.session import Session
from antiphon.errors import LocalError, SessionUnknown, StoreError, StoreFull
from antiphon.live.attachment import Attachment
from antiphon.live.session import LiveSession
from antiphon.live.snapshot_saver import SNAPSHOT_EVERY
from antiphon.live.tail import TAIL_BYTES, Stretch
from antiphon.schema import v2
from antiphon.stores import SQLiteStore
from antiphon.stores.base import Batch, Page
from antiphon.stores.memory import MemoryStore

DEADLINE = 60.0


def said(text: str, message_id: str = "m") -> v2.AgentMessageChunk:
    return v2.AgentMessageChunk(message_id=v2.MessageId(message_id), content=v2.TextContent(text=text))


def chunk(text: str, message_id: str = "m") -> AnyBody:
    return Updated.of(said(text, message_id))


def texts(events: list[Event]) -> list[str]:
    updates: list[Any] = [event.body.update for event in events if isinstance(event.body, Updated)]
    return [update.content.text for update in updates]


def clock() -> int:
    return 1_800_000_000_000


async def create(store: Any, session_id: str = "s") -> LiveSession:
    return await LiveSession.create(store, session_id=session_id, cwd="/", clock=clock)


class Gated(MemoryStore):
    """A store whose commits can be held back, or made to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: StoreError | None = None
        self.commits = 0
        self.reads = 0

    async def read(self, *arguments: Any, **options: Any) -> Page:
        self.reads += 1
        return await super().read(*arguments, **options)

    async def append(self, *arguments: Any, **options: Any) -> None:
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        self.commits += 1
        await super().append(*arguments, **options)


class Client:
    """Collects what an attachment writes; `congested` makes it stop taking."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.arrived = asyncio.Event()
        self.room = asyncio.Event()
        self.room.set()

    def write(self, stretch: Stretch) -> None:
        self.events += stretch.events
        self.arrived.set()

    @property
    def congested(self) -> bool:
        return not self.room.is_set()

    async def drain(self) -> None:
        await self.room.wait()

    async def until(self, last: int) -> None:
        async with asyncio.timeout(DEADLINE):
            while not self.events or self.events[-1].seq < last:
                self.arrived.clear()
                await self.arrived.wait()


@asynccontextmanager
async def following(live: LiveSession, client: Client, **options: Any) -> AsyncIterator[Attachment]:
    attachment = Attachment(live, client.write, client, cursor=options.pop("cursor", None))
    task = asyncio.ensure_future(attachment.follow(**options))
    try:
        yield attachment
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_an_event_reaches_a_client_only_after_the_store_has_it() -> None:
    store, client = Gated(), Client()
    async with await create(store) as live, following(live, client):
        store.gate.clear()
        seq = live.emit([chunk("one"), chunk("two")])
        assert live.fold.messages[0].text == "onetwo", "the fold runs ahead"
        durable = asyncio.ensure_future(live.durable())
        for _ in range(10):
            await asyncio.sleep(0)
        assert client.events == []
        assert not durable.done()
        store.gate.set()
        await client.until(seq)
        await durable
        assert texts(client.events) == ["one", "two"]
        record = await store.get("s")
        assert record is not None
        assert record.last == seq


async def test_what_is_committed_leaves_in_the_same_step_for_everybody_who_is_at_the_tail() -> None:
    """One event alone waits for nothing: not for others, and not for a turn of the loop."""
    store, clients = Gated(), [Client() for _ in range(3)]
    async with await create(store) as live, AsyncExitStack() as stack:
        for client in clients:
            await stack.enter_async_context(following(live, client))
        await asyncio.sleep(0)
        live.emit([chunk("one")])
        await live.durable()
        assert [texts(client.events) for client in clients] == [["one"]] * 3


async def test_a_client_that_cannot_be_written_to_costs_the_others_nothing() -> None:
    class Broken(Client):
        def write(self, stretch: Stretch) -> None:
            raise ZeroDivisionError

    broken, client = Broken(), Client()
    async with await create(MemoryStore()) as live, following(live, client):
        failing = asyncio.ensure_future(Attachment(live, broken.write, broken).follow())
        await asyncio.sleep(0)
        seq = live.emit([chunk("one"), chunk("two")])
        await client.until(seq)
        live.emit([chunk("three")])
        await live.durable()
        assert texts(client.events) == ["one", "two", "three"]
        with pytest.raises(ZeroDivisionError):
            await failing


async def test_who_was_left_behind_comes_after_from_where_it_was() -> None:
    """Also where the next commit comes before it has noticed."""
    client, store = Client(), MemoryStore()
    async with await create(store) as live, following(live, client) as attachment:
        await client.until(live.emit([chunk("one")]))
        client.room.clear()
        events = [Event(live.fold.last_seq + n, 0, chunk(text)) for n, text in ((1, "two"), (2, "three"))]
        live.fold.fold(events)
        await store.append("s", Batch(events[0].seq, tuple(map(encode_event, events))))
        live.journal.publish(Stretch(events[:1]))
        client.room.set()
        live.journal.publish(Stretch(events[1:]))
        async with asyncio.timeout(DEADLINE):
            await attachment.reached(events[-1].seq)
        assert texts(client.events) == ["one", "two", "three"]


async def test_a_session_that_rests_keeps_no_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.live.journal.TAIL_SECONDS", 0.05)
    late, client = Client(), Client()
    store = Gated()
    async with await create(store) as live, following(live, client):
        seq = live.emit([chunk("one"), chunk("two")])
        await client.until(seq)
        store.reads = 0
        await live.journal.stretches(seq - 1)
        assert store.reads == 0
        forgotten = asyncio.Event()
        asyncio.get_running_loop().call_later(0.2, forgotten.set)  # the timers of a loop ring in order
        await forgotten.wait()
        await live.journal.stretches(seq - 1)
        assert store.reads == 1
        async with following(live, late, cursor=seq - 2):
            await late.until(live.emit([chunk("three")]))
        assert texts(late.events) == ["one", "two", "three"]
        assert texts(client.events) == ["one", "two", "three"]


async def test_a_client_that_left_is_handed_nothing_more() -> None:
    client = Client()
    async with await create(MemoryStore()) as live:
        async with following(live, client):
            await client.until(live.emit([chunk("one")]))
        live.emit([chunk("two")])
        await live.durable()
        assert texts(client.events) == ["one"]


async def test_what_was_emitted_during_a_commit_goes_into_the_next_one() -> None:
    store = Gated()
    async with await create(store) as live:
        store.commits = 0
        store.gate.clear()
        live.emit([chunk("0")])
        await asyncio.sleep(0)
        for n in range(1, 100):
            live.emit([chunk(str(n))])
        store.gate.set()
        await live.durable()
        assert store.commits == 2


async def test_every_attachment_gets_the_same_events_once_in_one_order() -> None:
    clients = [Client() for _ in range(5)]
    async with await create(MemoryStore()) as live, asyncio.TaskGroup() as group:
        tasks = []
        for n in range(300):
            if n % 60 == 0:
                client = clients[n // 60]
                attachment = Attachment(live, client.write, client)
                tasks.append(group.create_task(attachment.follow()))
            live.emit([chunk(str(n))])
            if n % 7 == 0:
                await asyncio.sleep(0)
        last = live.fold.last_seq
        for client in clients:
            await client.until(last)
        for task in tasks:
            task.cancel()
        for n, client in enumerate(clients):
            assert texts(client.events) == [str(text) for text in range(n * 60, 300)]


async def test_a_replay_and_what_follows_it_have_no_gap_and_no_overlap() -> None:
    """Joined in the middle of a stream, while part of it is not committed yet."""
    store, client = Gated(), Client()
    async with await create(store) as live:
        live.emit([chunk("a")])
        await live.durable()
        store.gate.clear()
        live.emit([chunk("b")])
        shown = live.fold.messages[0].text
        begun: list[str] = []

        async def begin() -> None:
            begun.append(shown)

        async with following(live, client, begin=begin):
            live.emit([chunk("c")])
            for _ in range(5):
                await asyncio.sleep(0)
            assert begun == [], "what is not in the store is not replayed"
            store.gate.set()
            await client.until(live.fold.last_seq)
            assert "".join([*begun, *texts(client.events)]) == "abc"


class Drained(Client):
    """A client that always has room, and counts how often it is asked for some."""

    asked = 0

    async def drain(self) -> None:
        self.asked += 1
        assert self.asked < 100, "the loop is never given back while events are not committed"


async def test_a_client_that_comes_back_by_its_cursor_waits_for_events_that_are_not_committed() -> None:
    store, client = Gated(), Drained()
    async with await create(store) as live:
        cursor = live.emit([chunk("a")])
        await live.durable()
        store.gate.clear()
        last = live.emit([chunk("b")])
        attachment = Attachment(live, client.write, client, cursor=cursor)

        async def begin() -> None:
            await attachment.catch_up(last)

        task = asyncio.ensure_future(attachment.follow(begin=begin))
        for _ in range(5):
            await asyncio.sleep(0)
        early = [*client.events], task.done()
        store.gate.set()
        assert early == ([], False)
        await client.until(last)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert texts(client.events) == ["b"]


async def test_a_client_that_stops_reading_holds_up_nobody_and_catches_up_from_the_store() -> None:
    slow, quick, store = Client(), Client(), Gated()
    async with await create(store) as live, following(live, slow), following(live, quick):
        slow.room.clear()
        big = "x" * 10_000
        total = 3 * TAIL_BYTES // len(big)
        for n in range(total):
            live.emit([chunk(f"{n} {big}")])
            if n % 50 == 0:
                await live.durable()
        await quick.until(live.fold.last_seq)
        assert len(slow.events) < total
        store.reads = 0
        slow.room.set()
        await slow.until(live.fold.last_seq)
        assert store.reads
        assert [event.seq for event in slow.events] == [event.seq for event in quick.events]
        assert texts(slow.events) == texts(quick.events)


async def test_a_store_that_fails_takes_nothing_back_that_was_seen_and_lets_nothing_more_in() -> None:
    store, client = Gated(), Client()
    async with await create(store) as live, following(live, client):
        seen = live.emit([chunk("kept")])
        await client.until(seen)
        store.failure = StoreFull("the disk is full")
        live.emit([chunk("lost")])
        with pytest.raises(StoreFull):
            await live.durable()
        with pytest.raises(StoreFull):
            live.emit([chunk("refused")])
        assert texts(client.events) == ["kept"]
    store.failure = None
    async with await LiveSession.open(store, "s", clock=clock) as again:
        assert again.fold.messages[0].text == "kept"


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("events", [3, SNAPSHOT_EVERY + 100])
async def test_a_session_brought_back_is_the_session_that_was(kind: str, events: int, tmp_path: Path) -> None:
    store: Any = MemoryStore() if kind == "memory" else SQLiteStore(tmp_path / "s.db")
    async with await create(store) as live:
        for n in range(events):
            live.emit([chunk(f"{n} ", message_id=f"m{n % 9}")])
            if n % 500 == 0:
                await live.durable()
        before = live.fold
    kept = await store.load_parts("s")
    assert kept.upto == before.last_seq, "closing brings the snapshot up to date"
    assert kept.parts
    async with await LiveSession.open(store, "s", clock=clock) as again:
        assert again.fold == before
        live_again = again.emit([chunk("more", message_id="new")])
        await again.durable()
        assert live_again == before.last_seq + 1
    await store.aclose()


async def test_a_session_without_a_snapshot_is_brought_back_from_its_journal_alone() -> None:
    store = MemoryStore()
    live = await create(store)
    async with live:
        live.emit([chunk("a"), chunk("b")])
        await live.durable()
        copy = Session()
        page = await store.read("s", 0)
        from antiphon.engine.events import decode_event

        copy.fold(decode_event(line) for batch in page.batches for line in batch.events)
        assert copy == live.fold


async def test_an_unknown_session_and_a_closed_one_are_clear_errors() -> None:
    store = MemoryStore()
    with pytest.raises(SessionUnknown):
        await LiveSession.open(store, "nobody", clock=clock)
    async with await create(store) as live:
        pass
    with pytest.raises(LocalError, match="session s is closed"):
        live.emit([chunk("late")])


async def test_what_is_streamed_is_what_is_emitted() -> None:
    store, client = MemoryStore(), Client()
    async with await create(store) as live, following(live, client):
        live.emit([chunk("a")])
        live.stream(said("b"))
        live.stream(said("c"))
        assert live.fold.messages[0].text == "abc", "who looks sees all of it"
        live.stream(said("d"))
        live.emit([chunk("e")])
        live.stream(said("f", "n"))
        await client.until(live.fold.last_seq)
        assert texts(client.events) == ["a", "b", "c", "d", "e", "f"]
        assert [event.seq for event in client.events] == list(range(2, 8))
        assert [message.text for message in live.fold.messages] == ["abcde", "f"]
    with pytest.raises(LocalError, match="session s is closed"):
        live.stream(said("late"))


async def test_a_producer_that_never_pauses_gets_its_snapshots_all_the_same() -> None:
    store = MemoryStore()
    async with await create(store) as live:
        kept = 0
        while kept == 0:
            live.stream(said("x" * 1000))
            assert live.fold.last_seq < 10 * SNAPSHOT_EVERY, "no snapshot came"
            if live.ahead:
                await live.durable()
                live.stream(said("while the snapshot is on its way"))
            kept = (await store.load_parts("s")).upto
    async with await LiveSession.open(store, "s", clock=clock) as again:
        assert again.fold == live.fold


@pytest.mark.parametrize("wanted", [0, 1, 3, 100])
async def test_a_session_is_shown_while_it_is_read_as_far_as_somebody_wants_it(
    wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.live.stored_session.PREVIEW_BYTES", 1)
    store = MemoryStore()
    async with await create(store) as live:
        live.emit([chunk(f"text {n}", message_id=f"m{n}") for n in range(10)])
    shown: list[bytes] = []

    def preview(updates: list[bytes]) -> bool:
        shown.extend(updates)
        return len(shown) < wanted

    async with await LiveSession.open(store, "s", clock=clock, preview=preview) as again:
        assert again.fold == live.fold
        assert shown == list(replay(live.fold))[: max(wanted, 1)]


async def test_what_came_after_the_snapshot_is_never_missing_from_what_is_shown() -> None:
    """A journal that goes on after its snapshot: nothing is shown ahead, for it would be out of date."""
    store = MemoryStore()
    async with await create(store) as live:
        live.emit([chunk("a")])
    await store.append("s", Batch(3, (encode_event(Event(3, 0, chunk("b"))),)))
    shown: list[bytes] = []

    def preview(updates: list[bytes]) -> bool:
        shown.extend(updates)
        return True

    async with await LiveSession.open(store, "s", clock=clock, preview=preview) as again:
        assert shown == []
        assert again.fold.messages[0].text == "ab"
