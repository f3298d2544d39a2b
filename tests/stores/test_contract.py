"""Every store keeps the contract that is shipped in `antiphon.testing`."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from antiphon.stores import Batch, MemoryStore, Page, SQLiteStore, Store
from antiphon.testing import check_damaged_store, check_shared_store, check_store
from antiphon.testing.stores import CHECKS, SHARED_CHECKS, Make


def memory(_: Path) -> Make:
    @asynccontextmanager
    async def make() -> AsyncIterator[Store]:
        store = MemoryStore()
        yield store
        await store.aclose()

    return make


def sqlite(folder: Path, durability: str) -> Make:
    count = iter(range(1000))

    @asynccontextmanager
    async def make() -> AsyncIterator[Store]:
        async with SQLiteStore(folder / f"{next(count)}.db", durability=durability) as store:
            yield store

    return make


def process(folder: Path) -> Make:
    return sqlite(folder, "process")


def power(folder: Path) -> Make:
    return sqlite(folder, "power")


@pytest.mark.parametrize("kind", [memory, process, power], ids=lambda kind: kind.__name__)
async def test_the_contract_is_kept(kind, tmp_path: Path) -> None:
    await check_store(kind(tmp_path))


async def test_the_contract_of_two_is_kept(tmp_path: Path) -> None:
    count = iter(range(1000))

    @asynccontextmanager
    async def make() -> AsyncIterator[tuple[Store, Store]]:
        path = tmp_path / f"{next(count)}.db"
        async with SQLiteStore(path) as one, SQLiteStore(path) as other:
            yield one, other

    await check_shared_store(make)


async def forget_in_memory(store: Store, session_id: str) -> None:
    assert isinstance(store, MemoryStore)
    del store._kept(session_id).batches[0]


async def forget_in_sqlite(store: Store, session_id: str) -> None:
    assert isinstance(store, SQLiteStore)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        key = "(SELECT key FROM sessions WHERE id = ?)"
        connection.execute(f"DELETE FROM batches WHERE first = 1 AND session = {key}", (session_id,))


@pytest.mark.parametrize(
    ("kind", "damage"),
    [(memory, forget_in_memory), (process, forget_in_sqlite)],
    ids=["memory", "sqlite"],
)
async def test_the_contract_of_a_damaged_store_is_kept(kind, damage, tmp_path: Path) -> None:
    await check_damaged_store(kind(tmp_path), damage)


async def test_the_contract_of_a_damaged_store_catches_one_that_passes_holes_over() -> None:
    class PassesHoles(MemoryStore):
        async def read(self, session_id: str, after: int, **limit: int) -> Page:
            kept = self._kept(session_id)
            batches = tuple(batch for batch in kept.batches if batch.last > after)
            return Page(batches, kept.last, kept.last)

    @asynccontextmanager
    async def make() -> AsyncIterator[Store]:
        yield PassesHoles()

    with pytest.raises(AssertionError):
        await check_damaged_store(make, forget_in_memory)


class TakesAnything(MemoryStore):
    async def append(self, session_id: str, batch: Batch, **patch: object) -> None:
        kept = self._kept(session_id)
        await super().append(session_id, Batch(kept.last + 1, batch.events))


class ForgetsTheFirst(MemoryStore):
    async def read(self, session_id: str, after: int, **limit: int) -> Page:
        return await super().read(session_id, after or 1, **limit)


class NeverTells(MemoryStore):
    async def grown(self, session_id: str, after: int) -> int:
        return await self._waiters.add("nobody", after)


class KeepsClaimsToItself(MemoryStore):
    async def claim(self, session_id: str, owner: str) -> None:
        self._kept(session_id)


@pytest.mark.parametrize("broken", [TakesAnything, ForgetsTheFirst, NeverTells, KeepsClaimsToItself])
async def test_the_contract_catches_a_store_that(broken: type[MemoryStore]) -> None:
    @asynccontextmanager
    async def make() -> AsyncIterator[Store]:
        store = broken()
        yield store
        await store.aclose()

    with pytest.raises(AssertionError):
        await check_store(make, deadline=1)


async def test_the_contract_of_two_catches_stores_that_share_nothing() -> None:
    @asynccontextmanager
    async def make() -> AsyncIterator[tuple[Store, Store]]:
        yield MemoryStore(), MemoryStore()

    with pytest.raises(AssertionError):
        await check_shared_store(make, deadline=1)


def test_the_contract_has_checks() -> None:
    assert len(CHECKS) >= 15
    assert len(SHARED_CHECKS) >= 3


def test_stores_are_stores(tmp_path: Path) -> None:
    assert isinstance(MemoryStore(), Store)
    assert isinstance(SQLiteStore(tmp_path / "not-opened.db"), Store)
    assert not list(tmp_path.iterdir()), "a store that is not used makes no file"
