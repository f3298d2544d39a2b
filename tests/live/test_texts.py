"""Plain text in a live session: committed in place or by the committer, never published before."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.live.test_live import Client, Gated, chunk, clock, create, following, said, texts
from tests.stores.test_in_place import locked, next_turn

from antiphon.engine.events import Event, Updated
from antiphon.engine.session import Session
from antiphon.errors import StoreError
from antiphon.live import session as live_session
from antiphon.live.attachment import Attachment
from antiphon.live.session import LiveSession
from antiphon.live.stored_session import read_session
from antiphon.live.tail import Stretch
from antiphon.schema import v2
from antiphon.schema.updates import PlainText, TextChunk
from antiphon.stores import Batch, MemoryStore, SQLiteStore
from antiphon.stores.base import RecordPatch

DEADLINE = 60.0


def text(words: str, message_id: str = "m", *, thought: bool = False) -> TextChunk:
    kind: Any = "agent_thought_chunk" if thought else "agent_message_chunk"
    return TextChunk(session_update=kind, message_id=message_id, content=PlainText(text=words))


class Looking(Client):
    """Looks into the file at every write: what it is given has to be there."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def write(self, stretch: Stretch) -> None:
        with sqlite3.connect(self._path) as other:
            (last,) = other.execute("SELECT max(last) FROM batches").fetchone()
        other.close()
        assert last >= stretch.last
        super().write(stretch)


async def rested(live: LiveSession) -> None:
    """Wait until nothing is under way, and the last commit was a while ago."""
    await live.durable()
    await asyncio.sleep(2 * live_session.GATHER)


