"""A damaged SQLite file: what is wrong is reported, the rest is listed and read, and nothing is deleted."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from antiphon.errors import StoreCorrupt, StoreError
from antiphon.stores import Batch, SQLiteStore
from antiphon.stores.sqlite.check import DamageCheck
from antiphon.testing.store_samples import events, read_all, session


def edit(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement, values)


async def fill(path: Path, *names: str, batches: int = 3) -> None:
    """A file with these sessions, each with some batches of ten events."""
    async with SQLiteStore(path) as store:
        for at, name in enumerate(names):
            await store.create(session(name, at=at + 1), batch=events(1, 10))
            for first in range(11, batches * 10, 10):
                await store.append(name, events(first, first + 9))


async def listed(store: SQLiteStore, limit: int = 50) -> dict[str, str | None]:
    """The sessions of a list, page by page, with what is wrong with them."""
    found: dict[str, str | None] = {}
    after = None
    while True:
        page = await store.list(after=after, limit=limit)
        for record in page.records:
            assert record.session_id not in found
            found[record.session_id] = None if record.fault is None else record.fault.found
        after = page.next
        if after is None:
            return found


@pytest.mark.parametrize("limit", [1, 2, 50])
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("meta", "{"),
        ("meta", b"\xff\xfe"),
        ("meta", "[1]"),
        ("meta", "[" * 5000),
        ("additional_directories", "null"),
        ("cwd", b"\xff"),
        ("title", b"\x00\xff"),
        ("created_at", "tomorrow"),
        ("created_at", b"\x00"),
        ("created_at", 2.5),
        ("updated_at", "never"),
        ("state", b"\xff"),
    ],
)
async def test_one_damaged_row_keeps_no_other_from_being_listed(
    tmp_path: Path, column: str, value: object, limit: int
) -> None:
    path = tmp_path / "s.db"
    await fill(path, "a", "b", "c")
    edit(path, f"UPDATE sessions SET {column} = CAST(? AS {_kind(value)}) WHERE id = 'b'", value)
    async with SQLiteStore(path) as store:
        found = await listed(store, limit)
        assert set(found) == {"a", "b", "c"}
        assert (found["a"], found["c"]) == (None, None)
        if value != 2.5:
            assert found["b"] == f"its record cannot be read: {column}"
            record = await store.get("b")
            assert record is not None
            assert record.fault is not None
            assert record.fault.in_record
        assert len(await read_all(store, "b")) == 30
        assert await store.delete("b")
        assert set(await listed(store)) == {"a", "c"}


def _kind(value: object) -> str:
    return "BLOB" if isinstance(value, bytes) else "REAL" if isinstance(value, float) else "TEXT"


async def test_a_session_whose_id_is_damaged_is_named_after_its_key(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await fill(path, "a", "b")
    edit(path, "UPDATE sessions SET id = x'ff00' WHERE id = 'b'")
    async with SQLiteStore(path) as store:
        assert set(await listed(store)) == {"a", "damaged-2"}
        assert len(await read_all(store, "damaged-2")) == 30
        assert await store.get("damaged-1") is None, "a session that has an id has no other"
        assert await store.delete("damaged-2")
        assert set(await listed(store)) == {"a"}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE batches SET first = 'x' WHERE first = 11",
        "UPDATE batches SET last = 'x' WHERE first = 11",
        "UPDATE batches SET last = 20.5 WHERE first = 11",
        "UPDATE batches SET last = x'00' WHERE first = 11",
        "UPDATE batches SET events = 7 WHERE first = 11",
        "UPDATE batches SET first = -4 WHERE first = 11",
        "UPDATE batches SET first = 15 WHERE first = 11",
        "UPDATE batches SET first = 5 WHERE first = 11",
        "UPDATE batches SET events = substr(events, 1, 40) WHERE first = 11",
        "DELETE FROM batches WHERE first = 11",
        "DELETE FROM batches WHERE first = 1",
    ],
)
async def test_a_row_of_another_shape_is_damage_and_the_others_are_read(
    tmp_path: Path, statement: str
) -> None:
    path = tmp_path / "s.db"
    await fill(path, "sick")
    edit(path, statement)
    await fill(path, "well")
    async with SQLiteStore(path) as store:
        assert len(await read_all(store, "well")) == 30
        cursor, read, damages = 0, 0, list[str]()
        for _ in range(20):
            try:
                page = await store.read("sick", cursor)
            except StoreCorrupt as damage:
                damages.append(damage.found)
                if damage.resume is None or damage.resume <= cursor:
                    break
                cursor = damage.resume
            else:
                read += sum(len(batch.events) for batch in page.batches)
                cursor = page.cursor
                if not page.batches:
                    break
        assert damages
        assert not [found for found in damages if not found or str(tmp_path) in found]
        assert read >= 10
        report = await store.check(seconds=20)
        assert report.whole
        assert list(report.faults) == ["sick"]
        assert (await listed(store)).keys() == {"sick", "well"}
        assert (await listed(store))["sick"]
        assert await store.delete("sick")


async def test_garbage_that_has_the_right_count_is_found_by_the_check(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await fill(path, "json", "text", "well")
    line = bytes(events(12, 12).events[0])
    for name, flipped in (("json", line.replace(b"{", b"[")), ("text", line.replace(b"\xc3", b"\xff"))):
        key = f"(SELECT key FROM sessions WHERE id = '{name}')"
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            select = f"SELECT events FROM batches WHERE first = 11 AND session = {key}"
            (blob,) = connection.execute(select).fetchone()
            connection.execute(
                f"UPDATE batches SET events = ? WHERE first = 11 AND session = {key}",
                (blob.replace(line, flipped),),
            )
    async with SQLiteStore(path) as store:
        report = await store.check(seconds=20)
        assert {id: fault.found for id, fault in report.faults.items()} == {
            "json": "the batch of events 11 to 20 is no JSON",
            "text": "the batch of events 11 to 20 is no JSON",
        }
        assert report.problems == ()


async def test_a_damaged_page_of_the_table_of_sessions_costs_what_was_on_it(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    names = [f"s{number:03}" for number in range(120)]
    async with SQLiteStore(path) as store:
        for at, name in enumerate(names):
            record = session(name, at=at, cwd=f"/{'w' * 300}/{name}")
            await store.create(record, batch=events(1, 2))
    content = bytearray(path.read_bytes())
    start = content.index(f"/{'w' * 300}/s060".encode()) // 4096 * 4096
    content[start : start + 4096] = b"\xff" * 4096
    path.write_bytes(content)
    async with SQLiteStore(path) as store:
        found = await listed(store, limit=50)
        assert set(found) == set(names), "the index still has their ids"
        damaged = [name for name, fault in found.items() if fault]
        assert "s060" in damaged
        assert 1 <= len(damaged) < 30
        well = next(name for name in names if name not in damaged)
        assert len(await read_all(store, well)) == 2
        report = await store.check(seconds=20)
        assert report.problems, "quick_check finds the page"
        assert set(damaged) <= report.faults.keys()
        record = await store.get("s060")
        assert record is not None
        assert record.fault is not None


async def test_a_file_that_was_cut_off_is_not_written_to_and_what_is_left_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await fill(path, "early")
    async with SQLiteStore(path) as store:
        await store.create(session("late", at=9))
        for seq in range(1, 200):
            await store.append("late", Batch(seq, (b'"%s"' % (b"x" * 3000),)))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 // 4096 * 4096)
    before = path.read_bytes()
    store = SQLiteStore(path)
    with pytest.raises(StoreCorrupt, match=r"s\.db is damaged: database disk image is malformed"):
        await store.open()
    await store.aclose()
    async with SQLiteStore(path, read_only=True) as store:
        assert set(await listed(store)) == {"early", "late"}
        assert len(await read_all(store, "early")) == 30
        page = await store.read("late", 0)
        assert page.batches
        with pytest.raises(StoreError, match="for reading only"):
            await store.delete("early")
        report = await store.check(seconds=20)
        assert "late" in report.faults
        assert "early" not in report.faults
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"\x00" * 8192, b"SQLite format 3\x00" + b"\xff" * 4080, b"hello " * 100]
)
async def test_a_file_without_a_readable_header_is_refused_and_left_alone(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(content)
    for read_only in (False, True):
        store = SQLiteStore(path, read_only=read_only)
        with pytest.raises(StoreError, match=r"s\.db"):
            await store.open()
        await store.aclose()
    assert path.read_bytes() == content


async def test_an_empty_file_is_a_new_one_and_an_old_empty_file_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "s.db"
    path.touch(mode=0o600)
    async with SQLiteStore(path) as store:
        assert await listed(store) == {}
    assert "store file empty" not in caplog.text
    path.write_bytes(b"")
    os.utime(path, (time.time() - 3600,) * 2)
    async with SQLiteStore(path) as store:
        assert await listed(store) == {}
    assert "store file empty" in caplog.text


async def log_of(path: Path, *names: str) -> bytes:
    """The write-ahead log of a file with these sessions, as a killed process leaves it."""
    async with SQLiteStore(path) as store:
        for name in names:
            await store.create(session(name), batch=events(1, 10))
        return path.with_name(f"{path.name}-wal").read_bytes()


async def test_a_log_without_its_file_is_not_thrown_away(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    log = await log_of(path, "a")
    path.write_bytes(b"")
    beside = tmp_path / "s.db-wal"
    beside.write_bytes(log)
    store = SQLiteStore(path)
    with pytest.raises(StoreCorrupt, match=r"is empty, and its write-ahead log s\.db-wal is not"):
        await store.open()
    await store.aclose()
    assert beside.read_bytes() == log


@pytest.mark.parametrize("others", [("x",), ("x", "y", "z")])
async def test_the_log_of_another_file_is_not_applied(tmp_path: Path, others: tuple[str, ...]) -> None:
    ours, other = tmp_path / "ours.db", tmp_path / "other.db"
    await fill(ours, "a", "b")
    log = await log_of(other, *others)
    beside = tmp_path / "ours.db-wal"
    beside.write_bytes(log)
    before = ours.read_bytes()
    store = SQLiteStore(ours)
    with pytest.raises(StoreCorrupt, match="belongs to another file"):
        await store.open()
    await store.aclose()
    assert (ours.read_bytes(), beside.read_bytes()) == (before, log)
    beside.unlink()
    (tmp_path / "ours.db-shm").unlink(missing_ok=True)
    async with SQLiteStore(ours) as store:
        assert set(await listed(store)) == {"a", "b"}
        assert len(await read_all(store, "a")) == 30


async def test_the_log_that_a_killed_process_left_is_applied(tmp_path: Path) -> None:
    here, copy = tmp_path / "here.db", tmp_path / "copy.db"
    async with SQLiteStore(here) as store:
        await store.create(session("a"), batch=events(1, 10))
        await store.delete("a")
        await store.create(session("b"), batch=events(1, 10))
        shutil.copy(here, copy)
        shutil.copy(tmp_path / "here.db-wal", tmp_path / "copy.db-wal")
    async with SQLiteStore(copy) as store:
        assert set(await listed(store)) == {"b"}
        assert len(await read_all(store, "b")) == 10


async def test_a_check_ends_in_time_and_says_that_it_is_not_whole(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await fill(path, "a")
    checking = DamageCheck(path, patience=1)
    checking.stop()
    assert not (await checking.run(20)).whole
    async with SQLiteStore(path) as store:
        report = await store.check(seconds=20)
        assert report == ((), {}, True)


async def test_a_deleted_session_whose_journal_is_damaged_keeps_no_store_from_opening(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "s.db"
    await fill(path, "well")
    async with SQLiteStore(path) as store:
        await store.create(session("sick", at=9))
        for seq in range(1, 100):
            await store.append("sick", Batch(seq, (b'{"in":"sick","seq":%06d}' % seq + b" " * 900,)))
    content = bytearray(path.read_bytes())
    start = content.index(b'{"in":"sick","seq":000050}') // 4096 * 4096
    content[start : start + 4096] = b"\xff" * 4096
    path.write_bytes(content)
    for _ in range(2):
        async with SQLiteStore(path) as store:
            await store.delete("sick")
            assert set(await listed(store)) == {"well"}
            assert len(await read_all(store, "well")) == 30
    assert "deleted session not removed from the file" in caplog.text


async def test_a_damaged_list_of_deletions_takes_no_session_that_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await fill(path, "a", "b")
    edit(path, "INSERT INTO deletions SELECT key FROM sessions WHERE id = 'a'")
    async with SQLiteStore(path) as store:
        assert await listed(store) == {"a": None, "b": None}
        assert len(await read_all(store, "a")) == 30
        await store.delete("a")
        await store.delete("b")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM batches").fetchone() == (0,)


async def test_an_index_that_names_another_session_deletes_none(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await fill(path, "first-session", "other-session")
    content = path.read_bytes()
    ids = [b"\x03\x27\x09first-session", b"\x03\x27\x01other-session\x02"]
    assert [content.count(entry) for entry in ids] == [1, 1]
    path.write_bytes(content.replace(b"\x03\x27\x01other-session\x02", b"\x03\x27\x01other-session\x01"))
    async with SQLiteStore(path) as store:
        with pytest.raises(StoreCorrupt, match="the index names another one"):
            await store.delete("other-session")
        assert set(await listed(store)) == {"first-session", "other-session"}
        assert len(await read_all(store, "first-session")) == 30


@pytest.mark.parametrize("name", ["ab\0c", "x/../y", "a" * 300, b"\xff", 7])
async def test_a_damaged_claim_is_nobodys(tmp_path: Path, name: object) -> None:
    path = tmp_path / "s.db"
    await fill(path, "a")
    edit(path, "INSERT INTO claims VALUES (1, 'someone', 1, ?), (77, 'someone', 1, ?)", name, name)
    edit(path, "INSERT INTO deletions VALUES (77)")
    async with SQLiteStore(path) as store:
        await store.claim("a", "me")
        await store.append("a", events(31, 40))
        assert await store.delete("a")
