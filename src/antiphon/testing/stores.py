"""The contract of a store, as functions: `check_store(make)`, `check_shared_store(make)` for two, and
`check_damaged_store(make, damage)` for one that lost something.

`make` is called anew for each check and opens an empty store (or two that keep the same things). A failed
check raises `AssertionError` with the promise that was broken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

from antiphon.errors import (
    CursorInvalid,
    SessionClaimed,
    SessionExists,
    SessionUnknown,
    StaleWriter,
    StoreError,
)
from antiphon.stores.base import Batch, RecordPatch, SessionRecord, Store
from antiphon.testing import store_arrivals, store_faults
from antiphon.testing.store_faults import Damage
from antiphon.testing.store_samples import events, read_all, refused, session

Make = Callable[[], AbstractAsyncContextManager[Store]]
MakeTwo = Callable[[], AbstractAsyncContextManager[tuple[Store, Store]]]
DEADLINE = 20.0


async def check_store(make: Make, *, deadline: float = DEADLINE) -> None:
    """Run every check of the contract against stores opened by `make`."""
    for check in CHECKS:
        async with make() as store:
            await _in_time(check.__name__, check(store), deadline)


async def check_shared_store(make: MakeTwo, *, deadline: float = DEADLINE) -> None:
    """Run the checks for two stores that share what they keep."""
    for check in SHARED_CHECKS:
        async with make() as (one, other):
            await _in_time(check.__name__, check(one, other), deadline)


async def check_damaged_store(make: Make, damage: Damage, *, deadline: float = DEADLINE) -> None:
    """Run the checks for a store of which something is missing. `damage` takes the first batch of a session
    away, behind the back of the store."""
    for check in DAMAGE_CHECKS:
        async with make() as store:
            await _in_time(check.__name__, check(store, damage), deadline)


async def _in_time(name: str, checking: Coroutine[Any, Any, None], deadline: float) -> None:
    try:
        async with asyncio.timeout(deadline):
            await checking
    except TimeoutError as error:
        raise AssertionError(f"{name}: not done within {deadline:g} s") from error


async def a_journal_comes_back_as_it_was_written(store: Store) -> None:
    await store.create(session("a"))
    assert await read_all(store, "a") == []
    batches = [events(1, 1), events(2, 65), events(66, 66)]
    for batch in batches:
        await store.append("a", batch)
    written = [event for batch in batches for event in batch.events]
    assert await read_all(store, "a") == written, "events were lost, changed or put in another order"
    assert await read_all(store, "a", limit_bytes=1) == written, "small pages make up the same journal"
    page = await store.read("a", 0)
    assert (page.cursor, page.last) == (66, 66)


async def reading_starts_after_any_cursor(store: Store) -> None:
    await store.create(session("a"))
    for first in (1, 11, 21):
        await store.append("a", events(first, first + 9))
    whole = list(events(1, 30).events)
    for after in range(31):
        assert await read_all(store, "a", after=after) == whole[after:], f"after {after} something else came"
    assert (await store.read("a", 100)).batches == (), "behind the end there is nothing"


async def a_page_keeps_to_its_limit(store: Store) -> None:
    await store.create(session("a"))
    for seq in range(1, 41):
        await store.append("a", Batch(seq, (b"[%s]" % (b"x" * 998),)))
    page = await store.read("a", 0, limit_bytes=10_000)
    assert 1 <= len(page.batches) <= 11, "a page of ten kilobytes had more than eleven batches of one"
    assert page.last == 40
    assert len(await read_all(store, "a", limit_bytes=10_000)) == 40


async def a_large_event_is_kept(store: Store) -> None:
    await store.create(session("a"))
    large = b'"' + b"x" * 20_000_000 + b'"'
    await store.append("a", Batch(1, (b"1", large, b"3")))
    assert await read_all(store, "a") == [b"1", large, b"3"]


async def a_stale_writer_is_refused_and_writes_nothing(store: Store) -> None:
    await store.create(session("a"))
    await store.append("a", events(1, 3))
    for batch in (events(1, 1), events(3, 4), events(5, 5)):
        stale = store.append("a", batch, record=RecordPatch(title="stale"))
        await refused(StaleWriter, stale, f"a batch from {batch.first} was taken after event 3")
    found = await store.get("a")
    assert found is not None
    assert (found.last, found.title) == (3, None), "a refused append changed something"
    await store.append("a", events(4, 4))
    assert await read_all(store, "a") == list(events(1, 4).events)


async def of_two_writers_at_once_one_wins(store: Store) -> None:
    await store.create(session("a"))
    for seq in range(1, 21):
        batches = [Batch(seq, (b'{"writer":%d}' % writer,)) for writer in range(5)]
        outcomes = await asyncio.gather(
            *(store.append("a", batch) for batch in batches), return_exceptions=True
        )
        winners = [n for n, outcome in enumerate(outcomes) if outcome is None]
        assert len(winners) == 1, f"{len(winners)} writers of event {seq} were told that they wrote it"
        assert all(isinstance(outcome, StaleWriter | None) for outcome in outcomes), outcomes
        assert await read_all(store, "a", after=seq - 1) == list(batches[winners[0]].events)


async def sessions_do_not_touch_each_other(store: Store) -> None:
    names = [f"s{n}" for n in range(20)]

    async def write(name: str) -> None:
        await store.create(session(name))
        for first in range(1, 40, 4):
            await store.append(name, events(first, first + 3), record=RecordPatch(title=name))

    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(write(name))
    for name in names:
        assert await read_all(store, name) == list(events(1, 40).events)
        assert (await store.get(name)) == SessionRecord(
            session_id=name, cwd="/site", title=name, created_at=0, updated_at=0, last=40
        )


async def what_is_no_journal_is_refused(store: Store) -> None:
    await store.create(session("a"))
    for wrong in (store.append("a", Batch(1, (b"1\n2",))), store.read("a", -1), store.save_parts("a", 1, {})):
        try:
            await wrong
        except ValueError:
            continue
        raise AssertionError(
            "two lines as one event, a negative cursor or a snapshot of the future was taken"
        )
    assert await read_all(store, "a") == []


async def a_batch_that_cannot_be_read_back_is_refused_whole(store: Store) -> None:
    await store.create(session("a"))
    await store.append("a", events(1, 1))
    wrong: tuple[tuple[bytes, ...], ...] = (
        (b'{"seq":2}', b'{"seq":\n3}', b'{"seq":4}'),
        (b'{"seq":2}', b'{"seq":3}\n'),
        (b"\n",),
        (b"",),
        (b'{"seq":2,"text":"\xff"}',),
        (b'{"seq":2,"text":"\xed\xa0\x80"}',),
    )
    for lines in wrong:
        try:
            await store.append("a", Batch(2, lines), record=RecordPatch(title="unreadable"))
        except ValueError:
            continue
        raise AssertionError(f"events that cannot be read back were taken: {lines!r}")
    async with store.arrival(session("b")) as arriving:
        try:
            await arriving.append(Batch(1, (b'{"seq":1}\n',)))
        except ValueError:
            pass
        else:
            raise AssertionError("an arriving session was given an event of two lines")
    await store.append("a", events(2, 2))
    assert await read_all(store, "a") == list(events(1, 2).events)
    found = await store.get("a")
    assert found is not None
    assert found.title is None, "a refused append changed something"


async def a_record_is_kept_and_changes_with_an_append(store: Store) -> None:
    record = SessionRecord(
        session_id="a",
        cwd="/home/é",
        additional_directories=("/b", "/a"),
        title="first",
        created_at=1_700_000_000_000,
        updated_at=1_700_000_000_001,
        state="idle",
        meta={"antiphon": {"n": [1, None, "é"]}},
    )
    await store.create(record)
    assert await store.get("a") == record
    await refused(SessionExists, store.create(session("a")), "a session was made twice")
    assert await store.get("a") == record, "a refused session replaced the one that was there"
    patch = RecordPatch(title=None, updated_at=1_700_000_000_002, state="running")
    await store.append("a", events(1, 2), record=patch)
    changed = SessionRecord(
        session_id="a",
        cwd="/home/é",
        additional_directories=("/b", "/a"),
        title=None,
        created_at=1_700_000_000_000,
        updated_at=1_700_000_000_002,
        state="running",
        last=2,
        meta={"antiphon": {"n": [1, None, "é"]}},
    )
    assert await store.get("a") == changed, "what a patch leaves out stays, what it sets to null is cleared"
    await store.update("a", RecordPatch(cwd="/", additional_directories=(), meta={}))
    found = await store.get("a")
    assert found is not None
    assert (found.cwd, found.additional_directories, found.meta, found.state) == ("/", (), {}, "running")


async def a_waiting_call_returns_when_the_journal_grows(store: Store) -> None:
    await store.create(session("a"))
    await store.create(session("b"))
    one = asyncio.ensure_future(store.grown("a", 0))
    two = asyncio.ensure_future(store.grown("a", 1))
    given_up = asyncio.ensure_future(store.grown("a", 0))
    await asyncio.sleep(0)
    given_up.cancel()
    await store.append("b", events(1, 5))
    await store.append("a", events(1, 1))
    assert await one == 1
    assert not two.done(), "growth up to the cursor is no growth after it"
    await store.append("a", events(2, 4))
    assert await two == 4
    assert await store.grown("a", 2) == 4, "what is there already is not waited for"
    await asyncio.wait([given_up])


async def a_snapshot_is_updated_in_parts(store: Store) -> None:
    await store.create(session("a"))
    assert await store.load_parts("a") == (0, {}, None)
    await store.append("a", events(1, 9))
    await store.save_parts("a", 3, {"m1": b"one", "m2": b"two", "state": b"\x00\xff\n"})
    assert await store.load_parts("a") == (3, {"m1": b"one", "m2": b"two", "state": b"\x00\xff\n"}, None)
    await store.save_parts("a", 9, {"m2": b"two, longer", "m3": b"", "state": None, "never": None})
    kept = (9, {"m1": b"one", "m2": b"two, longer", "m3": b""}, None)
    assert await store.load_parts("a") == kept
    older = store.save_parts("a", 8, {"m1": b"older", "m2": None})
    await refused(StaleWriter, older, "a snapshot was replaced by an older one")
    assert await store.load_parts("a") == kept, "a refused snapshot changed a part"


async def a_snapshot_is_read_in_pages_by_name(store: Store) -> None:
    await store.create(session("a"))
    await store.append("a", events(1, 1))
    parts = {f"part/{n:03}": bytes(n) for n in range(50)}
    await store.save_parts("a", 1, {name: parts[name] for name in reversed(parts)})
    read: dict[str, bytes] = {}
    after: str | None = ""
    pages = 0
    while after is not None:
        upto, page, after = await store.load_parts("a", after=after, limit_bytes=100)
        assert upto == 1
        assert page, "a page that is not the last holds something"
        assert sum(map(len, page.values())) < 200, "a page is about as large as was asked for"
        read |= page
        pages += 1
    assert list(read.items()) == list(parts.items()), "pages in order are the whole snapshot"
    assert pages > 5
    assert await store.load_parts("a", after="part/049") == (1, {}, None)


async def sessions_are_listed_newest_first_and_once(store: Store) -> None:
    for n in range(25):
        await store.create(session(f"s{n:02}", at=n // 2, cwd="/even" if n % 2 == 0 else "/odd"))
    everything = [f"s{n:02}" for n in reversed(range(25))]
    assert [record.session_id for record in (await store.list()).records] == everything
    seen: list[str] = []
    after, page = None, 0
    while True:
        records, after = await store.list(after=after, limit=4)
        seen += [record.session_id for record in records]
        # Between the pages sessions come, go and change.
        await store.create(session(f"new{page}", at=100))
        await store.append(f"s{page:02}", events(1, 1), record=RecordPatch(updated_at=1000))
        await store.delete(seen[0])
        page += 1
        if after is None:
            break
    assert seen == everything, "a session that was there all the while was missed or listed twice"
    even, more = await store.list(cwd="/even", limit=3)
    assert [record.cwd for record in even] == ["/even"] * 3
    assert more is not None
    assert await store.list(cwd="/nowhere") == ((), None)


async def a_made_up_list_cursor_is_refused(store: Store) -> None:
    await store.create(session("a"))
    for cursor in ("", "nonsense", "é", "e30=", "WzFd"):
        await refused(CursorInvalid, store.list(after=cursor), f"the list cursor {cursor!r} was taken")


async def a_deleted_session_is_gone_with_all_it_had(store: Store) -> None:
    await store.create(session("a"))
    for first in range(1, 400, 2):
        await store.append("a", events(first, first + 1))
    await store.save_parts("a", 400, {"m": b"part"})
    waiting = asyncio.ensure_future(store.grown("a", 400))
    await asyncio.sleep(0)
    assert await store.delete("a")
    await refused(SessionUnknown, waiting, "a call still waits for a deleted session")
    assert not await store.delete("a"), "what is gone cannot be deleted"
    assert await store.get("a") is None
    assert (await store.list()).records == ()
    await store.create(session("a"))
    assert await read_all(store, "a") == [], "a new session has the journal of a deleted one"
    assert await store.load_parts("a") == (0, {}, None), "a new session has the snapshot of a deleted one"
    await store.claim("a", "another owner")


async def an_unknown_session_is_an_error(store: Store) -> None:
    assert await store.get("a") is None
    for call in (
        store.append("a", events(1, 1)),
        store.append("a", events(1, 1), record=RecordPatch(title="t")),
        store.update("a", RecordPatch(title="t")),
        store.read("a", 0),
        store.grown("a", 0),
        store.save_parts("a", 0, {}),
        store.load_parts("a"),
        store.claim("a", "owner"),
    ):
        await refused(SessionUnknown, call, "a session that is not there was used")
    await store.release("a", "owner")


async def a_session_has_one_owner(store: Store) -> None:
    await store.create(session("a"))
    await store.claim("a", "the editor")
    await store.claim("a", "the editor")
    error = await refused(SessionClaimed, store.claim("a", "the terminal"), "two owners hold one session")
    assert error.owner == "the editor", "the refusal does not name the owner of the session"
    assert "the editor" in str(error)
    await store.release("a", "the terminal")
    await refused(SessionClaimed, store.claim("a", "the terminal"), "a claim was released by somebody else")
    await store.release("a", "the editor")
    await store.claim("a", "the terminal")


async def after_closing_everything_is_refused(store: Store) -> None:
    await store.create(session("a"))
    waiting = asyncio.ensure_future(store.grown("a", 0))
    appends = [asyncio.ensure_future(store.append("a", events(n, n))) for n in range(1, 11)]
    await asyncio.sleep(0)
    await store.aclose()
    await store.aclose()
    assert await asyncio.gather(*appends) == [None] * 10, "closing finishes what was begun"
    await asyncio.wait([waiting])
    for call in (store.append("a", events(11, 11)), store.read("a", 0), store.get("a"), store.list()):
        await refused(StoreError, call, "a closed store was used")


async def two_stores_write_one_journal_in_turns(one: Store, other: Store) -> None:
    await one.create(session("a"))
    await refused(SessionExists, other.create(session("a")), "two stores made the same session")
    for seq in range(1, 101):
        writer, behind = (one, other) if seq % 2 else (other, one)
        await writer.append("a", events(seq, seq))
        await refused(StaleWriter, behind.append("a", events(seq, seq)), "a stale store was not refused")
    assert await read_all(one, "a") == await read_all(other, "a") == list(events(1, 100).events)


async def growth_is_seen_by_the_other_store(one: Store, other: Store) -> None:
    await one.create(session("a"))
    for seq in range(1, 6):
        waiting = asyncio.ensure_future(other.grown("a", seq - 1))
        await asyncio.sleep(0)
        await one.append("a", events(seq, seq))
        assert await waiting == seq
    waiting = asyncio.ensure_future(other.grown("a", 5))
    await asyncio.sleep(0)
    await one.delete("a")
    await refused(SessionUnknown, waiting, "a session that the other store deleted is waited for")


async def a_claim_holds_against_the_other_store_until_it_closes(one: Store, other: Store) -> None:
    await one.create(session("a"))
    await one.claim("a", "same words")
    await refused(SessionClaimed, other.claim("a", "same words"), "two stores own one session")
    await other.release("a", "same words")
    await refused(SessionClaimed, other.claim("a", "same words"), "a store released the claim of another")
    await one.aclose()
    await other.claim("a", "same words")


CHECKS: tuple[Callable[[Store], Coroutine[Any, Any, None]], ...] = (
    a_journal_comes_back_as_it_was_written,
    reading_starts_after_any_cursor,
    a_page_keeps_to_its_limit,
    a_large_event_is_kept,
    a_stale_writer_is_refused_and_writes_nothing,
    of_two_writers_at_once_one_wins,
    sessions_do_not_touch_each_other,
    what_is_no_journal_is_refused,
    a_batch_that_cannot_be_read_back_is_refused_whole,
    a_record_is_kept_and_changes_with_an_append,
    a_waiting_call_returns_when_the_journal_grows,
    a_snapshot_is_updated_in_parts,
    a_snapshot_is_read_in_pages_by_name,
    sessions_are_listed_newest_first_and_once,
    a_made_up_list_cursor_is_refused,
    a_deleted_session_is_gone_with_all_it_had,
    an_unknown_session_is_an_error,
    a_session_has_one_owner,
    *store_arrivals.CHECKS,
    *store_faults.CHECKS,
    after_closing_everything_is_refused,
)
SHARED_CHECKS: tuple[Callable[[Store, Store], Coroutine[Any, Any, None]], ...] = (
    two_stores_write_one_journal_in_turns,
    growth_is_seen_by_the_other_store,
    a_claim_holds_against_the_other_store_until_it_closes,
    store_arrivals.another_store_leaves_an_arrival_alone,
)
DAMAGE_CHECKS: tuple[Callable[[Store, Damage], Coroutine[Any, Any, None]], ...] = (
    store_faults.a_hole_is_reported_and_nothing_is_deleted,
)
