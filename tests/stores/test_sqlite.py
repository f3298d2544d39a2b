"""What the SQLite store promises beside the contract: its file, its versions and its commits."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from antiphon.errors import StoreBusy, StoreCorrupt, StoreError, StoreTooNew
from antiphon.stores import Batch, RecordPatch, SessionRecord, SQLiteStore
from antiphon.stores.sqlite import checkpointer as sqlite_checkpointer
from antiphon.stores.sqlite import schema as sqlite_schema
from antiphon.stores.sqlite import writer as sqlite_writer
from antiphon.stores.sqlite.checkpointer import checkpoint
from antiphon.testing.store_samples import events, read_all, session

V1 = Path(__file__).parent / "databases" / "v1.sql"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def made_from(script: Path, path: Path) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(script.read_text())
    connection.close()
    return path


async def test_only_its_owner_can_read_the_file_and_the_folder_that_was_made_for_it(tmp_path: Path) -> None:
    path = tmp_path / "made" / "sessions.db"
    before = os.umask(0o022)
    try:
        async with SQLiteStore(path) as store:
            await store.create(session("a"))
            await store.claim("a", "me")
            made = {file.name.partition("-owner-")[0]: mode(file) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert mode(path.parent) == 0o700
    assert made == {"sessions.db": 0o600, "sessions.db-wal": 0o600, "sessions.db-shm": 0o600}


async def test_what_was_appended_is_there_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    async with SQLiteStore(path) as store:
        await store.create(session("a"))
        await store.append("a", events(1, 10), record=RecordPatch(title="kept"))
        await store.save_parts("a", 10, {"m": b"part"})
    assert os.listdir(tmp_path) == ["sessions.db"], "closing leaves one file"
    async with SQLiteStore(path) as store:
        assert await read_all(store, "a") == list(events(1, 10).events)
        assert await store.load_parts("a") == (10, {"m": b"part"}, None)
        assert [record.title for record in (await store.list()).records] == ["kept"]


@pytest.mark.parametrize(("durability", "synchronous"), [("process", 1), ("power", 2)])
async def test_durability_decides_when_the_disk_is_waited_for(
    tmp_path: Path, durability: str, synchronous: int
) -> None:
    async with SQLiteStore(tmp_path / "s.db", durability=durability) as store:
        assert store._connections is not None
        writer = store._connections[0]
        assert writer.execute("PRAGMA synchronous").fetchone() == (synchronous,)
        assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="forever"):
        SQLiteStore(tmp_path / "s.db", durability="forever")


async def test_appends_that_come_together_are_committed_together(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db") as store:
        for n in range(50):
            await store.create(session(f"s{n}"))
        assert store._writer is not None
        before = store._writer.commits
        await asyncio.gather(*(store.append(f"s{n}", events(1, 3)) for n in range(50)))
        assert store._writer.commits - before <= 2


async def test_a_lone_append_is_committed_on_the_loops_thread_and_a_large_one_is_not(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db") as store:
        await store.create(session("a"))
        where: list[str] = []
        assert store._connections is not None
        store._connections[0].set_trace_callback(
            lambda sql: where.append(threading.current_thread().name) if "INSERT" in sql else None
        )
        await asyncio.sleep(0)
        await store.append("a", Batch(1, (b"1",)))
        await asyncio.sleep(0)
        await store.append("a", Batch(2, (b"x" * sqlite_writer.IN_PLACE_BYTES, b"x")))
        store._connections[0].set_trace_callback(None)
    assert where[0] == threading.main_thread().name
    assert where[1].startswith("antiphon-store-write")


async def test_a_writer_that_never_waits_lets_the_others_run(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db") as store:
        await store.create(session("a"))
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.ensure_future(count())
        for seq in range(1, 101):
            await store.append("a", events(seq, seq))
        counting.cancel()
        assert turns > 20


async def test_one_bad_write_does_not_spoil_those_committed_with_it(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db") as store:
        for name in "abc":
            await store.create(session(name))
        outcomes = await asyncio.gather(
            store.append("a", events(1, 1)),
            store.append("b", events(1, 1), record=RecordPatch(title="\ud83d")),  # no UTF-8 for half an emoji
            store.append("c", events(1, 1)),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [type(None), UnicodeEncodeError, type(None)]
        assert [await read_all(store, name) for name in "abc"] == [
            [*events(1, 1).events],
            [],
            [*events(1, 1).events],
        ]


async def test_the_log_is_moved_into_the_database_while_writing(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SQLiteStore(path) as store:
        await store.create(session("a"))
        for seq in range(1, 41):
            await store.append("a", Batch(seq, (b"x" * 1_000_000,)))
        log = path.with_name("s.db-wal").stat().st_size
        assert log < 2 * sqlite_writer.LOG_BYTES
        assert path.stat().st_size > 20_000_000


class HeldCheckpoints:
    """Checkpoints that end when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self._goes_on = threading.Event(), threading.Event()
        monkeypatch.setattr(sqlite_writer, "CHECKPOINT_BYTES", 100_000)
        monkeypatch.setattr(sqlite_checkpointer, "checkpoint", self._checkpoint)

    def _checkpoint(self, connection: sqlite3.Connection) -> bool:
        self.begun.set()
        assert self._goes_on.wait(30)
        return checkpoint(connection)

    async def reached(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, 30)

    def release(self) -> None:
        self._goes_on.set()


