"""The search of stores: its contract, hostile texts and queries, and the index of SQLite."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.journals import events, messages, tools
from tests.stores.test_contract import memory, process
from tests.stores.test_sqlite import V1, made_from

from antiphon.engine.events import encode_event
from antiphon.engine.session import Session
from antiphon.errors import StoreError
from antiphon.stores import Batch, MemoryStore, SQLiteStore, Store
from antiphon.stores.search.base import MOST_SNIPPET
from antiphon.stores.search.scan import ScannedSession
from antiphon.stores.search.texts import text_changes
from antiphon.stores.search.words import fts5_query, read_query, searchable, snippet_of
from antiphon.stores.sqlite import search as index
from antiphon.stores.sqlite import search_tables
from antiphon.stores.sqlite.search_tables import Found
from antiphon.testing import check_search
from antiphon.testing.store_samples import read_all
from antiphon.testing.store_searches import found, ids, said, told


@pytest.mark.parametrize("kind", [memory, process], ids=lambda kind: kind.__name__)
async def test_the_contract_of_a_search_is_kept(kind, tmp_path: Path) -> None:
    await check_search(kind(tmp_path))


class FindsEverywhere(MemoryStore):
    async def search(self, query: str, *, sessions: object = None, **given):
        return await super().search(query, **given)


class FindsDeleted(MemoryStore):
    async def delete(self, session_id: str) -> bool:
        return await self.get(session_id) is not None


@pytest.mark.parametrize("broken", [FindsEverywhere, FindsDeleted])
async def test_the_contract_of_a_search_catches_a_store_that(broken: type[MemoryStore]) -> None:
    @asynccontextmanager
    async def make() -> AsyncIterator[Store]:
        yield broken()

    with pytest.raises(AssertionError):
        await check_search(make, deadline=5)


@given(st.lists(st.one_of(messages(), tools()), min_size=1, max_size=40), st.integers(1, 7))
def test_texts_in_pieces_are_the_texts_of_the_fold(bodies, size) -> None:
    journal = events(*bodies)
    scanned, fold = ScannedSession(), Session().fold(journal)
    lines = [encode_event(event) for event in journal]
    for at in range(0, len(lines), size):
        scanned.apply(text_changes(lines[at : at + size], first=at + 1))
    expected = {f"{message.type}/{message.id}": searchable(message.text) for message in fold.messages}
    expected |= {f"tool/{call.id}": searchable(call.title or "") for call in fold.tool_calls}
    assert {item: text.text for item, text in scanned.texts.items()} == {
        item: text for item, text in expected.items() if text
    }


@given(st.text(max_size=60), st.text(max_size=300))
def test_any_query_over_any_text_is_answered_with_ranges_of_the_snippet(query: str, text: str) -> None:
    terms, texts = read_query(query), [searchable(each) for each in (text, f"{text} {query} {text}")]
    if not terms:
        return
    with closing(sqlite3.connect(":memory:")) as file:
        file.execute(
            "CREATE VIRTUAL TABLE words USING fts5(text, tokenize = 'unicode61 remove_diacritics 2')"
        )
        file.executemany("INSERT INTO words VALUES (?)", [(each,) for each in texts])
        found = file.execute("SELECT text FROM words WHERE words MATCH ?", (fts5_query(terms),)).fetchall()
    for (each,) in [*found, *((each,) for each in texts)]:
        snippet, ranges = snippet_of(each, terms)
        assert len(snippet) <= MOST_SNIPPET
        assert not {"\x1f", "\0", "\n"} & set(snippet)
        ends = [end for each in ranges for end in each]
        assert ends == sorted(ends), "ranges are in order and apart"
        assert all(snippet[start:end].strip() for start, end in ranges)
    assert snippet_of(f"here: {query.strip()}", terms)[1], "the words of a query are found in it"


def texts_in(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as file:
        return {text for (text,) in file.execute("SELECT text FROM search_texts")}


def words_in(path: Path) -> set[str]:
    """Every word that the index of a file has, of deleted texts too."""
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', 'search_words', 'row')")
        known = {term for (term,) in file.execute("SELECT term FROM vocabulary")}
        blocks = b" ".join(block for (block,) in file.execute("SELECT block FROM search_words_data"))
    left = {word for word in ("xylophone", "kept") if word[1:].encode() in blocks}
    return known | left | texts_in(path)


async def test_nothing_of_a_deleted_session_is_left_in_the_index(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db") as store:
        await told(store, "a", *(said(seq, f"xylophone {seq}", id=f"m{seq}") for seq in range(1, 150)))
        await told(store, "b", said(1, "kept", id="m1"))
        assert len(await ids(store, "xylophone", limit=100)) == 100
        assert {"xylophone", "kept"} <= words_in(store.path)
        await store.delete("a")
        assert words_in(store.path) == {"kept"}
        assert {stat.S_IMODE(file.stat().st_mode) for file in os.scandir(tmp_path)} == {0o600}


async def test_the_index_catches_up_while_nothing_is_written(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(index, "IDLE", 0.01)
    async with SQLiteStore(tmp_path / "s.db") as store:
        await told(store, "a", said(1, "xylophone", id="m1"))
        async with asyncio.timeout(20):
            while not texts_in(store.path):  # noqa: ASYNC110  # nobody is told
                await asyncio.sleep(0.01)
        assert "xylophone" in words_in(store.path)


async def test_a_file_of_version_1_is_searched_and_one_that_reads_it_meanwhile_is_not_disturbed(
    tmp_path: Path,
) -> None:
    path = made_from(V1, tmp_path / "old.db")
    async with SQLiteStore(path, read_only=True) as reader:
        assert await read_all(reader, "sess_1") == [b'{"n":1}', b'{"n":2}', b'{"n":3}']
        with pytest.raises(StoreError):
            await ids(reader, "build")  # it has no index yet, and a reader makes none
        async with SQLiteStore(path) as store:
            assert await ids(store, "build red") == ["title"]
            assert await read_all(reader, "sess_1") == [b'{"n":1}', b'{"n":2}', b'{"n":3}']
            assert await ids(reader, "build red") == ["title"]


async def test_a_sqlite_without_fts5_says_so_and_keeps_sessions(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "s.db"
    async with SQLiteStore(path) as store:
        await told(store, "a", said(1, "xylophone", id="m1"))
        await told(store, "b", said(1, "xylophone", id="m2"))
        assert await ids(store, "xylophone", sessions=["a"]) == ["m1"]
    with monkeypatch.context() as patched:
        for module in (search_tables, index.tables):
            patched.setattr(module, "has_fts5", lambda: False)
        async with SQLiteStore(path) as store:
            with pytest.raises(StoreError, match="FTS5"):
                await store.search("xylophone")
            await store.delete("a")
            assert len(await read_all(store, "b")) == 1
    async with SQLiteStore(path) as store:
        assert await ids(store, "xylophone") == ["m2"], "what was deleted without FTS5 is gone as well"


async def damage(path: Path, *, page: bool) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if not page:
            with file:
                file.execute("DELETE FROM search_texts WHERE seq > 20")
            return
        (size,) = file.execute("PRAGMA page_size").fetchone()
        names = "'search_texts', 'search_words_data', 'search_sessions'"
        roots = file.execute(f"SELECT rootpage FROM sqlite_schema WHERE name IN ({names})").fetchall()
        assert len(roots) == 3
    with path.open("r+b") as data:
        for (root,) in roots:
            data.seek((root - 1) * size)
            data.write(b"\x99" * size)


@pytest.mark.parametrize("page", [False, True], ids=["rows", "pages"])
async def test_a_damaged_index_is_made_anew_and_no_session_is_affected(tmp_path: Path, page: bool) -> None:
    path = tmp_path / "s.db"
    async with SQLiteStore(path) as store:
        await told(store, "a", *(said(seq, f"xylophone {seq}", id=f"m{seq}") for seq in range(1, 40)))
        assert len(await ids(store, "xylophone", limit=100)) == 39
    await damage(path, page=page)
    async with SQLiteStore(path) as store:
        assert len(await read_all(store, "a")) == 39
        for _ in range(3):  # a search that finds the damage returns nothing yet
            again = await ids(store, "xylophone", limit=100)
        assert len(again) == 39
        await store.append("a", Batch(40, (said(40, "xylophone 40", id="m40"),)))
        assert len(await ids(store, "xylophone", limit=100)) == 40
        await store.delete("a")
        assert await ids(store, "xylophone") == []
        assert (await store.list()).records == ()


@pytest.mark.parametrize("item", ["ditle/x", b"\xff", 7])
async def test_a_damaged_text_of_the_index_keeps_no_other_from_being_found(
    tmp_path: Path, item: object
) -> None:
    path = tmp_path / "s.db"
    async with SQLiteStore(path) as store:
        await told(store, "a", *(said(seq, f"xylophone {seq}", id=f"m{seq}") for seq in range(1, 4)))
        assert len(await ids(store, "xylophone")) == 3
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("UPDATE search_texts SET item = ? WHERE item LIKE '%/m2'", (item,))
    async with SQLiteStore(path) as store:
        assert len(await ids(store, "xylophone")) == 2


KILLED = """
import asyncio, os, sys
from antiphon.stores import SQLiteStore
from antiphon.stores.sqlite import search_tables
from antiphon.stores.sqlite.search_tables import Found

