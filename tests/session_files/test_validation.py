"""A file is checked whole before anything of it can be seen."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest

from antiphon.engine.events import Event, SessionCreated, encode_event
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.engine.transcript import Transcript
from antiphon.live.presence import rfc3339
from antiphon.session_files import FileRefused, import_session
from antiphon.session_files import reader as reader_module
from antiphon.session_files.format import PartWriter
from antiphon.stores import MemoryStore
from tests.engine.journals import chunk

LATEST = 253_402_300_799_999


def session(id: str = "s", *events: bytes, first: dict[str, Any] | None = None, **fields: Any) -> Any:
    """A session of a file: its record, and its events."""
    record = {"session_id": id, "cwd": "/w", "created_at": 1, "updated_at": 2, **fields}
    created = SessionCreated(**{"session_id": record["session_id"], "cwd": "/w", **(first or {})})
    return record, [encode_event(Event(1, 1, created)), *events]


def file_of(*sessions: tuple[dict[str, Any], list[bytes]]) -> bytes:
    made = io.BytesIO()
    writer = PartWriter(made.write, version=1 if len(sessions) == 1 else 2)
    for record, lines in sessions:
        writer.begin(record["session_id"], len(lines), msgspec.json.encode(record))
        writer.events(1, lines)
    writer.end()
    return made.getvalue()


async def refusal(*sessions: tuple[dict[str, Any], list[bytes]], **given: Any) -> str:
    store = MemoryStore()
    with pytest.raises(FileRefused) as refused:
        await import_session(store, io.BytesIO(file_of(*sessions)), **given)
    assert not (await store.list()).records
    return str(refused.value)


async def taken(*sessions: tuple[dict[str, Any], list[bytes]]) -> MemoryStore:
    store = MemoryStore()
    await import_session(store, io.BytesIO(file_of(*sessions)))
    return store


def event(seq: int, text: str = "x", at: int = 1) -> bytes:
    return encode_event(Event(seq, at, chunk("m", text)))


async def test_a_session_within_all_bounds_is_taken() -> None:
    await taken(session("s", event(2), created_at=0, updated_at=LATEST, title="é" * 10_000, cwd="/ö b/ñ"))


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"created_at": LATEST + 1}, "created_at is 253402300800000"),
        ({"updated_at": LATEST + 1}, "year 9999"),
        ({"updated_at": 10**18}, "updated_at"),
        ({"created_at": -1}, "created_at is -1"),
        ({"created_at": 10**30}, "year 9999"),
        ({"created_at": 1.5}, "cannot be read"),
        ({"session_id": ""}, "printable characters"),
        ({"session_id": "x" * 201}, "printable characters"),
        ({"session_id": "a b"}, "printable characters"),
        ({"session_id": "a\x1b[2J"}, "printable characters"),
        ({"session_id": "a\u202eb"}, "printable characters"),
        ({"cwd": ""}, "cwd is no path"),
        ({"cwd": "/a\x00b"}, "cwd is no path"),
        ({"cwd": "/a\nb"}, "cwd is no path"),
        ({"cwd": "/a\x1b[2Jb"}, "cwd is no path"),
        ({"cwd": "/" + "a" * 5000}, "cwd is no path"),
        ({"additional_directories": ["/a\x00"]}, "additional_directories is no path"),
        ({"additional_directories": ["/a"] * 1001}, "1001 folders"),
        ({"title": "x" * 10_001}, "title has 10001"),
        ({"state": ""}, "state"),
        ({"state": "x" * 101}, "state"),
        ({"meta": {"x": "y" * (1 << 20)}}, "record has"),
        ({"meta": {SUBAGENT_OF: 7}}, "not another session"),
        ({"meta": {SUBAGENT_OF: "s"}}, "not another session"),
        ({"meta": []}, "cannot be read"),
    ],
)
async def test_a_record_out_of_bounds_is_refused(fields: dict[str, Any], told: str) -> None:
    assert told in await refusal(session(**{"id": "s", **fields}))


async def test_a_record_or_an_event_that_is_nested_too_deep_is_refused() -> None:
    record, lines = session("s")
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    assert "nested deeper than 160 levels" in await refusal(session("s", meta={"x": deep}))
    raw = b'{"seq":2,"at":1,"body":{"type":"update","update":{"sessionUpdate":"odd","x":%s1%s}}}'
    assert "event 2 is nested" in await refusal((record, [*lines, raw % (b"[" * 900, b"]" * 900)]))
    text = event(2, '[{"' * 500)
    await taken((record, [*lines, text]))  # brackets in a text are no depth


@pytest.mark.parametrize(
    ("second", "told"),
    [
        (event(2, at=LATEST + 1), "the time of event 2"),
        (event(2, at=-1), "the time of event 2"),
        (event(3), "expected event 2, found event 3"),
        (event(1), "expected event 2, found event 1"),
        (b"{}", "event 2 cannot be read"),
        (b"", "event 2 cannot be read"),
        (event(2).replace(b"x", b"\xff"), "event 2 cannot be read"),
        (b'{"seq":2,"at":1,"body":{"type":"frozen"}}', "a later Antiphon"),
    ],
)
async def test_an_event_that_is_none_is_refused(second: bytes, told: str) -> None:
    assert told in await refusal(session("s", second))


async def test_what_the_engine_cannot_fold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("odd")

    monkeypatch.setattr(Transcript, "chunk", fail)
    assert "event 2 cannot be folded: KeyError" in await refusal(session("s", event(2)))


async def test_parents_that_are_missing_or_contradict_each_other_are_refused() -> None:
    def child(id: str, of: Any, told: Any = None) -> Any:
        return session(
            id, meta={SUBAGENT_OF: of}, first={"meta": {SUBAGENT_OF: of if told is None else told}}
        )

    root = session("s")
    await taken(root, child("a", "s"), child("b", "a"))
    assert "no parent in the file" in await refusal(root, child("a", "nobody"))
    assert "no parent in the file" in await refusal(root, child("a", "b"), child("b", "a"))
    assert "twice" in await refusal(root, child("a", "s"), child("a", "s"))
    assert "twice" in await refusal(root, child("s", "a"), child("a", "s"))
    assert "no parent in the file" in await refusal(root, session("a"))
    assert "different parent sessions" in await refusal(root, child("a", "s", "other"))


async def test_two_files_cannot_make_a_circle() -> None:
    store = MemoryStore()
    for one, other in (("a", "b"), ("b", "a")):
        made = session(one, meta={SUBAGENT_OF: other}, first={"meta": {SUBAGENT_OF: other}})
        await import_session(store, io.BytesIO(file_of(made)))
    for id in ("a", "b"):
        record = await store.get(id)
        assert record is not None
        assert SUBAGENT_OF not in record.meta
        page = await store.read(id, 0)
        assert SUBAGENT_OF.encode() not in page.batches[0].events[0]


async def test_a_file_with_very_many_sessions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "SESSIONS", 3)
    many = [
        session(f"c{number}", meta={SUBAGENT_OF: "s"}, first={"meta": {SUBAGENT_OF: "s"}})
        for number in range(3)
    ]
    await taken(session("s"), *many[:2])
    assert "more than 3 sessions" in await refusal(session("s"), *many)


@pytest.mark.parametrize("at", [LATEST, LATEST + 1, 10**15, (1 << 63) - 1, -1, -(10**15)])
def test_no_time_fails_a_list(at: int) -> None:
    assert rfc3339(at).endswith("Z")
    assert len(rfc3339(at)[:10]) == 10