async def test_appends_are_committed_while_a_checkpoint_is_in_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = HeldCheckpoints(monkeypatch)
    async with SQLiteStore(tmp_path / "s.db") as store:
        await store.create(session("a"))
        await store.append("a", Batch(1, (b"x" * 100_000,)))
        await held.reached()
        for seq in range(2, 7):
            await store.append("a", events(seq, seq))
        assert (await store.read("a", 0)).last == 6
        held.release()


async def test_appends_wait_for_a_checkpoint_that_is_slower_than_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = HeldCheckpoints(monkeypatch)
    async with SQLiteStore(tmp_path / "s.db") as store:
        await store.create(session("a"))
        await store.append("a", Batch(1, (b"x" * 100_000,)))
        await held.reached()
        await store.append("a", Batch(2, (b"x" * 100_000,)))
        waits = asyncio.ensure_future(store.append("a", events(3, 3)))
        await asyncio.wait([waits], timeout=0.2)
        assert not waits.done()
        assert not store.free
        held.release()
        await asyncio.wait_for(waits, 30)
        assert (await store.read("a", 0)).last == 3


async def test_a_store_that_closes_waits_for_its_checkpoint_and_removes_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, path = HeldCheckpoints(monkeypatch), tmp_path / "s.db"
    store = SQLiteStore(path)
    await store.create(session("a"))
    await store.append("a", Batch(1, (b"x" * 100_000,)))
    await held.reached()
    closing = asyncio.ensure_future(store.aclose())
    await asyncio.wait([closing], timeout=0.2)
    assert not closing.done()
    held.release()
    await asyncio.wait_for(closing, 30)
    assert not path.with_name("s.db-wal").exists()
    async with SQLiteStore(path) as again:
        assert (await again.read("a", 0)).last == 1


