"""A full disk and a damaged file: told clearly, and nothing lost that was readable."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.errors import StoreCorrupt, StoreFull
from antiphon.stores import Batch, SQLiteStore, glance
from antiphon.testing.store_samples import events, read_all, session

LIMITED = """
import asyncio, resource, sys
from antiphon.errors import StoreError
from antiphon.stores import SQLiteStore
from antiphon.testing.store_samples import events, read_all, session

async def main():
    async with SQLiteStore(sys.argv[1]) as store:
        await store.create(session("a"))
        await store.append("a", events(1, 100))
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
        last, refusals = 100, 0
        while refusals < 5:
            try:
                await store.append("a", events(last + 1, last + 100))
            except StoreError as error:
                assert "refused a write" in str(error) or "no room" in str(error), error
                refusals += 1
            else:
                last += 100
            assert len(await read_all(store, "a")) == last
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await store.append("a", events(last + 1, last + 100))
        print(last + 100)

asyncio.run(main())
"""


def edit(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement, values)
    connection.close()


async def read_around(store: SQLiteStore, session_id: str) -> tuple[list[bytes], list[StoreCorrupt]]:
    """All that can be read of a damaged journal, and the damages on the way."""
    found: list[bytes] = []
    damages: list[StoreCorrupt] = []
    cursor = 0
    while True:
        try:
            page = await store.read(session_id, cursor, limit_bytes=2000)
        except StoreCorrupt as damage:
            damages.append(damage)
            if damage.resume is None:
                return found, damages
            cursor = damage.resume
        else:
            if not page.batches:
                assert page.cursor == page.last
                return found, damages
            found += [event for batch in page.batches for event in batch.events]
            cursor = page.cursor


async def test_a_full_disk_refuses_an_append_whole_and_the_next_may_succeed(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SQLiteStore(path) as store:
        for name in "ab":
            await store.create(session(name))
        assert store._connections is not None
        store._connections[0].execute("PRAGMA max_page_count = 100")
        last = 0
        refusal = None
        while refusal is None and last < 50_000:
            try:
                await store.append("a", events(last + 1, last + 500))
                last += 500
            except StoreFull as full:
                refusal = full
        assert last > 0
        assert f"no room to write {path}" in str(refusal)
        assert await read_all(store, "a") == list(events(1, last).events)
        outcomes = await asyncio.gather(
            store.append("a", events(last + 1, last + 20_000)),
            store.append("b", events(1, 1)),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [StoreFull, type(None)], "the small one still fits"
        store._connections[0].execute("PRAGMA max_page_count = 100000")
        await store.append("a", events(last + 1, last + 500))
    async with SQLiteStore(path) as store:
        assert await read_all(store, "a") == list(events(1, last + 500).events)
        assert await read_all(store, "b") == list(events(1, 1).events)


def test_a_write_that_the_system_cuts_off_leaves_nothing_half_written(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    result = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
    last = int(result.stdout)

    async def check() -> None:
        async with SQLiteStore(path) as store:
            assert await read_all(store, "a") == list(events(1, last).events)

    asyncio.run(check())


async def test_a_hole_is_reported_and_both_sides_of_it_are_readable(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SQLiteStore(path) as store:
        await store.create(session("a"))
        for first in range(1, 51, 10):
            await store.append("a", events(first, first + 9))
        edit(path, "DELETE FROM batches WHERE first = 21")
        page = await store.read("a", 0)
        assert [batch.last for batch in page.batches] == [10, 20]
        assert page.last > page.cursor, "it does not look like the end"
        with pytest.raises(StoreCorrupt, match=r"s\.db is damaged in session a: events 21 to 30 are missing"):
            await store.read("a", 20)
        found, damages = await read_around(store, "a")
        assert found == [*events(1, 20).events, *events(31, 50).events]
        assert [damage.resume for damage in damages] == [30]


@pytest.mark.parametrize("torn", [b'{"only":"one"}', "text", None])
async def test_a_torn_batch_is_reported_and_the_others_are_readable(tmp_path: Path, torn: object) -> None:
    path = tmp_path / "s.db"
    async with SQLiteStore(path) as store:
        await store.create(session("a"))
        for first in range(1, 51, 10):
            await store.append("a", events(first, first + 9))
        if torn is None:
            edit(path, "UPDATE batches SET first = first + 1 WHERE first = 21")
        else:
            edit(path, "UPDATE batches SET events = ? WHERE first = 21", torn)
        found, damages = await read_around(store, "a")
        assert len(damages) >= 1
        assert found[:20] == list(events(1, 20).events)
        assert found[-20:] == list(events(31, 50).events)


@pytest.mark.parametrize("garbage", [b"\xff", b"\x00"])
async def test_a_damaged_page_costs_no_more_than_what_was_on_it(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "s.db"
    async with SQLiteStore(path) as store:
        for name in ("sick", "well"):
            await store.create(session(name))
            for seq in range(1, 301):
                await store.append(name, Batch(seq, (b'{"in":"%s","seq":%06d}' % (name.encode(), seq),)))
            await store.save_parts(name, 300, {"m": b"part"})
    content = bytearray(path.read_bytes())
    start = content.index(b'{"in":"sick","seq":000150}') // 4096 * 4096
    lost = content[start : start + 4096].count(b'"sick"')
    content[start : start + 4096] = garbage * 4096
    path.write_bytes(content)
    async with SQLiteStore(path) as store:
        assert len((await store.list()).records) == 2
        assert len(await read_all(store, "well")) == 300
        assert await store.load_parts("sick") == (300, {"m": b"part"}, None)
        found, damages = await read_around(store, "sick")
        assert len(found) == 300 - lost
        assert damages
        assert all("s.db is damaged in session sick" in str(damage) for damage in damages)
        await store.append("well", Batch(301, (b"1",)))
        await store.append("sick", Batch(301, (b"1",)))
        assert (await read_around(store, "sick"))[0][-1] == b"1"


async def test_a_file_that_was_cut_off_is_reported_by_name(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SQLiteStore(path) as store:
        await store.create(session("a"))
        for first in range(1, 3000, 100):
            await store.append("a", events(first, first + 99))
    with path.open("r+b") as file:
        file.truncate(8192)
    store = SQLiteStore(path)
    with pytest.raises(StoreCorrupt, match=r"s\.db"):
        await read_all(store, "a")
    await store.aclose()


async def test_a_schema_that_is_not_utf_8_is_reported_as_damage(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SQLiteStore(path) as store:
        await store.create(session("a"))
    content = path.read_bytes()
    assert content.count(b"tableclaimsclaims") == 1
    path.write_bytes(content.replace(b"tableclaimsclaims", b"table\xe3laimsclaims"))
    with pytest.raises(StoreCorrupt, match="not UTF-8"):
        async with SQLiteStore(path):
            pass
    with pytest.raises(sqlite3.DatabaseError, match="not UTF-8"):
        glance(path)
