"""How a journal begins in a store, and how a session is read back from it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

from antiphon.engine.events import AnyBody, Event, SessionCreated, decode_event, encode_event
from antiphon.engine.journal import Cursor
from antiphon.engine.session import Session
from antiphon.engine.snapshot import Restoring
from antiphon.errors import SessionExists, SessionUnknown, StoreError
from antiphon.stores.base import Batch, SessionRecord, Store

PREVIEW_BYTES = 256 * 1024
"""How much of a snapshot is read at once."""

Preview = Callable[[list[bytes]], bool]
"""Takes the next updates of a replay; whether it wants more."""


async def begin_journal(
    store: Store, created: SessionCreated, history: Iterable[AnyBody], *, now: int, owner: str
) -> Session:
    """Put a new session into the store, claimed by `owner`; returns its fold."""
    events = [Event(seq, now, body) for seq, body in enumerate((created, *history), start=1)]
    fold = Session().fold(events)
    record = SessionRecord(
        session_id=created.session_id,
        cwd=created.cwd,
        additional_directories=created.additional_directories,
        title=None if fold.facts.info is None else fold.facts.info.title,
        created_at=now,
        updated_at=now,
    )
    try:
        await store.create(record)
        await store.claim(created.session_id, owner)
        await store.append(created.session_id, Batch(1, tuple(map(encode_event, events))))
    except SessionExists:
        raise
    except BaseException:
        with contextlib.suppress(StoreError, SessionUnknown):
            await store.delete(created.session_id)  # without its first event nobody could open it
        raise
    return fold


async def restore(store: Store, session_id: str, preview: Preview | None) -> tuple[Session, int]:
    """Read a session back: its snapshot, and every event since. Returns its fold, and the last event of the
    snapshot."""
    record = await store.get(session_id)
    restoring, cursor = Restoring(), 0
    after: str | None = ""
    while after is not None:
        cursor, parts, after = await store.load_parts(session_id, after=after, limit_bytes=PREVIEW_BYTES)
        shown = restoring.add(parts)
        if record is None or cursor != record.last or restoring.at_work:
            preview = None
        if preview is not None and shown and not preview(shown):
            preview = None
    fold = restoring.finish(Cursor(cursor))
    while (page := await store.read(session_id, fold.last_seq)).batches:
        for batch in page.batches:
            fold.fold(map(decode_event, batch.events))
    if fold.created is None:
        await store.delete(session_id)  # whoever began it died before it had a first event
        raise SessionUnknown(session_id)
    return fold, cursor
