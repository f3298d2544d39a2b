"""Files of sessions for the tests, in memory."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from antiphon.engine.events import AnyBody, SessionCreated, encode_event
from antiphon.engine.session import Session
from antiphon.live.stored_session import read_session
from antiphon.session_files import export_session, import_session
from antiphon.stores import Batch, MemoryStore, SessionRecord, Store
from antiphon.testing.store_samples import read_all
from tests.engine.journals import AT, chunk, number, state

CREATED = SessionCreated(session_id="s", cwd="/w", additional_directories=("/x",), meta={"k": 1})
TALK = (
    CREATED,
    state("running"),
    chunk("m", "Hello "),
    chunk("m", "world"),
    state("idle", stopReason="end_turn"),
)


async def kept(store: Store, bodies: Sequence[AnyBody] = TALK, *, at_once: int = 3) -> list[bytes]:
    """A session `s` in a store, appended in batches; its events."""
    meta = {"hub": {"agent": "a", "sessions": ["x"]}}
    record = SessionRecord(session_id="s", cwd="/w", title="A title", created_at=1, updated_at=2, meta=meta)
    await store.create(record)
    lines = [encode_event(event) for event in number(bodies, after=0, at=AT)]
    for first in range(0, len(lines), at_once):
        await store.append("s", Batch(first + 1, tuple(lines[first : first + at_once])))
    return lines


async def exported(bodies: Sequence[AnyBody] = TALK) -> bytes:
    store = MemoryStore()
    await kept(store, bodies)
    return await written(store)


async def written(store: Store, session_id: str = "s") -> bytes:
    file = io.BytesIO()
    await export_session(store, session_id, file.write)
    return file.getvalue()


async def imported(
    file: bytes, store: Store | None = None, **given: Any
) -> tuple[SessionRecord, list[bytes], Session]:
    """What an import makes: the record, the events and the fold."""
    store = store or MemoryStore()
    record = await import_session(store, io.BytesIO(file), **given)
    assert await store.get(record.session_id) == record
    return record, await read_all(store, record.session_id), await read_session(store, record.session_id)
