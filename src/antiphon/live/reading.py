"""Reading a session in a store without opening it: nobody's claim is in the way, and nothing changes.

What cannot be read raises `SessionDamaged`, or `SessionTooNew` where a later version wrote it. The store is
told, so that lists say so.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from antiphon.engine.events import FORMAT, Event, NewerEvent, UnreadableEvent, decode_event
from antiphon.engine.journal import Cursor, JournalGap
from antiphon.engine.session import Session
from antiphon.engine.snapshot import Restoring
from antiphon.errors import SessionDamaged, SessionTooNew, SessionUnknown, StoreCorrupt
from antiphon.stores.base import Fault, FaultKind, SessionRecord, Store

logger = logging.getLogger("antiphon.live")


class SnapshotUnusable(Exception):
    """A snapshot cannot be read, or is not one of this session: the journal has to be folded instead."""


async def read_session(store: Store, session_id: str) -> Session:
    """The session as far as it is kept. Raises `SessionUnknown`, `SessionDamaged` or `SessionTooNew`."""
    record = await readable_record(store, session_id)
    try:
        fold = await _snapshot(store, record)
    except SnapshotUnusable as error:
        logger.warning("snapshot damaged: session %s: %s; reading its journal instead", session_id, error)
        fold = Session()
    await fold_journal(store, session_id, fold)
    return fold


async def readable_record(store: Store, session_id: str) -> SessionRecord:
    """Raises `SessionUnknown`, or `SessionDamaged` where the record itself cannot be read."""
    record = await store.get(session_id)
    if record is None:
        raise SessionUnknown(session_id)
    if record.fault is not None and record.fault.in_record:
        raise SessionDamaged(session_id, record.fault.found)
    return record


async def fold_journal(store: Store, session_id: str, fold: Session) -> None:
    """Fold every event after those that were folded already. At the end it is a whole session."""
    try:
        while (page := await store.read(session_id, fold.last_seq)).batches:
            for batch in page.batches:
                _fold(fold, batch.events)
        _check_whole(fold, session_id, page.last)
    except _Newer as newer:
        await _refuse(store, session_id, FaultKind.NEWER, newer.found)
    except StoreCorrupt as damage:
        await _refuse(store, session_id, FaultKind.DAMAGED, damage.found)
    if _is_later(fold):
        assert fold.created is not None
        found = f"its journal is of format {fold.created.format}, and this version knows up to {FORMAT}"
        await _refuse(store, session_id, FaultKind.NEWER, found)


def check_snapshot(fold: Session, record: SessionRecord) -> None:
    """Raise `SnapshotUnusable` for a snapshot that is none of this session."""
    if fold.last_seq and (fold.created is None or fold.created.session_id != record.session_id):
        raise SnapshotUnusable("it does not say how the session was created")


async def check_tail(store: Store, record: SessionRecord, upto: int) -> None:
    """Raise `SessionDamaged` where a snapshot goes on behind the end of the journal."""
    if upto > record.last:
        found = f"events {record.last + 1} to {upto} are missing: a snapshot has them, the journal has not"
        await _refuse(store, record.session_id, FaultKind.DAMAGED, found)


class _Newer(StoreCorrupt):
    """An event is of a later version."""


def _fold(fold: Session, lines: Sequence[bytes]) -> None:
    """Raises `StoreCorrupt`, or `_Newer`."""
    try:
        fold.fold(map(_decode, lines))
    except UnreadableEvent as error:
        found = f"event {fold.last_seq + 1} cannot be read: {error}"
        kind = _Newer if isinstance(error, NewerEvent) or _is_later(fold) else StoreCorrupt
        raise kind(found) from error
    except JournalGap as gap:
        raise StoreCorrupt(f"where event {gap.expected} should stand is event {gap.got}") from gap
    except Exception as error:
        # What the fold raises for an event that a stranger wrote, or that changed on the disk.
        found = f"event {fold.last_seq} cannot be folded: {type(error).__name__}: {error}"
        raise StoreCorrupt(found) from error


def _decode(line: bytes) -> Event:
    if not line.isascii():
        try:
            line.decode()  # what an event holds as raw bytes is not looked at otherwise
        except UnicodeDecodeError as error:
            raise UnreadableEvent(str(error)) from None
    return decode_event(line)


def _check_whole(fold: Session, session_id: str, last: int) -> None:
    if last > fold.last_seq:
        raise StoreCorrupt(f"events {fold.last_seq + 1} to {last} are missing")
    if not fold.last_seq:
        raise StoreCorrupt("it has no events: it was cut off as it began, or they are lost")
    if fold.created is None:
        raise StoreCorrupt("its first event is not that of its creation")
    if fold.created.session_id != session_id:
        raise StoreCorrupt(f"its first event names the session {fold.created.session_id!r}")


def _is_later(fold: Session) -> bool:
    return fold.created is not None and fold.created.format > FORMAT


async def _refuse(store: Store, session_id: str, kind: FaultKind, found: str) -> None:
    await store.note_fault(session_id, Fault(kind, found))
    if kind is FaultKind.NEWER:
        raise SessionTooNew(session_id, found)
    logger.warning("session damaged: %s: %s; nothing of it was changed", session_id, found)
    raise SessionDamaged(session_id, found)


async def _snapshot(store: Store, record: SessionRecord) -> Session:
    """The kept snapshot. Whoever has the session open may put a newer one in place between two pages: then
    it is read from its beginning again."""
    while True:
        restoring, first = Restoring(), None
        after: str | None = ""
        while after is not None:
            upto, parts, after = await load_parts(store, record.session_id, after)
            first = upto if first is None else first
            if upto != first:
                break
            add_parts(restoring, parts)
        else:
            fold = finish_parts(restoring, first or 0)
            check_snapshot(fold, record)
            return fold


async def load_parts(
    store: Store, session_id: str, after: str, **limit: int
) -> tuple[int, dict[str, bytes], str | None]:
    """A page of a snapshot. Raises `SnapshotUnusable`."""
    try:
        return await store.load_parts(session_id, after=after, **limit)
    except StoreCorrupt as error:
        raise SnapshotUnusable(error.found) from error


def add_parts(restoring: Restoring, parts: dict[str, bytes]) -> Sequence[bytes]:
    """Raises `SnapshotUnusable`."""
    try:
        return restoring.add(parts)
    except Exception as error:  # of damaged bytes, anything
        raise SnapshotUnusable(f"{type(error).__name__}: {error}") from error


def finish_parts(restoring: Restoring, upto: int) -> Session:
    """Raises `SnapshotUnusable`."""
    try:
        return restoring.finish(Cursor(upto))
    except Exception as error:
        raise SnapshotUnusable(f"{type(error).__name__}: {error}") from error