async def test_text_that_comes_alone_is_committed_and_sent_when_the_call_returns(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db") as store, await create(store) as live:
        client = Looking(store.path)
        async with following(live, client):
            live.emit([chunk("begun")])
            await client.until(2)
            await rested(live)
            live.stream_text([text("a"), text("b")])
            assert texts(client.events) == ["begun", "a", "b"]
            assert live.journal.last == live.fold.last_seq == 4
            assert live.fold.messages[0].text == "begunab"


async def test_a_fast_stream_is_gathered_and_nobody_waits_for_that(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db") as store, await create(store) as live:
        client, commits = Looking(store.path), list[int]()
        async with following(live, client) as attachment:
            await at_tail(live, attachment)
            append = store.append

            async def counted(session_id: str, batch: Batch, *, record: RecordPatch | None = None) -> None:
                commits.append(len(batch.events))
                await append(session_id, batch, record=record)

            store.append = counted  # type: ignore[method-assign]
            for number in range(500):
                live.stream_text([text(f"{number} ")])
            await live.durable()  # at once, and not when the moment is over
            assert live.fold.messages[0].text == "".join(f"{number} " for number in range(500))
            await client.until(501)
            assert texts(client.events) == [f"{number} " for number in range(500)]
            assert len(commits) < 50


async def at_tail(live: LiveSession, attachment: Attachment) -> None:
    await attachment.reached(live.fold.last_seq)
    await rested(live)


@pytest.mark.parametrize("seed", range(20))
async def test_however_text_is_mixed_with_the_rest_there_is_one_order(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    async with SQLiteStore(tmp_path / "s.db") as store:
        async with await create(store) as live:
            client = Looking(store.path)
            async with following(live, client):
                wanted: list[str] = []
                for step in range(60):
                    message, thought = f"m{chance.randrange(2)}", chance.random() < 0.3
                    words = [f"{step}.{part} " for part in range(chance.randint(1, 3))]
                    match chance.randrange(5):
                        case 0:
                            live.emit([chunk(word, message) for word in words])
                        case 1:
                            for word in words:
                                live.stream(said(word, message))
                        case _:
                            live.stream_text([text(word, message, thought=thought) for word in words])
                    wanted += words
                    match chance.randrange(6):
                        case 0:
                            await next_turn()
                        case 1:
                            await live.durable()
                        case 2:
                            await rested(live)
                        case 3:
                            assert live.fold.last_seq == len(wanted) + 1
                await live.durable()
                await client.until(len(wanted) + 1)
                assert texts(client.events) == wanted
                assert [event.seq for event in client.events] == list(range(2, len(wanted) + 2))
                folded = live.fold
        restored = await read_session(store, "s")
        assert [(item.key, item.materialize()) for item in restored.items] == [
            (item.key, item.materialize()) for item in folded.items
        ]


@pytest.mark.parametrize("in_place", [True, False])
async def test_what_the_store_refuses_reaches_nobody(in_place: bool, tmp_path: Path) -> None:
    store: Any = SQLiteStore(tmp_path / "s.db") if in_place else Gated()
    client = Client()
    live = await create(store)
    async with live, following(live, client) as attachment:
        await at_tail(live, attachment)
        if in_place:
            store.append_in_place = _full
        else:
            store.failure = StoreError("full")
        live.stream_text([text("lost")])
        with pytest.raises(StoreError):
            await live.durable()
    assert client.events == []
    assert live.failed
    with pytest.raises(StoreError):
        live.stream_text([text("more")])
    await store.aclose()


def _full(*_: Any, **__: Any) -> bool:
    raise StoreError("full")


async def test_nothing_is_sent_while_another_process_holds_the_file(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db", patience=DEADLINE) as store, await create(store) as live:
        client = Looking(store.path)
        async with following(live, client) as attachment:
            await at_tail(live, attachment)
            with locked(store.path) as other:
                live.stream_text([text("a")])
                await asyncio.sleep(0)
                live.stream_text([text("b")])
                for _ in range(50):
                    await asyncio.sleep(0)
                assert client.events == []
                assert live.fold.messages[0].text == "ab", "the fold runs ahead"
                other.execute("ROLLBACK")
                await client.until(3)
            assert texts(client.events) == ["a", "b"]


async def test_a_store_that_takes_its_time_is_waited_for() -> None:
    store, client = Gated(), Client()
    async with await create(store) as live, following(live, client):
        store.gate.clear()
        live.stream_text([text("one")])
        live.stream_text([text("two")])
        for _ in range(20):
            await asyncio.sleep(0)
        assert client.events == []
        store.gate.set()
        await client.until(3)
        assert texts(client.events) == ["one", "two"]


async def test_a_follower_that_looks_at_the_fold_finds_what_it_is_given(tmp_path: Path) -> None:
    class Curious(Client):
        def write(self, stretch: Stretch) -> None:
            super().write(stretch)
            assert live.fold.last_seq >= stretch.last
            assert live.fold.messages[0].text.endswith(texts(list(stretch.events))[-1])

    async with SQLiteStore(tmp_path / "s.db") as store, await create(store) as live:
        client = Curious()
        async with following(live, client) as attachment:
            await at_tail(live, attachment)
            for word in ("a", "b", "c"):
                live.stream_text([text(word)])
                await rested(live)
            assert texts(client.events) == ["a", "b", "c"]


async def test_text_is_folded_as_its_events_are() -> None:
    chunks = [text("a"), text("b"), text("t", thought=True), text("c"), text("d", "n")]
    store, client = MemoryStore(), Client()
    live = await LiveSession.create(store, session_id="s", cwd="/", clock=clock)
    async with live, following(live, client):
        live.stream_text(chunks)
        await client.until(6)
        events: list[Event] = client.events
        again = Session().fold([Event(1, clock(), live.fold.created), *events])  # type: ignore[arg-type]
        assert [(item.key, item.materialize()) for item in again.items] == [
            (item.key, item.materialize()) for item in live.fold.items
        ]
        assert all(type(event.body) is Updated for event in events)
        first: Any = events[0].body
        assert first.update == v2.AgentMessageChunk(
            message_id=v2.MessageId("m"), content=v2.TextContent(text="a")
        )
