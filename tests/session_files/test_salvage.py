"""Damaged sessions are exported as far as they go, and such a file is imported in part or clearly refused."""

from __future__ import annotations

import io
import json

import pytest

from antiphon.engine.events import AnyBody, SessionCreated, encode_event
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.errors import SessionUnknown
from antiphon.session_files import FileRefused, Missing, export_session, import_session, read_account
from antiphon.stores import Batch, MemoryStore, SessionRecord
from antiphon.testing.store_samples import read_all
from antiphon.transcripts import to_markdown
from tests.engine.journals import chunk, number, state, update
from tests.session_files.files import CREATED, imported, kept
from tests.session_files.test_format import split

BODIES: tuple[AnyBody, ...] = (
    CREATED,
    state("running"),
    chunk("m1", "First part. "),
    chunk("m1", "Second part. "),
    chunk("m2", "Third part."),
    state("idle", stopReason="end_turn"),
)


async def damaged(*gone: int, garbage: dict[int, bytes] | None = None) -> tuple[MemoryStore, list[bytes]]:
    """A store whose session `s` has lost the batches of these events, or has garbage in their place."""
    store = MemoryStore()
    lines = await kept(store, BODIES, at_once=1)
    batches = store._kept("s").batches
    for seq, line in (garbage or {}).items():
        batches[seq - 1] = Batch(seq, (line,))
    store._kept("s").batches = [batch for batch in batches if batch.first not in gone]
    return store, lines


async def written(store: MemoryStore, session_id: str = "s") -> tuple[bytes, list[str]]:
    file, missing = io.BytesIO(), list[Missing]()
    await export_session(store, session_id, file.write, report=missing.append)
    return file.getvalue(), [str(each) for each in missing]


def heads(file: bytes) -> list[dict[str, object]]:
    return [json.loads(piece.partition(b"\n")[0].rpartition(b" ")[0]) for piece in split(file)]


async def test_a_hole_is_named_in_the_file_and_both_sides_of_it_are_there() -> None:
    store, _ = await damaged(4)
    file, missing = await written(store)
    assert missing == ["event 4 cannot be read (events 4 to 4 are missing)"]
    told = [(head["part"], head.get("first"), head.get("last")) for head in heads(file)]
    assert told == [
        ("session", None, 6),
        ("events", 1, 3),
        ("missing", 4, 4),
        ("events", 5, 6),
        ("end", None, None),
    ]
    assert heads(file)[0]["version"] == 3


@pytest.mark.parametrize(
    "garbage", [b"", b"{", b"\xff\xfe", b"null", b'{"seq":9,"at":1,"body":{}}', b"[" * 5000]
)
async def test_an_event_that_cannot_be_read_costs_that_event(garbage: bytes) -> None:
    store, lines = await damaged(garbage={4: garbage})
    file, missing = await written(store)
    assert len(missing) == 1
    assert missing[0].startswith("event 4 cannot be read")
    with pytest.raises(FileRefused, match="events 4 to 4 are missing"):
        await import_session(MemoryStore(), io.BytesIO(file))
    record, found, fold = await imported(file, partial=True)
    assert record.last == 3
    assert found == lines[:3]
    assert [message.text for message in fold.messages] == ["First part. "]


async def test_what_has_lost_its_beginning_is_exported_and_its_import_refused() -> None:
    store, _ = await damaged(1, 2)
    file, missing = await written(store)
    assert missing == ["events 1 to 2 cannot be read (events 1 to 2 are missing)"]
    for partial in (False, True):
        there = MemoryStore()
        with pytest.raises(FileRefused, match="without the first event there is nothing to import"):
            await import_session(there, io.BytesIO(file), partial=partial)
        assert not (await there.list()).records


async def test_a_session_without_events_is_exported_as_what_it_is() -> None:
    store = MemoryStore()
    await store.create(SessionRecord(session_id="s", cwd="/w", title="T", created_at=1, updated_at=2))
    file, missing = await written(store)
    assert missing == ["it has no events"]
    for partial in (False, True):
        with pytest.raises(FileRefused):
            await import_session(MemoryStore(), io.BytesIO(file), partial=partial)
    with pytest.raises(SessionUnknown):
        await written(store, "none")


async def test_events_of_a_later_version_are_exported_as_they_are() -> None:
    later = b'{"seq":4,"at":1,"body":{"type":"mended","x":1}}'
    store, _ = await damaged(garbage={4: later})
    file, missing = await written(store)
    assert missing == []
    assert heads(file)[0]["version"] == 1
    with pytest.raises(FileRefused, match="a later Antiphon wrote it"):
        await import_session(MemoryStore(), io.BytesIO(file))


async def test_a_transcript_says_where_something_is_missing() -> None:
    store, _ = await damaged(4)
    missing: list[Missing] = []
    text = "".join(to_markdown(await read_account(store, "s", report=missing.append)))
    assert [(each.first, each.last) for each in missing] == [(4, 4)]
    assert "First part." in text
    assert "Third part." in text
    assert "Second part." not in text
    assert "Events are missing here: event 4 cannot be read" in text
    store, _ = await damaged(1)
    text = "".join(to_markdown(await read_account(store, "s")))
    assert "Third part." in text


async def test_subagents_in_a_circle_are_each_exported_once() -> None:
    store = MemoryStore()
    for one, other in (("a", "b"), ("b", "a")):
        record = SessionRecord(
            session_id=one, cwd="/w", created_at=1, updated_at=1, meta={SUBAGENT_OF: other}
        )
        created = SessionCreated(session_id=one, cwd="/w", meta={SUBAGENT_OF: other})
        told = update("subagent_update", sessionId=other, title="Other", cwd="/w")
        lines = tuple(encode_event(event) for event in number([created, told], after=0, at=1))
        await store.create(record, batch=Batch(1, lines))
    file, missing = await written(store, "a")
    assert missing == []
    assert [head.get("session_id") for head in heads(file) if head["part"] == "session"] == ["a", "b"]
    there = MemoryStore()
    await import_session(there, io.BytesIO(file))
    first, second = await there.get("a"), await there.get("b")
    assert first is not None
    assert second is not None
    assert SUBAGENT_OF not in first.meta, "what is imported works for none: there is no circle any more"
    assert second.meta[SUBAGENT_OF] == "a"
    assert len(await read_all(there, "b")) == 2
