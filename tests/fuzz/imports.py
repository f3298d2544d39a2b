"""Import files: refused as a whole, or taken whole and good for everything that a session is good for.

An input that begins with `{` holds a session's record, then its events, a line each, and is sealed with the
right checksums; a line `{"session":…}` begins another session. Any other input is the file itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from antiphon.errors import AntiphonError, LocalError
from antiphon.live.presence import rfc3339
from antiphon.live.stored_session import read_session
from antiphon.session_files import export_session, import_session
from antiphon.session_files.format import PartWriter
from antiphon.stores import MemoryStore
from antiphon.testing.store_samples import read_all
from tests.fuzz.mutation import seeds
from tests.fuzz.running import Broken, Check

TESTS = Path(__file__).parents[1]
NEXT = b'{"session":'
RECORD = (
    b'{"session_id":"s","cwd":"/","title":"T","created_at":1,"updated_at":2,"meta":{"hub":{"agent":"a"}}}\n'
)
SEEDS = [
    *seeds("imports"),
    *(RECORD + path.read_bytes().strip() for path in sorted((TESTS / "journals" / "1").glob("*.jsonl"))),
    *(path.read_bytes() for path in sorted((TESTS / "session_files" / "recorded").glob("*.antiphon"))),
]
WORDS = (
    b'"seq":',
    b'"at":99999999999999999',
    b'"body":{}',
    b'"format":2',
    b"\n",
    b'"session_id":"s"',
    b'{"session":',
    b'"created_at":253402300800000',
    b'"meta":{"antiphon":{}}',
    b'"type":"update"',
    b"9223372036854775808",
    b"[" * 1200,
)


@contextlib.contextmanager
def opened() -> Iterator[Check]:
    with asyncio.Runner() as runner:
        yield lambda data: runner.run(check(data))


def sealed(data: bytes) -> bytes:
    """A file with right checksums, whatever it holds."""
    groups: list[list[bytes]] = [[]]
    for line in data.split(b"\n"):
        begins = line.startswith(NEXT) and bool(groups[-1])
        if begins:
            groups.append([])
        groups[-1].append(line.removeprefix(NEXT).removesuffix(b"}") if begins else line)
    file = io.BytesIO()
    parts = PartWriter(file.write, version=1 if len(groups) == 1 else 2)
    for record, *events in groups:
        parts.begin(_id_of(record), len(events), record)
        if events:
            parts.events(1, events)
    parts.end()
    return file.getvalue()


def _id_of(record: bytes) -> str:
    try:
        given: Any = msgspec.json.decode(record)
        return str(given["session_id"])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError, TypeError):
        return "s"


async def check(data: bytes) -> str:
    file = sealed(data) if data.startswith(b"{") else data
    store = MemoryStore()
    try:
        record = await import_session(store, io.BytesIO(file))
    except LocalError as error:
        if (await store.list()).records:
            raise Broken(f"a file was refused, and a session of it is there: {error}") from error
        return f"{type(error).__name__}: {str(error)[:24]}"
    events = await read_all(store, record.session_id)
    listing = (await store.list()).records
    if record.session_id not in [listed.session_id for listed in listing]:
        raise Broken("an imported session is not listed")
    for listed in listing:
        rfc3339(listed.created_at)
        rfc3339(listed.updated_at)
    fold = await read_session(store, record.session_id)
    if fold.last_seq != len(events):
        raise Broken(f"{len(events)} events were imported and {fold.last_seq} are in the session")
    again = io.BytesIO()
    await export_session(store, record.session_id, again.write)
    other = MemoryStore()
    try:
        await import_session(other, io.BytesIO(again.getvalue()))
    except AntiphonError as error:
        raise Broken(f"what was imported and exported is refused: {error}") from error
    if await read_all(other, record.session_id) != events:
        raise Broken("what was imported and exported is another session")
    return f"imported {min(len(events), 9)}"