async def test_a_cancelled_append_is_whole_or_not_there_and_the_next_goes_on(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db", durability="power") as store:
        await store.create(session("a"))
        last = 0
        for _ in range(20):
            task = asyncio.ensure_future(store.append("a", events(last + 1, last + 5)))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            await store.update("a", RecordPatch(state="asked"))  # behind it in the queue
            record = await store.get("a")
            assert record is not None
            assert record.last in (last, last + 5)
            last = record.last
        assert await read_all(store, "a") == (list(events(1, last).events) if last else [])


async def test_another_program_that_holds_the_file_is_waited_for_off_the_loop(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SQLiteStore(path) as store:
        await store.create(session("a"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        appending = asyncio.ensure_future(store.append("a", events(1, 1)))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not appending.done()
        other.execute("COMMIT")
        other.close()
        await appending
        assert await read_all(store, "a") == list(events(1, 1).events)


async def test_patience_with_another_program_ends_with_an_error_and_nothing_written(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SQLiteStore(path, patience=0.05) as store:
        await store.create(session("a"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match=r"s\.db"):
            await store.append("a", events(1, 1))
        assert await read_all(store, "a") == [], "reading goes on meanwhile"
        other.close()
        await store.append("a", events(1, 1))


async def test_a_delete_that_was_cut_short_is_finished_at_the_next_opening(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SQLiteStore(path) as store:
        await store.create(session("a"))
        for seq in range(1, 201):
            await store.append("a", events(seq, seq))
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("INSERT INTO deletions SELECT key FROM sessions")
        file.execute("DELETE FROM sessions")
    async with SQLiteStore(path):
        with closing(sqlite3.connect(path)) as file:
            assert file.execute("SELECT count(*) FROM batches").fetchone() == (0,)
            assert file.execute("SELECT count(*) FROM deletions").fetchone() == (0,)


async def test_a_file_of_version_1_is_read_for_ever(tmp_path: Path) -> None:
    async with SQLiteStore(made_from(V1, tmp_path / "old.db")) as store:
        assert (await store.list()).records == (
            SessionRecord(
                session_id="sess_1",
                cwd="/home/me/site",
                additional_directories=("/home/me/lib",),
                title="Why is the build red?",
                created_at=1_760_000_000_000,
                updated_at=1_760_000_060_000,
                state="idle",
                last=3,
                meta={"antiphon": {"n": 1}},
            ),
        )
        assert await read_all(store, "sess_1") == [b'{"n":1}', b'{"n":2}', b'{"n":3}']
        assert await store.load_parts("sess_1") == (2, {"message/1": b'{"text":"red"}'}, None)
        await store.claim("sess_1", "me")  # the process that held it is gone
        await store.append("sess_1", Batch(4, (b'{"n":4}',)))


async def test_an_older_version_is_brought_up_to_date_once(tmp_path: Path, monkeypatch) -> None:
    path = made_from(V1, tmp_path / "old.db")
    added = "ALTER TABLE sessions ADD COLUMN colour TEXT; CREATE TABLE extra (n INTEGER)"
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", (*sqlite_schema.MIGRATIONS, added))
    for _ in range(2):
        async with SQLiteStore(path) as store:
            assert len(await read_all(store, "sess_1")) == 3
        with closing(sqlite3.connect(path)) as file:
            assert file.execute("PRAGMA user_version").fetchone() == (len(sqlite_schema.MIGRATIONS),)
            assert file.execute("SELECT colour FROM sessions").fetchall() == [(None,)]


async def test_a_migration_that_fails_leaves_the_old_version(tmp_path: Path, monkeypatch) -> None:
    path = made_from(V1, tmp_path / "old.db")
    with monkeypatch.context() as patched:
        patched.setattr(
            sqlite_schema, "MIGRATIONS", (*sqlite_schema.MIGRATIONS, "CREATE TABLE extra (n); NONSENSE")
        )
        store = SQLiteStore(path)
        with pytest.raises(StoreError):
            await store.open()
        await store.aclose()
    async with SQLiteStore(path) as store:
        assert len(await read_all(store, "sess_1")) == 3


async def test_a_later_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = made_from(V1, tmp_path / "new.db")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    store = SQLiteStore(path)
    with pytest.raises(StoreTooNew, match=r"new\.db.*99"):
        await store.list()
    await store.aclose()
    assert path.read_bytes() == before


async def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (n INTEGER)")
    connection.close()
    before = path.read_bytes()
    store = SQLiteStore(path)
    with pytest.raises(StoreError, match="another program"):
        await store.list()
    await store.aclose()
    assert path.read_bytes() == before


async def test_a_file_that_is_no_database_is_refused_by_name_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"not a database, but long enough to look at. " * 100)
    before = path.read_bytes()
    store = SQLiteStore(path)
    with pytest.raises(StoreCorrupt, match=r"notes\.txt"):
        await store.create(session("a"))
    await store.aclose()
    assert path.read_bytes() == before


async def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = SQLiteStore(tmp_path / "file" / "s.db")
    with pytest.raises(StoreError, match=r"s\.db cannot be opened"):
        await store.open()
    await store.aclose()


def test_stores_load_sqlite_only_when_it_is_used() -> None:
    code = "import antiphon.stores, sys; assert 'sqlite3' not in sys.modules; antiphon.stores.SQLiteStore"
    subprocess.run([sys.executable, "-c", code], check=True)
