"""Opening a session that is damaged: a clear error, nothing deleted, and other sessions untouched."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.engine.journals import chunk

from antiphon.errors import SessionDamaged, SessionTooNew
from antiphon.live.session import LiveSession
from antiphon.live.stored_session import read_session
from antiphon.stores import SQLiteStore

COUNT = 9


class Kept:
    """A file with a session `s` of nine events in nine batches, and a session `other`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def edit(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute(statement, values)

    def drop_snapshot(self) -> None:
        self.edit("DELETE FROM parts")
        self.edit("UPDATE sessions SET snapshot = 0")

    def replace(self, seq: int, old: bytes, new: bytes) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            (line,) = connection.execute(
                "SELECT events FROM batches WHERE session = 1 AND first = ?", (seq,)
            ).fetchone()
            assert old in line
            changed = line.replace(old, new)
            connection.execute(
                "UPDATE batches SET events = ? WHERE session = 1 AND first = ?", (changed, seq)
            )

    def content(self) -> list[tuple[object, ...]]:
        """All rows of the tables that hold what was said."""
        with closing(sqlite3.connect(self.path)) as connection:
            tables = ("sessions", "batches", "parts")
            return [row for table in tables for row in connection.execute(f"SELECT * FROM {table}")]


async def write(store: SQLiteStore, session_id: str) -> None:
    async with await LiveSession.create(store, session_id=session_id, cwd="/w", clock=lambda: 7) as live:
        for number in range(2, COUNT + 1):
            live.emit([chunk("m", f"word {number} ")])
            await live.durable()


@pytest.fixture
async def kept(tmp_path: Path) -> Kept:
    path = tmp_path / "s.db"
    async with SQLiteStore(path) as store:
        await write(store, "s")
        await write(store, "other")
    return Kept(path)


async def opened(path: Path, session_id: str = "s") -> str:
    """What a session says when it is opened and put away."""
    async with SQLiteStore(path) as store, await LiveSession.open(store, session_id, clock=lambda: 8) as live:
        return live.fold.messages[0].text


async def refusal(kept: Kept) -> SessionDamaged | SessionTooNew:
    """How a session cannot be opened, twice the same, with nothing changed by it."""
    before = kept.content()
    async with SQLiteStore(kept.path) as store:
        errors: list[SessionDamaged | SessionTooNew] = []
        for read in (read_session(store, "s"), LiveSession.open(store, "s", clock=lambda: 8)):
            with pytest.raises((SessionDamaged, SessionTooNew)) as error:
                await read
            errors.append(error.value)
        record = await store.get("s")
        assert record is not None
        assert record.fault is not None
        kind = "newer" if isinstance(errors[0], SessionTooNew) else "damaged"
        assert (record.fault.kind, record.fault.found) == (kind, errors[1].found)
        other = await store.get("other")
        assert other is not None
        assert other.fault is None
        await store.claim("s", "somebody")  # who was refused holds nothing
        await store.release("s", "somebody")
    assert kept.content() == before
    assert (await opened(kept.path, "other")).startswith("word 2 word 3")
    return errors[1]


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("DELETE FROM batches WHERE session = 1 AND first = 1", "events 1 to 1 are missing"),
        ("DELETE FROM batches WHERE session = 1 AND first IN (4, 5)", "events 4 to 5 are missing"),
        ("DELETE FROM batches WHERE session = 1", "it has no events"),
        ("UPDATE batches SET events = x'00ff' WHERE session = 1 AND first = 4", "event 4 cannot be read"),
        ("UPDATE batches SET events = '' WHERE session = 1 AND first = 4", "is torn"),
        ("UPDATE batches SET events = x'' WHERE session = 1 AND first = 4", "event 4 cannot be read"),
        (
            "UPDATE batches SET events = substr(events, 1, 30) WHERE session = 1 AND first = 4",
            "event 4 cannot be read",
        ),
        ("UPDATE batches SET last = 'x' WHERE session = 1 AND first = 4", "event"),
        ("UPDATE batches SET first = 2 WHERE session = 1 AND first = 4", "is torn"),
        ("UPDATE batches SET session = 7 WHERE session = 1 AND first < 3", "events 1 to 2 are missing"),
        ("UPDATE sessions SET meta = '{' WHERE key = 1", "its record cannot be read: meta"),
        ("UPDATE sessions SET cwd = x'ff' WHERE key = 1", "its record cannot be read: cwd"),
    ],
)
async def test_a_journal_without_a_snapshot_is_refused_where_it_is_damaged(
    kept: Kept, statement: str, found: str
) -> None:
    kept.drop_snapshot()
    kept.edit(statement)
    error = await refusal(kept)
    assert isinstance(error, SessionDamaged)
    assert found in error.found
    told = error.to_wire()
    assert told.data["reason"] == "damaged"
    assert "antiphon sessions export s" in told.message
    assert str(kept.path) not in told.message


