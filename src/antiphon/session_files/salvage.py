"""Reading a journal that may be damaged: every event that can be read, and the gaps between them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from msgspec import Struct

from antiphon.engine.events import Event, NewerEvent, UnreadableEvent, decode_event
from antiphon.errors import StoreCorrupt
from antiphon.stores.base import PAGE_BYTES, Page, SessionRecord


class Journals(Protocol):
    """The source of an export: a store, or an object that reads one."""

    async def get(self, session_id: str) -> SessionRecord | None: ...

    async def read(self, session_id: str, after: int, *, limit_bytes: int) -> Page: ...


class Missing(Struct, frozen=True):
    """Events `first` to `last` of a session cannot be read. 0 to 0 is its record."""

    session_id: str
    first: int
    last: int
    found: str

    def __str__(self) -> str:
        if not self.last:
            return self.found
        which = f"event {self.first}" if self.first == self.last else f"events {self.first} to {self.last}"
        return f"{which} cannot be read ({self.found})"


class ReadableEvents(Struct, frozen=True):
    """Consecutive events, as lines and decoded. One of a later version is decoded as None."""

    first: int
    lines: list[bytes]
    events: list[Event | None]


async def salvage(
    store: Journals, record: SessionRecord, *, limit_bytes: int = PAGE_BYTES, after: int = 0
) -> AsyncIterator[ReadableEvents | Missing]:
    """Yield all events after a cursor, up to the last one of `record`, and a `Missing` for every gap."""
    session_id, cursor = record.session_id, after
    while cursor < record.last:
        try:
            page = await store.read(session_id, cursor, limit_bytes=limit_bytes)
        except StoreCorrupt as damage:
            resume = record.last if damage.resume is None else min(damage.resume, record.last)
            resume = resume if resume > cursor else record.last
            yield Missing(session_id, cursor + 1, resume, damage.found)
            cursor = resume
            continue
        if not page.batches:
            yield Missing(session_id, cursor + 1, record.last, "the journal ends before")
            return
        for batch in page.batches:
            for found in _split(session_id, batch.first, list(batch.events[: record.last - cursor])):
                yield found
            cursor = batch.last


def _split(session_id: str, first: int, lines: list[bytes]) -> list[ReadableEvents | Missing]:
    """Divide a batch at events that cannot be read."""
    found: list[ReadableEvents | Missing] = []
    kept: list[bytes] = []
    events: list[Event | None] = []
    for seq, line in enumerate(lines, start=first):
        try:
            event = _decode(line, seq)
        except UnreadableEvent as error:
            if kept:
                found.append(ReadableEvents(seq - len(kept), kept, events))
            found.append(Missing(session_id, seq, seq, str(error)))
            kept, events = [], []
        else:
            kept.append(line)
            events.append(event)
    if kept:
        found.append(ReadableEvents(first + len(lines) - len(kept), kept, events))
    return found


def _decode(line: bytes, seq: int) -> Event | None:
    try:
        line.decode()
        event = decode_event(line)
    except NewerEvent:
        return None
    except UnicodeDecodeError as error:
        raise UnreadableEvent(str(error)) from None
    if event.seq != seq:
        raise UnreadableEvent(f"the event there has the number {event.seq}")
    return event


def joined(found: list[Missing]) -> list[Missing]:
    """Merge adjacent gaps."""
    made: list[Missing] = []
    for each in found:
        if made and each.last and made[-1].session_id == each.session_id and made[-1].last + 1 == each.first:
            made[-1] = Missing(each.session_id, made[-1].first, each.last, made[-1].found)
        else:
            made.append(each)
    return made
