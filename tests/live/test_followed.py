"""A followed session is the session that another process works in, a moment later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.engine.journals import asked, queued, replay, selected, state, update
from tests.live.shared_stores import KINDS, two_stores
from tests.live.test_live import Client, chunk, clock, create, following
from tests.live.test_texts import text
from tests.stores.nats_servers import SERVER, NatsServer, free_ports

from antiphon.engine import events as e
from antiphon.engine.events import AnyBody, Event, encode_event
from antiphon.engine.snapshot import take_dirty
from antiphon.errors import SessionDamaged, SessionTooNew, SessionUnknown, StoreBusy, StoreError
from antiphon.live.attachment import Attachment
from antiphon.live.feed import SessionFeed
from antiphon.live.followed_session import FollowedSession
from antiphon.live.session import LiveSession
from antiphon.live.stored_session import read_session
from antiphon.stores import JetStreamOptions, JetStreamStore
from antiphon.stores.base import Batch, Page, Parts
from antiphon.stores.memory import MemoryStore

DEADLINE = 60.0

TURN: list[list[AnyBody]] = [
    [queued("p1", "do it")],
    [e.PromptAccepted(message_id="p1"), update("user_message", messageId="p1", content=[]), state("running")],
    [chunk("Let me "), chunk("look.")],
    [update("tool_call_update", toolCallId="t", title="ls", status="in_progress")],
    [asked("q1"), state("requires_action")],
    [e.QuestionClosed(question_id="q1", end=e.QuestionEnd.ANSWERED, result=selected("allow_once"))],
    [state("running"), update("tool_call_update", toolCallId="t", status="completed")],
    [queued("p2", "and then this"), chunk("Done.", "m2")],
    [state("idle", stopReason="end_turn"), update("session_info_update", title="A title")],
]


async def follow(store: Any) -> FollowedSession:
    return await FollowedSession.open(store, "s", clock=clock)


async def reached(followed: FollowedSession, seq: int) -> None:
    async with asyncio.timeout(DEADLINE):
        await followed.durable(seq)


@asynccontextmanager
async def at_tail(feed: SessionFeed, client: Client) -> AsyncIterator[None]:
    async with following(feed, client):
        await asyncio.sleep(0)
        yield


# --- following ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
async def test_a_followed_session_is_the_session_that_is_written(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    here, there = Client(), Client()
    async with (
        two_stores(kind, tmp_path, request) as (one, other),
        await create(one) as live,
        await follow(other) as followed,
        at_tail(live, here),
        at_tail(followed, there),
    ):
        for bodies in TURN:
            live.emit(bodies)
            await live.durable()
        last = live.fold.last_seq
        await reached(followed, last)
        await here.until(last)
        await there.until(last)
        assert followed.fold == live.fold
        assert take_dirty(followed.fold) == take_dirty(await read_session(one, "s"))
        assert list(map(encode_event, there.events)) == list(map(encode_event, here.events))


@pytest.mark.parametrize("kind", KINDS)
async def test_a_session_can_be_followed_from_the_middle_of_a_turn(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Joined before each of its commits, while the next one is on its way."""
    async with two_stores(kind, tmp_path, request) as (one, other), await create(one) as live:
        for bodies in TURN:
            live.emit(bodies)
            client = Client()
            followed = await follow(other)
            joined = followed.fold.last_seq
            async with followed, at_tail(followed, client):
                await live.durable()
                await reached(followed, live.fold.last_seq)
                assert followed.fold == live.fold
                assert [event.seq for event in client.events] == [*range(joined + 1, live.fold.last_seq + 1)]


