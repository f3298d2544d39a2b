"""The file: nothing that was changed in it gets through, and the refusal says what is wrong."""

from __future__ import annotations

import hashlib
import io
import json
import zlib

import pytest

from antiphon.engine.events import Event, encode_event
from antiphon.session_files import FileRefused, import_session
from antiphon.session_files import format as format_module
from antiphon.session_files.format import PartReader, PartWriter
from antiphon.stores import MemoryStore
from tests.engine.journals import chunk
from tests.session_files.files import CREATED, TALK, exported, imported

LONG = (*TALK, *[chunk(f"n{number}", "word " * 2000) for number in range(300)])


async def refusal(file: bytes) -> str:
    """Why a file is refused; nothing of it is left."""
    store = MemoryStore()
    with pytest.raises(FileRefused) as refused:
        await import_session(store, io.BytesIO(file))
    assert not (await store.list()).records
    return str(refused.value)


def part(head: dict[str, object], body: bytes = b"") -> bytes:
    line = json.dumps(head, separators=(",", ":")).encode()
    return line + b" " + hashlib.sha256(line + b"\n" + body).hexdigest().encode() + b"\n" + body + b"\n"


def split(file: bytes) -> list[bytes]:
    """A file's parts."""
    found, at = [], 0
    while at < len(file):
        end = file.index(b"\n", at)
        size = json.loads(file[at:end].rpartition(b" ")[0])["size"]
        found.append(file[at : end + 1 + size + 1])
        at = end + 1 + size + 1
    return found


async def test_a_flipped_bit_anywhere_is_refused() -> None:
    file = await exported()
    assert (await imported(file))[0].last == len(TALK)
    for at in range(len(file)):
        for bit in (0x01, 0x20, 0x80):
            damaged = bytearray(file)
            damaged[at] ^= bit
            assert await refusal(bytes(damaged))


async def test_a_refusal_says_where_and_what() -> None:
    file = await exported(LONG)
    pieces = split(file)
    assert len(pieces) >= 4  # the beginning, several parts of events, the end
    at = 0
    told = []
    for piece in pieces:
        damaged = bytearray(file)
        damaged[at + len(piece) - 3] ^= 0x01
        told.append(await refusal(bytes(damaged)))
        assert f"byte {at}" in told[-1]
        at += len(piece)
    assert told[0].endswith("the beginning does not match its checksum")
    assert "the part with events 1 to " in told[1]
    assert told[-1].endswith("the end does not match its checksum")


async def test_a_file_that_is_cut_off_is_refused_wherever_that_is() -> None:
    file = await exported()
    for size in range(len(file)):
        told = await refusal(file[:size])
        assert "cut off" in told or size < file.index(b"\n") + 1


async def test_parts_that_are_missing_moved_doubled_or_added_are_missed() -> None:
    first, one, two, *rest = split(await exported(LONG))
    assert "missing" in await refusal(b"".join([first, two, *rest]))
    assert "missing" in await refusal(b"".join([first, two, one, *rest]))
    assert "twice" in await refusal(b"".join([first, one, one, two, *rest]))
    assert "second session" in await refusal(b"".join([first, first, one, two, *rest]))
    assert "follows its end" in await refusal(b"".join([first, one, two, *rest, b"\n"]))
    assert "as a whole" in await refusal(b"".join([first, one, rest[-1]]))


async def test_a_later_version_is_told() -> None:
    first, *rest = split(await exported())
    head, _, body = first.partition(b"\n")
    later = json.loads(head.rpartition(b" ")[0]) | {"version": 7, "news": "of another kind"}
    told = await refusal(b"".join([part(later, body[:-1]), *rest]))
    assert "version 7" in told
    assert "later" in told


@pytest.mark.parametrize(
    "file", [b"", b"\n", b"{}\n", b"hello", b"PK\x03\x04" * 50, b"\x1f\x8b" + b"\0" * 100_000, b"[" * 70_000]
)
async def test_what_is_no_such_file_is_told(file: bytes) -> None:
    assert "not a session file" in await refusal(file)


async def test_a_bomb_does_not_go_off(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *_ = split(await exported())
    body = zlib.compress(b"0" * 50_000_000)
    small = {"part": "events", "size": len(body), "inflated": 10, "first": 1, "last": 1}
    assert "does not have the stated size" in await refusal(first + part(small, body))
    for large in ({"size": 1 << 40}, {"inflated": 1 << 40}, {"size": -1}, {"inflated": -1}):
        assert "above the limit" in await refusal(first + part(small | large, body))
    nested = b'{"part":"events","x":' + b"[" * 30_000
    assert "cannot be read" in await refusal(first + nested + b" 0\n")


async def test_a_body_with_something_behind_it_is_refused() -> None:
    first, *_ = split(await exported())
    for body, told in (
        (zlib.compress(b"{}") + b"more", "the stated size"),
        (zlib.compress(b"{}")[:-2], "the stated size"),
        (b"no deflate", "cannot be inflated"),
    ):
        head = {"part": "events", "size": len(body), "inflated": 2, "first": 1, "last": 1}
        assert told in await refusal(first + part(head, body))


async def test_a_journal_that_is_none_is_refused() -> None:
    def file(*events: bytes, last: int, at: int = 1) -> bytes:
        made = io.BytesIO()
        writer = PartWriter(made.write)
        writer.begin("s", last, b'{"session_id":"s","cwd":"/","created_at":%d,"updated_at":1}' % at)
        writer.events(1, list(events))
        writer.end()
        return made.getvalue()

    created = encode_event(Event(1, 1, CREATED))
    closed = b'{"seq":2,"at":1,"body":{"type":"session_closed"}}'
    assert (await imported(file(created, closed, last=2)))[0].last == 2
    for at in (10**30, -1):
        assert await refusal(file(created, last=1, at=at))
    assert "should end with 3" in await refusal(file(created, closed, last=3))
    assert "not session_created" in await refusal(file(closed.replace(b"2", b"1", 1), last=1))
    assert "found event 2" in await refusal(file(created, closed, closed, last=3))
    assert "later" in await refusal(
        file(created, closed.replace(b"session_closed", b"session_frozen"), last=2)
    )
    assert "format 9" in await refusal(file(created.replace(b'"format":1', b'"format":9'), last=1))
    assert "not session_created" in await refusal(
        file(created.replace(b'"session_id":"s"', b'"session_id":"t"'), last=1)
    )


def test_what_is_too_large_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(format_module, "BODY_LIMIT", 100)
    with pytest.raises(Exception, match="event 5 is larger"):
        PartWriter(lambda _: None).events(5, [b"x" * 101])


def test_a_reader_takes_no_more_than_it_is_given() -> None:
    with pytest.raises(FileRefused):
        PartReader(io.BytesIO(b"x" * 1_000_000)).begin()
