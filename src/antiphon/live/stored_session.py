"""Sessions in a store: begin a journal, restore a session to work in it, or read it without opening it.

A session that cannot be read raises `SessionDamaged`, or `SessionTooNew` if a later version wrote it. The
fault is noted in the store, so that session lists show it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import NamedTuple, NoReturn

from antiphon.engine import events as e
from antiphon.engine.events import Event
from antiphon.engine.session import Session
from antiphon.engine.snapshot import SessionRestorer
from antiphon.errors import (
    SessionDamaged,
    SessionExists,
    SessionTooNew,
    SessionUnknown,
    StoreCorrupt,
    StoreError,
)
from antiphon.stores.base import Batch, Fault, FaultKind, SessionRecord, Store

logger = logging.getLogger("antiphon.live")

PREVIEW_BYTES = 256 * 1024
"""Bytes of a snapshot that are read at once."""

Preview = Callable[[list[bytes]], bool]
"""Takes the next updates of a replay; returns whether it wants more."""


class Growth(NamedTuple):
    """Events that a journal has grown by."""

    events: list[Event]
    size: int
    """Their bytes in the store."""
    whole: bool
    """Whether these are all of them."""


class SnapshotUnusable(Exception):
    """A snapshot that cannot be read, or is of another session: the journal has to be folded instead."""


async def begin_journal(
    store: Store, created: e.SessionCreated, history: Iterable[e.AnyBody], *, now: int, owner: str
) -> Session:
    """Put a new session into the store, claimed by `owner`; return its fold."""
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
    batch = Batch(1, tuple(map(e.encode_event, events)))
    try:
        # One commit: a session without its first event would look like one that has lost it.
        await store.create(record, batch=batch)
        await store.claim(created.session_id, owner)
    except SessionExists:
        raise
    except BaseException:
        with contextlib.suppress(StoreError, SessionUnknown):
            await store.delete(created.session_id)  # no client knows of it
        raise
    return fold


async def read_session(store: Store, session_id: str, preview: Preview | None = None) -> Session:
    """Read a session without opening it: nothing changes, and a claim on it does not matter.

    If `preview` got anything, the session is returned as of the event up to which it was previewed; another
    process may have written more since. Raises `SessionUnknown`, `SessionDamaged` or `SessionTooNew`.
    """
    record = await _readable_record(store, session_id)
    shown = _Shown(preview)
    try:
        fold = await _snapshot(store, record, shown)
    except SnapshotUnusable as error:
        logger.warning("snapshot damaged: session %s: %s; reading its journal instead", session_id, error)
        fold = Session()
    await _fold_journal(store, session_id, fold, upto=shown.upto)
    return fold


async def read_on(store: Store, session_id: str, fold: Session, *, limit_bytes: int) -> Growth:
    """Fold the next page of a journal that another process writes.

    Raises `SessionUnknown`, `SessionDamaged` or `SessionTooNew`; then `fold` is of no use any more.
    """
    events: list[Event] = []

    def decode(line: bytes) -> Event:
        events.append(_decode(line))
        return events[-1]

    async with _faults_noted(store, session_id):
        page = await store.read(session_id, fold.last_seq, limit_bytes=limit_bytes)
        lines = [line for batch in page.batches for line in batch.events]
        _fold(fold, map(decode, lines), session_id)
    return Growth(events, sum(map(len, lines)), whole=page.cursor >= page.last)


async def restore(store: Store, session_id: str, preview: Preview | None) -> tuple[Session, int]:
    """Restore a session from its snapshot and every event since. Return its fold, and the last event of the
    snapshot. A snapshot that cannot be used is dropped, and the whole journal is folded.

    Raises `SessionUnknown`, `SessionDamaged` or `SessionTooNew`; nothing is deleted then.
    """
    record = await _readable_record(store, session_id)
    try:
        fold = await _from_snapshot(store, record, preview)
    except SnapshotUnusable as error:
        fold, cursor = Session(), 0
        await _fold_journal(store, session_id, fold)
        logger.warning("snapshot damaged: session %s: %s; folded its journal instead", session_id, error)
        await store.drop_snapshot(session_id)
    else:
        cursor = fold.last_seq
        await _check_tail(store, record, cursor)
        await _fold_journal(store, session_id, fold)
    return fold, cursor


async def _readable_record(store: Store, session_id: str) -> SessionRecord:
    """Return the record. Raises `SessionUnknown`, or `SessionDamaged` if the record cannot be read."""
    record = await store.get(session_id)
    if record is None:
        raise SessionUnknown(session_id)
    if record.fault is not None and record.fault.in_record:
        raise SessionDamaged(session_id, record.fault.found)
    return record


async def _fold_journal(store: Store, session_id: str, fold: Session, *, upto: int | None = None) -> None:
    """Fold every event after those that `fold` has, up to the event `upto`. Raises if that gives no whole
    session."""
    async with _faults_noted(store, session_id):
        last = upto or 0
        while upto is None or fold.last_seq < upto:
            page = await store.read(session_id, fold.last_seq)
            if not page.batches:
                last = last or page.last
                break
            for batch in page.batches:
                lines = batch.events if upto is None else batch.events[: max(0, upto + 1 - batch.first)]
                _fold(fold, map(_decode, lines), session_id)
        _check_whole(fold, session_id, last)
    if _is_later(fold):
        assert fold.created is not None
        found = f"its journal is of format {fold.created.format}, and this version knows up to {e.FORMAT}"
        await _refuse(store, session_id, FaultKind.NEWER, found)


@contextlib.asynccontextmanager
async def _faults_noted(store: Store, session_id: str) -> AsyncIterator[None]:
    """Note the fault of a session that cannot be read, and raise it as `SessionDamaged` or
    `SessionTooNew`."""
    try:
        yield
    except SessionTooNew as newer:
        await _refuse(store, session_id, FaultKind.NEWER, newer.found)
    except StoreCorrupt as damage:
        await _refuse(store, session_id, FaultKind.DAMAGED, damage.found)


def _finish(restorer: SessionRestorer, upto: int, record: SessionRecord) -> Session:
    """Return the session of a snapshot. Raise `SnapshotUnusable` for a snapshot of another session."""
    with _unusable():
        fold = restorer.finish(e.Cursor(upto))
    if fold.last_seq and (fold.created is None or fold.created.session_id != record.session_id):
        raise SnapshotUnusable("its session_created event is missing, or of another session")
    return fold


async def _check_tail(store: Store, record: SessionRecord, upto: int) -> None:
    """Raise `SessionDamaged` if the snapshot ends after the journal."""
    if upto > record.last:
        found = _lost_tail(record.last, upto)
        await _refuse(store, record.session_id, FaultKind.DAMAGED, found)


def _fold(fold: Session, events: Iterable[Event], session_id: str) -> None:
    """Raises `StoreCorrupt`, or `SessionTooNew`."""
    try:
        fold.fold(events)
    except e.UnreadableEvent as error:
        found = f"event {fold.last_seq + 1} cannot be read: {error}"
        if isinstance(error, e.NewerEvent) or _is_later(fold):
            raise SessionTooNew(session_id, found) from error
        raise StoreCorrupt(found) from error
    except e.JournalGap as gap:
        raise StoreCorrupt(f"expected event {gap.expected}, found event {gap.got}") from gap
    except Exception as error:
        # The fold may raise anything for an event that a foreign program wrote, or that changed on disk.
        found = f"event {fold.last_seq} cannot be folded: {type(error).__name__}: {error}"
        raise StoreCorrupt(found) from error


def _decode(line: bytes) -> Event:
    if not line.isascii():
        try:
            line.decode()  # raw bytes in an event are not checked otherwise
        except UnicodeDecodeError as error:
            raise e.UnreadableEvent(str(error)) from None
    return e.decode_event(line)


def _lost_tail(last: int, upto: int) -> str:
    return f"events {last + 1} to {upto} are missing: a snapshot has them, the journal has not"


def _check_whole(fold: Session, session_id: str, last: int) -> None:
    if last > fold.last_seq:
        raise StoreCorrupt(f"events {fold.last_seq + 1} to {last} are missing")
    if last < fold.last_seq:
        raise StoreCorrupt(_lost_tail(last, fold.last_seq))
    if not fold.last_seq:
        raise StoreCorrupt("it has no events: it was cut off as it began, or they are lost")
    if fold.created is None:
        raise StoreCorrupt("its first event is not session_created")
    if fold.created.session_id != session_id:
        raise StoreCorrupt(f"its first event names the session {fold.created.session_id!r}")


def _is_later(fold: Session) -> bool:
    return fold.created is not None and fold.created.format > e.FORMAT


async def _refuse(store: Store, session_id: str, kind: FaultKind, found: str) -> NoReturn:
    with contextlib.suppress(StoreError):  # the fault says more than what keeps it from being noted
        await store.note_fault(session_id, Fault(kind, found))
    if kind is FaultKind.NEWER:
        raise SessionTooNew(session_id, found)
    logger.warning("session damaged: %s: %s; nothing of it was changed", session_id, found)
    raise SessionDamaged(session_id, found)


async def _snapshot(store: Store, record: SessionRecord, shown: _Shown) -> Session:
    """Read the snapshot. The process that has the session open may replace it between two pages: then it is
    read again from its beginning, or left alone if its beginning was previewed."""
    while True:
        restorer, first = SessionRestorer(), None
        after: str | None = ""
        while after is not None:
            upto, parts, after = await _load_parts(store, record.session_id, after, limit_bytes=PREVIEW_BYTES)
            first = upto if first is None else first
            if upto != first:
                break
            with _unusable():
                updates = restorer.add(parts)
            shown.show(updates, upto, last=record.last, at_work=restorer.at_work)
        else:
            return _finish(restorer, first or 0, record)
        if shown.upto is not None:
            return Session()


async def _from_snapshot(store: Store, record: SessionRecord, preview: Preview | None) -> Session:
    """Read the snapshot of a session that this process has claimed."""
    restorer, cursor, shown = SessionRestorer(), 0, _Shown(preview)
    after: str | None = ""
    while after is not None:
        cursor, parts, after = await _load_parts(store, record.session_id, after, limit_bytes=PREVIEW_BYTES)
        with _unusable():
            updates = restorer.add(parts)
        shown.show(updates, cursor, last=record.last, at_work=restorer.at_work)
    return _finish(restorer, cursor, record)


class _Shown:
    """The preview of a snapshot, and how far it has come."""

    def __init__(self, preview: Preview | None) -> None:
        self._preview = preview
        self.upto: int | None = None
        """The last event of the snapshot, if anything of it was previewed."""

    def show(self, updates: list[bytes], upto: int, *, last: int, at_work: bool) -> None:
        """Preview the updates of the next parts. `last`: the end of the journal."""
        if upto != last or at_work:
            self._preview = None
        if self._preview is not None and updates:
            self.upto = upto
            if not self._preview(updates):
                self._preview = None


async def _load_parts(
    store: Store, session_id: str, after: str, **limit: int
) -> tuple[int, dict[str, bytes], str | None]:
    """Read a page of a snapshot. Raises `SnapshotUnusable`."""
    try:
        return await store.load_parts(session_id, after=after, **limit)
    except StoreCorrupt as error:
        raise SnapshotUnusable(error.found) from error


@contextlib.contextmanager
def _unusable() -> Iterator[None]:
    """Raise any error as `SnapshotUnusable`: damaged bytes may raise anything."""
    try:
        yield
    except Exception as error:
        raise SnapshotUnusable(f"{type(error).__name__}: {error}") from error