@pytest.mark.parametrize("kind", KINDS)
async def test_twenty_thousand_fast_chunks_arrive_in_order(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    client = Client()
    async with (
        two_stores(kind, tmp_path, request) as (one, other),
        await create(one) as live,
        await follow(other) as followed,
        at_tail(followed, client),
    ):
        for first in range(0, 20_000, 10):
            live.stream_text([text(f"{n} ", f"m{first // 5000}") for n in range(first, first + 10)])
            if live.ahead:
                await live.durable()
        last = live.fold.last_seq
        await reached(followed, last)
        await client.until(last)
        assert [event.seq for event in client.events] == list(range(2, last + 1))
        assert followed.fold == live.fold
        assert followed.fold.messages[0].text.split() == [str(n) for n in range(5000)]


async def test_other_tasks_run_while_a_large_journal_is_read() -> None:
    store, seen = MemoryStore(), list[int]()
    async with await create(store) as live:
        followed = await follow(store)
        for n in range(40):
            live.emit([chunk("x" * 100_000, f"m{n}")])
            await live.durable()
        async with followed:
            while followed.journal.last < live.fold.last_seq:
                seen.append(followed.journal.last)
                await asyncio.sleep(0)
    assert len(set(seen)) > 10


async def test_a_change_of_the_list_entry_is_reported() -> None:
    store, changes = MemoryStore(), [0]

    def changed() -> None:
        changes[0] += 1

    async with await create(store) as live, await follow(store) as followed:
        followed.observe(changed=changed, failed=lambda: None)
        await reached(followed, live.emit([chunk("a")]))
        changes[0] = 0
        await reached(followed, live.emit([chunk("b")]))
        assert changes == [0]
        await reached(followed, live.emit([update("session_info_update", title="New")]))
        assert changes == [1]


async def test_events_that_nobody_waits_for_are_read_by_their_cursor() -> None:
    store = MemoryStore()
    async with await create(store) as live, await follow(store) as followed:
        waiting = asyncio.ensure_future(followed.after(1))
        live.emit([chunk("a"), chunk("b")])
        async with asyncio.timeout(DEADLINE):
            assert [event.seq for event in await waiting] == [2, 3]
        assert [event.seq for event in await followed.after(2)] == [3]
        await followed.durable()


async def test_one_that_is_put_away_leaves_nobody_waiting() -> None:
    store = MemoryStore()
    async with await create(store), await follow(store) as followed:
        waiting = asyncio.ensure_future(followed.durable(99))
        await asyncio.sleep(0)
    for wait in (waiting, reached(followed, 99)):
        with pytest.raises(StoreError, match="session s is no longer followed"):
            await wait


# --- the end, and outages -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
async def test_a_deleted_session_is_lost(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    lost, client = asyncio.Event(), Client()
    async with two_stores(kind, tmp_path, request) as (one, other):
        async with await create(one):
            pass
        async with await follow(other) as followed:
            followed.observe(changed=lambda: None, failed=lost.set)
            attached = asyncio.ensure_future(Attachment(followed, client.write, client).follow())
            waiting = asyncio.ensure_future(followed.durable(99))
            await asyncio.sleep(0)
            await one.delete("s")
            async with asyncio.timeout(DEADLINE):
                await lost.wait()
                for task in (attached, waiting):
                    with pytest.raises(SessionUnknown):
                        await task
            assert followed.failed
            with pytest.raises(SessionUnknown):
                await followed.durable(99)


class Flaky(MemoryStore):
    """A store that cannot be read for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: Exception | None = None
        self.tries = 0
        self.tried = asyncio.Event()

    async def read(self, *arguments: Any, **options: Any) -> Page:
        self._check()
        return await super().read(*arguments, **options)

    async def grown(self, *arguments: Any, **options: Any) -> int:
        self._check()
        return await super().grown(*arguments, **options)

    def _check(self) -> None:
        if self.failure is not None:
            self.tries += 1
            if self.tries % 3 == 0:
                self.tried.set()
            raise self.failure


async def test_an_outage_is_reported_once_and_ends(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.live.followed_session.FIRST_PAUSE", 0.001)
    monkeypatch.setattr("antiphon.live.followed_session.LONGEST_PAUSE", 0.004)
    caplog.set_level(logging.WARNING, "antiphon.live")
    store, client = Flaky(), Client()
    async with await create(store) as live, await follow(store) as followed, at_tail(followed, client):
        for outage in range(1, 3):
            store.failure = StoreBusy("no server answers")
            store.tried.clear()
            last = live.emit([chunk("a"), chunk("b")])
            async with asyncio.timeout(DEADLINE):
                await store.tried.wait()
            assert not followed.failed
            store.failure = None
            await reached(followed, last)
            warned = [record for record in caplog.records if "store unreadable" in record.message]
            assert len(warned) == outage
        assert [event.seq for event in client.events] == [2, 3, 4, 5]


async def test_a_server_that_is_started_again_is_followed_again(tmp_path: Path) -> None:
    if SERVER is None:
        pytest.skip("nats-server is not installed")
    server = NatsServer(tmp_path, "alone", free_ports(1)[0])
    server.start()
    address, options = f"nats://127.0.0.1:{server.port}", JetStreamOptions(name="x", shards=1, patience=0.2)
    try:
        server.wait()
        async with JetStreamStore(address, options) as store, await create(store):
            pass
        async with JetStreamStore(address, options) as store, await follow(store) as followed:
            server.kill()
            with pytest.raises(StoreError):
                await store.read("s", 0)
            server.start()
            server.wait()
            async with (
                JetStreamStore(address, options) as writer,
                await LiveSession.open(writer, "s", clock=clock) as live,
            ):
                last = live.emit([chunk("after the outage")])
                await live.durable()
            await reached(followed, last)
            assert followed.fold.messages[0].text == "after the outage"
    finally:
        server.kill()


def damaged(seq: int) -> bytes:
    return b'{"seq":%d,"at":0,"body":{"type":"updated"' % seq


def newer(seq: int) -> bytes:
    return b'{"seq":%d,"at":0,"body":{"type":"of a later version"}}' % seq


@pytest.mark.parametrize(("line", "error"), [(damaged, SessionDamaged), (newer, SessionTooNew)])
async def test_an_event_that_cannot_be_read_ends_it(
    line: Callable[[int], bytes], error: type[StoreError]
) -> None:
    store, lost = MemoryStore(), asyncio.Event()
    async with await create(store), await follow(store) as followed:
        followed.observe(changed=lambda: None, failed=lost.set)
        good = encode_event(Event(2, 0, chunk("a")))
        await store.append("s", Batch(2, (good, line(3))))
        async with asyncio.timeout(DEADLINE):
            await lost.wait()
        with pytest.raises(error, match="event 3"):
            await followed.durable(3)
        record = await store.get("s")
        assert record is not None
        assert record.fault is not None


async def test_a_store_that_raises_anything_ends_it() -> None:
    store, lost = Flaky(), asyncio.Event()
    async with await create(store), await follow(store) as followed:
        followed.observe(changed=lambda: None, failed=lost.set)
        store.failure = ZeroDivisionError("x")
        async with asyncio.timeout(DEADLINE):
            await lost.wait()
        with pytest.raises(StoreError):
            await followed.durable(99)


# --- opening --------------------------------------------------------------------------------------------


async def test_an_unknown_session_cannot_be_followed() -> None:
    with pytest.raises(SessionUnknown):
        await follow(MemoryStore())


class Replacing(MemoryStore):
    """A store whose session is written while its snapshot is read."""

    during: Callable[[int], Any]
    pages = 0

    async def load_parts(self, session_id: str, **options: Any) -> Parts:
        self.pages += 1
        if self.pages > 1:
            await self.during(self.pages)
        return await super().load_parts(session_id, **options)


@pytest.mark.parametrize("replaced", [False, True], ids=["journal grows", "snapshot is replaced"])
async def test_a_preview_ends_where_the_session_begins_that_is_written_meanwhile(
    replaced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a message that was previewed, and changed since, would never be sent again."""
    monkeypatch.setattr("antiphon.live.stored_session.PREVIEW_BYTES", 1)
    store = Replacing()
    async with await create(store) as live:
        live.emit([chunk(f"text {n}", message_id=f"m{n}") for n in range(10)])
    first, store.pages = live.fold.last_seq, 0

    async def write(page: int) -> None:
        if page == 4:
            last = first + 1
            await store.append("s", Batch(last, (encode_event(Event(last, 0, chunk(" more", "m0"))),)))
            if replaced:
                pages = store.pages
                async with await LiveSession.open(store, "s", clock=clock):
                    pass
                store.pages = pages

    store.during = write
    shown: list[bytes] = []

    def preview(updates: list[bytes]) -> bool:
        shown.extend(updates)
        return True

    followed = await FollowedSession.open(store, "s", clock=clock, preview=preview)
    assert followed.fold.last_seq == first
    assert replay(followed.fold) == replay(live.fold)
    assert shown == replay(live.fold)[: len(shown)]
    assert shown
    async with followed:
        await reached(followed, first + 1)
        assert followed.fold.messages[0].text == "text 0 more"


async def test_a_snapshot_ahead_of_its_journal_is_damage() -> None:
    whole = MemoryStore()
    async with await create(whole) as live:
        live.emit([chunk("a"), chunk("b")])

    class Cut(MemoryStore):
        async def load_parts(self, session_id: str, **options: Any) -> Parts:
            return await whole.load_parts(session_id, **options)

    store = Cut()
    async with await create(store):
        with pytest.raises(SessionDamaged, match="events 2 to 3 are missing: a snapshot has them"):
            await follow(store)
