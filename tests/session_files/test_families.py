"""Sessions of subagents go where the session goes that they work for: all of them, or none."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs

from antiphon import Agent, AgentTurn
from antiphon.client import connect
from antiphon.engine.events import Event, SessionCreated, encode_event
from antiphon.engine.json_values import encode
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.errors import SessionExists, StoreFull
from antiphon.live.stored_session import read_session
from antiphon.session_files import export_session, import_session
from antiphon.session_files.format import PartWriter
from antiphon.stores import MemoryStore, SQLiteStore, Store
from antiphon.testing.store_samples import read_all, session
from tests.session_files.files import exported, written
from tests.session_files.test_format import refusal, split


@asynccontextmanager
async def family(folder: Path) -> AsyncIterator[tuple[Store, str, list[str]]]:
    """A store with a session that has two subagents, one of them with one of its own; its id, and theirs."""
    path = folder / "here.db"
    agent = Agent("boss", store=SQLiteStore(path))

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.subagent("Researcher") as child:
            await child.instruct("Find the bug")
            await child.say("I ask somebody.")
            async with child.session.subagent("Reader") as grandchild:
                await grandchild.say("It is in line 7.")
            await child.report("It is in line 7")
        async with turn.session.subagent("Writer") as second:
            await second.say("Mended.")

    async with connect(agent) as client:
        session = await client.new_session("/site")
        await (await session.prompt("Why is it red?")).drained()
        told = {subagent.title: subagent.id for subagent in session.subagents}
    async with SQLiteStore(path) as store:
        inner = await read_session(store, told["Researcher"])
        [reader] = [info.id for info in inner.subagents]
        yield store, session.id, [told["Researcher"], told["Writer"], reader]


@pytest.fixture(params=["memory", "sqlite"])
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "there.db")


async def test_they_move_with_it_and_every_fold_is_equal(there: Store, tmp_path: Path) -> None:
    async with family(tmp_path) as (here, session_id, children):
        file = await written(here, session_id)
        assert file.startswith(b'{"part":"session"')
        assert b'"version":2' in file.partition(b"\n")[0]
        await import_session(there, io.BytesIO(file))
        for id in (session_id, *children):
            assert await there.get(id) == await here.get(id)
            assert await read_all(there, id) == await read_all(here, id)
            assert await read_session(there, id) == await read_session(here, id)
        assert await written(there, session_id) == file
        await there.aclose()


async def test_a_session_without_any_is_written_as_ever() -> None:
    assert b'"version":1' in (await exported()).partition(b"\n")[0]


async def test_a_copy_names_its_own_and_nothing_of_the_others(there: Store, tmp_path: Path) -> None:
    async with family(tmp_path) as (here, session_id, children):
        file = await written(here, session_id)
        await import_session(there, io.BytesIO(file))
        record = await import_session(there, io.BytesIO(file), session_id="copy", cwd="/elsewhere")
        assert (record.session_id, record.cwd) == ("copy", "/elsewhere")
        copies = {id: await there.get(id) for id in ("copy.1", "copy.2", "copy.3")}
        parents = {id: child.meta[SUBAGENT_OF] for id, child in copies.items() if child is not None}
        assert sorted(parents.values()) == [
            "copy",
            "copy",
            next(id for id, of in parents.items() if of != "copy"),
        ] or (sorted(parents.values()) == ["copy", "copy", "copy.1"])
        for id in ("copy", *copies):
            found = await there.get(id)
            assert found is not None
            assert found.cwd == "/elsewhere"
            for line in await read_all(there, id):
                assert not [old for old in (session_id, *children) if old.encode() in line]
            fold = await read_session(there, id)
            assert fold.created is not None
            assert fold.created.session_id == id
            assert fold.created.meta.get(SUBAGENT_OF) == parents.get(id)
            assert {told.id for told in fold.subagents} <= set(copies)
        for id in (session_id, *children):  # the first is as it was
            assert await read_all(there, id) == await read_all(here, id)
        await there.aclose()


async def test_what_is_there_already_or_finds_no_room_is_refused_whole(there: Store, tmp_path: Path) -> None:
    async with family(tmp_path) as (here, session_id, children):
        file = io.BytesIO(await written(here, session_id))
        parts = 0

        def full_at_the_last() -> None:
            nonlocal parts
            parts += 1
            if parts == 6:
                raise StoreFull("no room")

        with pytest.raises(StoreFull):
            await import_session(there, file, check=full_at_the_last)
        assert [await there.get(id) for id in (session_id, *children)] == [None] * 4
        alone = io.BytesIO()
        await export_session(here, children[-1], alone.write)
        alone.seek(0)
        await import_session(there, alone)
        file.seek(0)
        with pytest.raises(SessionExists):
            await import_session(there, file)
        assert [await there.get(id) is None for id in (session_id, *children)] == [True, True, True, False]
        await there.aclose()


def pair(works_for: str) -> bytes:
    """A file with a session `a`, and one `b` that says whom it works for."""
    made = io.BytesIO()
    writer = PartWriter(made.write, version=2)
    for id, meta in (("a", {}), ("b", {SUBAGENT_OF: works_for})):
        writer.begin(id, 1, encode(structs.replace(session(id), meta=meta)))
        writer.events(1, [encode_event(Event(1, 1, SessionCreated(session_id=id, cwd="/")))])
    writer.end()
    return made.getvalue()


async def test_a_file_with_a_stranger_in_it_is_refused(tmp_path: Path) -> None:
    assert (await import_session(MemoryStore(), io.BytesIO(pair("a")))).session_id == "a"
    assert "no parent in the file" in await refusal(pair("nobody"))
    assert "not another session" in await refusal(pair("b"))
    async with family(tmp_path) as (here, session_id, _):
        pieces = split(await written(here, session_id))
    heads = [at for at, piece in enumerate(pieces) if piece.startswith(b'{"part":"session"')]
    assert len(heads) == 4
    assert await refusal(b"".join(piece for at, piece in enumerate(pieces) if at != heads[1]))
    assert "in it twice" in await refusal(b"".join([*pieces[:-1], *pieces[heads[-1] :]]))


async def test_a_flipped_bit_in_any_of_them_is_refused(tmp_path: Path) -> None:
    async with family(tmp_path) as (here, session_id, _):
        file = await written(here, session_id)
        for at in range(0, len(file), 7):
            damaged = bytearray(file)
            damaged[at] ^= 0x04
            assert await refusal(bytes(damaged))
