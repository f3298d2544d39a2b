"""How a journal begins in a store, and how a session is read back from it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable

from antiphon.engine.events import AnyBody, Event, SessionCreated, encode_event
from antiphon.engine.session import Session
from antiphon.engine.snapshot import Restoring
from antiphon.errors import SessionExists, SessionUnknown, StoreError
from antiphon.live.reading import (
    SnapshotUnusable,
    add_parts,
    check_snapshot,
    check_tail,
    finish_parts,
    fold_journal,
    load_parts,
    readable_record,
)
from antiphon.stores.base import Batch, SessionRecord, Store

logger = logging.getLogger("antiphon.live")

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
    batch = Batch(1, tuple(map(encode_event, events)))
    try:
        # One commit: a session without its first event could not be told from one that has lost it.
        await store.create(record, batch=batch)
        await store.claim(created.session_id, owner)
    except SessionExists:
        raise
    except BaseException:
        with contextlib.suppress(StoreError, SessionUnknown):
            await store.delete(created.session_id)  # nobody knows of it
        raise
    return fold


async def restore(store: Store, session_id: str, preview: Preview | None) -> tuple[Session, int]:
    """Read a session back: its snapshot, and every event since. Returns its fold, and the last event of the
    snapshot. A snapshot that cannot be used is made anew from the journal.

    Raises `SessionUnknown`, `SessionDamaged` or `SessionTooNew`; nothing is deleted then.
    """
    record = await readable_record(store, session_id)
    try:
        fold = await _from_snapshot(store, record, preview)
    except SnapshotUnusable as error:
        fold, cursor = Session(), 0
        await fold_journal(store, session_id, fold)
        logger.warning("snapshot damaged: session %s: %s; made anew from its journal", session_id, error)
        await store.drop_snapshot(session_id)
    else:
        cursor = fold.last_seq
        await check_tail(store, record, cursor)
        await fold_journal(store, session_id, fold)
    return fold, cursor


async def _from_snapshot(store: Store, record: SessionRecord, preview: Preview | None) -> Session:
    restoring, cursor = Restoring(), 0
    after: str | None = ""
    while after is not None:
        cursor, parts, after = await load_parts(store, record.session_id, after, limit_bytes=PREVIEW_BYTES)
        shown = list(add_parts(restoring, parts))
        if cursor != record.last or restoring.at_work:
            preview = None
        if preview is not None and shown and not preview(shown):
            preview = None
    fold = finish_parts(restoring, cursor)
    check_snapshot(fold, record)
    return fold
