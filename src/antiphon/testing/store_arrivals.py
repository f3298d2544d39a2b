"""The contract of a store: sessions that come with the journal they have already."""

from __future__ import annotations

import msgspec

from antiphon.errors import SessionExists, StaleWriter
from antiphon.stores.base import Store
from antiphon.testing.store_samples import events, read_all, refused, session


async def an_arriving_session_is_seen_when_it_is_whole(store: Store) -> None:
    record = session("new", at=7)
    async with store.arrival(record) as arriving:
        await arriving.append(events(1, 3))
        await refused(StaleWriter, arriving.append(events(5, 6)), "a gap in an arriving journal is refused")
        await arriving.append(events(4, 6))
        assert await store.get("new") is None, "a session that is arriving is not there yet"
        assert not (await store.list()).records, "a session that is arriving is not listed"
        await arriving.finish()
    assert await store.get("new") == msgspec.structs.replace(record, last=6)
    assert await read_all(store, "new") == list(events(1, 6).events)
    await store.claim("new", "me")
    await store.append("new", events(7, 7))


async def of_an_unfinished_arrival_nothing_is_left(store: Store) -> None:
    async with store.arrival(session("lost")) as arriving:
        await arriving.append(events(1, 3))
    assert await store.get("lost") is None
    await store.create(session("lost"))
    assert not await read_all(store, "lost"), "a new session has nothing of an arrival that failed"
    async with store.arrival(session("lost")) as arriving:
        await arriving.append(events(1, 1))
        await refused(SessionExists, arriving.finish(), "an arrival replaces no session")
    assert not await read_all(store, "lost")


async def sessions_that_arrive_together_are_seen_together(store: Store) -> None:
    async with store.arrival(session("one")) as arriving:
        await arriving.append(events(1, 2))
        beside = await arriving.beside(session("two"))
        await beside.append(events(1, 3))
        assert await store.get("two") is None
        await arriving.finish()
    assert await read_all(store, "one") == list(events(1, 2).events)
    assert await read_all(store, "two") == list(events(1, 3).events)
    async with store.arrival(session("three")) as arriving:
        await arriving.append(events(1, 1))
        beside = await arriving.beside(session("two"))
        await beside.append(events(1, 1))
        await refused(SessionExists, arriving.finish(), "an arrival replaces no session")
    assert await store.get("three") is None, "of those that arrive together one came alone"
    assert await read_all(store, "two") == list(events(1, 3).events)


async def another_store_leaves_an_arrival_alone(one: Store, other: Store) -> None:
    async with one.arrival(session("new")) as arriving:
        await arriving.append(events(1, 3))
        await other.create(session("beside"))
        assert [record.session_id for record in (await other.list()).records] == ["beside"]
        await arriving.finish()
    assert await read_all(other, "new") == list(events(1, 3).events)


CHECKS = (
    an_arriving_session_is_seen_when_it_is_whole,
    of_an_unfinished_arrival_nothing_is_left,
    sessions_that_arrive_together_are_seen_together,
)
