"""What is exported and imported is the same session: each event, its number and the fold."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from antiphon.engine.events import Event, Updated
from antiphon.errors import LocalError, SessionExists, SessionUnknown, StoreFull
from antiphon.hub.records import imported_record, recorded_agent
from antiphon.live.stored_session import read_session
from antiphon.session_files import import_session
from antiphon.session_files.format import FileRefused
from antiphon.stores import Batch, MemoryStore, SQLiteStore
from tests.engine.journals import JOURNALS
from tests.session_files.files import CREATED, TALK, exported, imported, kept, written


@given(JOURNALS, st.integers(1, 20))
def test_any_journal_comes_back_as_it_was(journal: list[Event], at_once: int) -> None:
    async def there_and_back() -> None:
        store = MemoryStore()
        events = await kept(store, [CREATED, *(event.body for event in journal)], at_once=at_once)
        before = await read_session(store, "s")
        record, found, fold = await imported(await written(store))
        assert found == events
        assert fold == before
        assert record == await store.get("s")

    asyncio.run(there_and_back())


async def test_from_file_to_file(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "a.db") as here, SQLiteStore(tmp_path / "b.db") as there:
        events = await kept(here)
        record, found, fold = await imported(await written(here), there)
        assert (record, found, fold) == (await here.get("s"), events, await read_session(here, "s"))
        assert await written(there) == await written(here)


async def test_an_id_that_is_there_is_refused_and_another_one_can_be_given() -> None:
    store = MemoryStore()
    events = await kept(store)
    file = await written(store)
    with pytest.raises(SessionExists):
        await import_session(store, io.BytesIO(file))
    record, found, fold = await imported(file, store, session_id="copy", cwd="/elsewhere")
    assert (record.session_id, record.cwd) == ("copy", "/elsewhere")
    assert fold.created is not None
    assert (fold.created.session_id, fold.created.cwd) == ("copy", "/elsewhere")
    assert found[1:] == events[1:]
    assert (await store.get("s")) is not None
    for odd in ("two words", "x" * 300, "\x1b[2J"):
        with pytest.raises(LocalError):
            await import_session(store, io.BytesIO(file), session_id=odd)


async def test_what_comes_while_it_is_written_is_not_in_the_file() -> None:
    store = MemoryStore()
    events = await kept(store, TALK)

    class Growing:
        """A store whose session works on."""

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        async def read(self, session_id: str, after: int, *, limit_bytes: int) -> object:
            record = await store.get(session_id)
            assert record is not None
            await store.append(session_id, Batch(record.last + 1, (b"{}", b"{}")))
            return await store.read(session_id, after, limit_bytes=limit_bytes)

    file = await written(Growing())  # type: ignore[arg-type]
    assert (await imported(file))[1] == events


async def test_a_session_that_is_not_there_is_not_exported() -> None:
    with pytest.raises(SessionUnknown):
        await written(MemoryStore(), "none")


@pytest.mark.parametrize("levels", [200, 900, 100_000])
async def test_an_event_that_is_nested_too_deep_is_not_imported(levels: int) -> None:
    raw = b'{"sessionUpdate":"_x","a":' + b"[" * levels + b"]" * levels + b"}"
    store = MemoryStore()
    file = await exported((*TALK, Updated(raw=Raw(raw))))
    with pytest.raises(FileRefused, match=f"events? {len(TALK) + 1} "):
        await imported(file, store)
    assert (await store.list()).records == ()


async def test_an_import_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    def full() -> None:
        raise StoreFull("no room")

    async with SQLiteStore(tmp_path / "b.db") as store:
        with pytest.raises(StoreFull):
            await import_session(store, io.BytesIO(await exported()), check=full)
        assert not (await store.list()).records
        await imported(await exported(), store)


async def test_a_copy_or_one_with_another_agent_does_not_stand_on_the_agents_session() -> None:
    file = await exported()
    record, _, _ = await imported(file, settle=imported_record)
    assert record.meta["hub"] == {"agent": "a", "sessions": ["x"]}
    record, _, _ = await imported(
        file, session_id="t", settle=lambda record: imported_record(record, copy=True)
    )
    assert record.meta["hub"] == {"agent": "a", "sessions": []}
    record, _, _ = await imported(file, settle=lambda record: imported_record(record, agent="b"))
    assert (recorded_agent(record), record.meta["hub"]["sessions"]) == ("b", [])


LONG = """
import asyncio, resource, sys
from antiphon.engine.events import Event, SessionCreated, encode_event
from antiphon.session_files import export_session, import_session
from antiphon.stores import Batch, SessionRecord, SQLiteStore

CHUNK = (b'{"seq":%d,"at":1700000000000,"body":{"type":"update","update":{"sessionUpdate":'
         b'"agent_message_chunk","messageId":"m","content":{"type":"text","text":"word "}}}}')

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

async def main():
    folder, count = sys.argv[1], int(sys.argv[2])
    async with SQLiteStore(folder + "/a.db") as a, SQLiteStore(folder + "/b.db") as b:
        await a.create(SessionRecord(session_id="s", cwd="/", created_at=1, updated_at=1))
        await a.append("s", Batch(1, (encode_event(Event(1, 1, SessionCreated(session_id="s", cwd="/"))),)))
        for first in range(2, count + 1, 1000):
            numbers = range(first, min(first + 1000, count + 1))
            await a.append("s", Batch(first, tuple(CHUNK % seq for seq in numbers)))
        before = peak()
        with open(folder + "/f", "wb") as file:
            await export_session(a, "s", file.write)
        with open(folder + "/f", "rb") as file:
            record = await import_session(b, file)
        assert record.last == count, record.last
        print(peak() - before)

asyncio.run(main())
"""


def test_a_quarter_of_a_million_chunks_pass_in_bounded_memory(tmp_path: Path) -> None:
    """Their lines alone would take more than 48 MiB."""
    command = [sys.executable, "-c", LONG, str(tmp_path), "250000"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) < 32, f"{result.stdout} MiB"