async def test_bits_that_flip_are_found_or_harmless_and_delete_nothing(kept: Kept) -> None:
    kept.drop_snapshot()
    with closing(sqlite3.connect(kept.path)) as connection:
        query = "SELECT events FROM batches WHERE session = 1 AND first = 4"
        (line,) = connection.execute(query).fetchone()
    refused = 0
    async with SQLiteStore(kept.path) as store:
        await store.open()
        for at in range(0, len(line), 3):
            for bit in (0x01, 0x20, 0x80):
                flipped = bytearray(line)
                flipped[at] ^= bit
                kept.edit("UPDATE batches SET events = ? WHERE session = 1 AND first = 4", bytes(flipped))
                try:
                    await read_session(store, "s")
                except (SessionDamaged, SessionTooNew):  # and nothing else
                    refused += 1
                assert await store.get("s") is not None
    assert refused > len(line) // 3, "every high bit is found at least"


async def test_an_event_of_an_unknown_kind_is_newer_and_not_damaged(kept: Kept) -> None:
    kept.drop_snapshot()
    kept.replace(4, b'"type":"update"', b'"type":"mended"')
    error = await refusal(kept)
    assert isinstance(error, SessionTooNew)
    assert "event 4" in error.found
    assert "'mended'" in error.found
    assert error.to_wire().data["reason"] == "newer"


async def test_a_journal_of_a_later_format_is_newer_and_not_damaged(kept: Kept) -> None:
    kept.drop_snapshot()
    kept.replace(1, b'"format":1', b'"format":9')
    assert isinstance(await refusal(kept), SessionTooNew)


async def test_a_journal_of_another_session_is_damage(kept: Kept) -> None:
    kept.drop_snapshot()
    kept.replace(1, b'"session_id":"s"', b'"session_id":"t"')
    error = await refusal(kept)
    assert "names the session 't'" in error.found


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE parts SET part = x'ff' WHERE session = 1",
        "UPDATE parts SET part = '{}' WHERE session = 1",
        "UPDATE parts SET part = substr(part, 1, 20) WHERE session = 1 AND name LIKE 'item%'",
        "UPDATE parts SET part = CAST('{}' AS BLOB) WHERE session = 1 AND name = 'session'",
        "UPDATE parts SET name = x'ff' WHERE session = 1 AND name = 'session'",
        "DELETE FROM parts WHERE session = 1 AND name = 'session'",
        "UPDATE sessions SET snapshot = 'x' WHERE key = 1",
        "UPDATE sessions SET snapshot = -3 WHERE key = 1",
    ],
)
async def test_a_damaged_snapshot_is_made_anew_from_the_journal(
    kept: Kept, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    whole = await opened(kept.path, "other")
    kept.edit(statement)
    async with SQLiteStore(kept.path) as store:
        assert (await read_session(store, "s")).messages[0].text == whole
    assert await opened(kept.path) == whole
    assert "snapshot damaged: session s" in caplog.text
    caplog.clear()
    assert await opened(kept.path) == whole
    assert "snapshot damaged" not in caplog.text, "the new one is whole"


async def test_a_session_whose_snapshot_is_whole_opens_though_its_first_events_are_lost(kept: Kept) -> None:
    whole = await opened(kept.path, "other")
    kept.edit("DELETE FROM batches WHERE session = 1 AND first < 4")
    assert await opened(kept.path) == whole
    async with SQLiteStore(kept.path) as store:
        assert list((await store.check(seconds=20)).faults) == ["s"]
        [fault] = [record.fault for record in (await store.list()).records if record.session_id == "s"]
        assert fault is not None
        assert "missing" in fault.found


async def test_a_journal_that_ends_before_its_snapshot_is_damaged(kept: Kept) -> None:
    kept.edit(f"DELETE FROM batches WHERE session = 1 AND first = {COUNT}")
    async with SQLiteStore(kept.path) as store:
        with pytest.raises(SessionDamaged, match="events 9 to 9 are missing"):
            await LiveSession.open(store, "s", clock=lambda: 8)
        assert await store.get("s") is not None
