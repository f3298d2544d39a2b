"""The contract of a store: sessions that are damaged are reported, and never deleted for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from antiphon.errors import SessionUnknown, StoreCorrupt
from antiphon.stores.base import Batch, Fault, FaultKind, Store
from antiphon.testing.store_samples import events, read_all, refused, session

Damage = Callable[[Store, str], Awaitable[None]]
"""Takes the first batch of a session away, behind the back of the store."""


async def a_session_is_created_with_its_first_events(store: Store) -> None:
    await store.create(session("a"), batch=events(1, 3))
    found = await store.get("a")
    assert found is not None
    assert found.last == 3, "a session is there with its first events or not at all"
    assert await read_all(store, "a") == list(events(1, 3).events)
    await store.append("a", events(4, 4))


async def a_fault_is_listed_until_the_session_is_deleted(store: Store) -> None:
    for name in ("well", "sick"):
        await store.create(session(name), batch=events(1, 3))
    fault = Fault(FaultKind.DAMAGED, "event 2 cannot be read")
    await store.note_fault("sick", fault)
    faults = {record.session_id: record.fault for record in (await store.list()).records}
    assert faults == {"well": None, "sick": fault}, "a list tells which sessions are damaged"
    found = await store.get("sick")
    assert found is not None
    assert found.fault == fault
    assert await read_all(store, "sick") == list(events(1, 3).events), "a noted fault changes nothing"
    await store.note_fault("sick", None)
    found = await store.get("sick")
    assert found is not None
    assert found.fault is None, "a repaired session still has its fault"
    await store.note_fault("sick", fault)
    assert await store.delete("sick"), "a user may delete a damaged session"
    await store.create(session("sick"))
    found = await store.get("sick")
    assert found is not None
    assert found.fault is None, "a new session has the fault of a deleted one"


async def a_session_without_events_stays(store: Store) -> None:
    await store.create(session("a"))
    assert await read_all(store, "a") == []
    assert await store.get("a") is not None, "reading a session without events deleted it"
    assert [record.session_id for record in (await store.list()).records] == ["a"]


async def a_snapshot_can_be_dropped(store: Store) -> None:
    await store.create(session("a"), batch=events(1, 9))
    await store.save_parts("a", 9, {"m1": b"one", "m2": b"two"})
    await store.drop_snapshot("a")
    assert await store.load_parts("a") == (0, {}, None)
    await store.save_parts("a", 3, {"m1": b"again"})
    assert await store.load_parts("a") == (3, {"m1": b"again"}, None), "a dropped snapshot is in the way"
    assert await read_all(store, "a") == list(events(1, 9).events), "the journal is not the snapshot's"
    await refused(SessionUnknown, store.drop_snapshot("none"), "a snapshot of no session was dropped")


async def a_hole_is_reported_and_nothing_is_deleted(store: Store, damage: Damage) -> None:
    for name in ("well", "sick"):
        await store.create(session(name), batch=events(1, 3))
        await store.append(name, events(4, 6))
    await damage(store, "sick")
    for _ in range(2):  # looking does not change it
        error = await refused(StoreCorrupt, store.read("sick", 0), "missing events were passed over")
        assert error.resume == 3, "the error does not say where the journal continues"
        assert error.found, "the error does not say what is missing"
        assert await read_all(store, "sick", after=3) == list(events(4, 6).events)
        found = await store.get("sick")
        assert found is not None, "a damaged session was deleted"
        assert found.last == 6
    assert await read_all(store, "well") == list(events(1, 6).events), "the damage spread"
    assert {record.session_id for record in (await store.list()).records} == {"well", "sick"}
    await store.append("well", Batch(7, (b"{}",)))
    assert await store.delete("sick"), "a user may delete a damaged session"
    assert await store.get("sick") is None


CHECKS = (
    a_session_is_created_with_its_first_events,
    a_fault_is_listed_until_the_session_is_deleted,
    a_session_without_events_stays,
    a_snapshot_can_be_dropped,
)
