"""Families: a session, and those of its subagents, which go where it goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from msgspec import structs

from antiphon.engine.events import Event, Updated, decode_event, encode_event
from antiphon.engine.subagents import SUBAGENT_OF, renamed
from antiphon.schema.v2.subagents import SubagentUpdate
from antiphon.stores.base import PAGE_BYTES, Page, SessionRecord

_ANNOUNCED = b'"subagent_update"'
_NAMING = (_ANNOUNCED, b'"session_message', b'"background"')
"""Where an event can name another session."""


class Journals(Protocol):
    """What an export reads from: a store, or something that leads to one."""

    async def get(self, session_id: str) -> SessionRecord | None: ...

    async def read(self, session_id: str, after: int, *, limit_bytes: int) -> Page: ...


async def family_of(store: Journals, record: SessionRecord) -> list[SessionRecord]:
    """Its record, and those of all that work for it, or for one of those: each behind whom it works for."""
    found = [record]
    for one in found:
        for id in await _announced(store, one):
            child = await store.get(id)
            if child is not None and child.last and child.meta.get(SUBAGENT_OF) == one.session_id:
                found.append(child)
    return found


async def _announced(store: Journals, record: SessionRecord) -> list[str]:
    """The ids of the subagents that a journal tells of up to where the record has it end, once each."""
    ids: dict[str, None] = {}
    cursor = 0
    while cursor < record.last:
        page = await store.read(record.session_id, cursor, limit_bytes=PAGE_BYTES)
        for batch in page.batches:
            for line in batch.events[: record.last - cursor]:
                if _ANNOUNCED in line:
                    ids.update(dict.fromkeys(_told_in(decode_event(line))))
            cursor = batch.last
    return list(ids)


def _told_in(event: Event) -> Iterator[str]:
    body: Any = event.body
    if isinstance(body, Updated) and isinstance(body.update, SubagentUpdate):
        yield body.update.session_id


def rename_in(line: bytes, name: Callable[[str], str]) -> bytes:
    """An event whose sessions have other names now; as it was where it names none."""
    if not any(naming in line for naming in _NAMING):
        return line
    event = decode_event(line)
    body: Any = event.body
    if not isinstance(body, Updated):
        return line
    update = renamed(body.update, name)
    if update is body.update or update == body.update:
        return line
    raw = type(body).of(update).raw
    return encode_event(structs.replace(event, body=structs.replace(body, raw=raw)))
