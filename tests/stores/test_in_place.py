"""Committing in place: at once where that takes no waiting, and otherwise not at all."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import StaleWriter, StoreError
from antiphon.stores import Batch, MemoryStore, SessionRecord, SQLiteStore
from antiphon.stores.base import RecordPatch, commits_in_place
from antiphon.stores.sqlite import writer as writing

DEADLINE = 60.0


def record(session_id: str = "s") -> SessionRecord:
    return SessionRecord(session_id=session_id, cwd="/", created_at=1, updated_at=1)


async def begin(store: SQLiteStore) -> None:
    await store.create(record())
    await store.append("s", Batch(1, (b"{}",)))
    await next_turn()


async def next_turn() -> None:
    """Let the writer see the end of this turn of the loop."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def kept(path: Path) -> list[bytes]:
    """The events that another process would find."""
    with sqlite3.connect(path) as other:
        rows = other.execute("SELECT events FROM batches ORDER BY last").fetchall()
    other.close()
    return [event for (events,) in rows for event in bytes(events).split(b"\n")]


@contextmanager
def locked(path: Path) -> Iterator[sqlite3.Connection]:
    """Another process in the middle of a write."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield other
    finally:
        if other.in_transaction:
            other.execute("ROLLBACK")
        other.close()


async def test_a_batch_is_in_the_file_when_the_call_returns(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db") as store:
        await begin(store)
        assert store.append_in_place("s", Batch(2, (b'"a"', b'"b"')), record=RecordPatch(title="new"))
        assert kept(store.path) == [b"{}", b'"a"', b'"b"']
        found = await store.get("s")
        assert found is not None
        assert (found.last, found.title) == (3, "new")


async def test_the_second_write_of_a_turn_of_the_loop_waits_for_the_others(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db") as store:
        await begin(store)
        assert store.free
        assert store.append_in_place("s", Batch(2, (b"2",)))
        assert not store.free
        assert not store.append_in_place("s", Batch(3, (b"3",)))
        assert kept(store.path) == [b"{}", b"2"], "nothing was done"
        await next_turn()
        assert store.append_in_place("s", Batch(3, (b"3",)))


async def test_a_batch_out_of_place_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db") as store:
        await begin(store)
        with pytest.raises(StaleWriter):
            store.append_in_place("s", Batch(7, (b"7",)))
        assert kept(store.path) == [b"{}"]


async def test_a_writer_in_another_process_is_not_waited_for_on_the_loop(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db", patience=DEADLINE) as store:
        await begin(store)
        with locked(store.path) as other:
            assert not store.append_in_place("s", Batch(2, (b"2",)))
            await next_turn()
            appending = asyncio.ensure_future(store.append("s", Batch(2, (b"2",))))
            for _ in range(100):  # the loop turns, and everybody else is served
                await asyncio.sleep(0)
            assert (await store.get("s")) is not None
            assert not appending.done()
            assert not store.free, "what comes meanwhile is committed together with it"
            other.execute("ROLLBACK")
            await asyncio.wait_for(appending, DEADLINE)
        assert kept(store.path) == [b"{}", b"2"]


async def test_after_a_slow_commit_the_loop_is_not_held_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with SQLiteStore(tmp_path / "s.db") as store:
        await begin(store)
        monkeypatch.setattr(writing, "SLOW_COMMIT", -1.0)  # every commit counts as slow
        monkeypatch.setattr(writing, "SLOW_FOR", DEADLINE)
        assert store.append_in_place("s", Batch(2, (b"2",)))
        await next_turn()
        assert not store.append_in_place("s", Batch(3, (b"3",)))
        await store.append("s", Batch(3, (b"3",)))
        assert kept(store.path) == [b"{}", b"2", b"3"]


@pytest.mark.parametrize("reason", ["power", "large", "closed", "not open yet"])
async def test_what_would_have_to_wait_is_not_committed_in_place(reason: str, tmp_path: Path) -> None:
    durability = "power" if reason == "power" else "process"
    store = SQLiteStore(tmp_path / "s.db", durability=durability)
    size = writing.IN_PLACE_BYTES + 1 if reason == "large" else 1
    if reason != "not open yet":
        await begin(store)
    if reason == "closed":
        await store.aclose()
    assert not store.append_in_place("s", Batch(2, (b"1" * size,)))
    await store.aclose()


async def test_a_store_that_changes_append_is_asked_through_it(tmp_path: Path) -> None:
    class Failing(SQLiteStore):
        async def append(self, *arguments: Any, **options: Any) -> None:
            raise StoreError("always")

    class Both(Failing):
        def append_in_place(self, *arguments: Any, **options: Any) -> bool:
            return False

    class Named(SQLiteStore):
        pass

    assert commits_in_place(Failing(tmp_path / "a.db")) is None
    assert commits_in_place(MemoryStore()) is None
    for kind in (SQLiteStore, Named, Both):
        store = kind(tmp_path / "b.db")
        assert commits_in_place(store) is store