applied = search_tables.apply
count = 0

def apply(*given):
    global count
    count += 1
    done = applied(*given)
    if count == int(sys.argv[2]):
        os.kill(os.getpid(), 9)  # inside of the transaction
    return done

search_tables.apply = apply

async def main():
    async with SQLiteStore(sys.argv[1]) as store:
        await store.search("xylophone", seconds=60)

asyncio.run(main())
"""


async def test_a_process_that_is_killed_while_it_indexes_leaves_an_index_that_goes_on(tmp_path: Path) -> None:
    path, big = tmp_path / "s.db", "word " * 30_000
    async with SQLiteStore(path) as store:
        await told(store, "a", *(said(seq, f"xylophone {big}", id=f"m{seq}") for seq in range(1, 7)))
        await told(store, "b", said(1, "xylophone", id="m1"))
    for at in ("1", "2"):
        killed = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, str(path), at)
        assert await asyncio.wait_for(killed.wait(), 60) == -9
    async with SQLiteStore(path) as store:
        assert len(await ids(store, "xylophone", seconds=60)) == 7
        assert len(await ids(store, "word", limit=100)) == 6, "a text is indexed once"
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        assert search_tables.is_sound(file)


async def test_two_processes_index_one_file_once(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SQLiteStore(path) as one, SQLiteStore(path) as other:
        await told(one, "a", *(said(seq, f"xylophone {seq}", id=f"m{seq}") for seq in range(1, 60)))
        both = await asyncio.gather(*(ids(store, "xylophone", limit=100) for store in (one, other)))
        assert [len(each) for each in both] == [59, 59]
        await other.append("a", Batch(60, (said(60, "xylophone", id="m60"),)))
        assert (await found(one, "xylophone"))[0].id == "m60"
        await other.delete("a")
        assert await ids(one, "xylophone") == []


async def test_a_search_that_has_no_time_returns_and_says_that_it_is_not_complete(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db") as store:
        await told(store, "a", said(1, "xylophone", id="m1"))
        page = await store.search("xylophone", seconds=0)
        assert (page.matches, page.complete) == ((), False)
        assert await ids(store, "xylophone") == ["m1"]


async def test_the_time_of_a_search_begins_when_its_turn_comes(tmp_path: Path, monkeypatch) -> None:
    """A timer that ran while a search waited for others stopped one of these instead, and this one never."""
    ticks = count(0.0, 10.0)
    async with SQLiteStore(tmp_path / "s.db") as store:
        await told(store, "a", *(said(seq, "xylophone", id=f"m{seq}") for seq in range(1, 9)))
        assert (await store.search("xylophone")).complete
        monkeypatch.setattr(index, "STEPS", 1, raising=False)
        monkeypatch.setattr(index, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
        page = await store.search("xylophone", seconds=1)
        assert (page.matches, page.complete) == ((), False)


def test_snippets_come_from_the_beginnings_of_texts_when_the_time_is_over() -> None:
    text = f"first {'word ' * 30_000} xylophone"
    found = [Found(1, "s", None, "agent/m1", 1, 1, text)]
    late, soon = (
        index.matches_of(None, found, read_query("xylophone"), until) for until in (0.0, float("inf"))
    )
    assert late[0].snippet.startswith("first word")
    assert "xylophone" in soon[0].snippet


def test_words_of_phrases_count_like_others() -> None:
    (phrase, *rest) = read_query(f'"{"a " * 30}" b "c d e" f')
    assert (len(phrase.words), [term.words for term in rest]) == (30, [("b",), ("c",)])
    assert not any(term.is_prefix for term in read_query("a " * 40))
