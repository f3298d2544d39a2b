"""A session with the sessions of its subagents: they are exported and imported together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import structs

from antiphon.engine.events import Event, Updated, decode_event, encode_event
from antiphon.engine.subagents import SUBAGENT_OF, renamed
from antiphon.schema.repair import Malformed
from antiphon.schema.v2.subagents import SubagentUpdate
from antiphon.session_files.salvage import Journals, Missing, salvage
from antiphon.stores.base import SessionRecord

ANNOUNCED = b'"subagent_update"'
_NAMING = (ANNOUNCED, b'"session_message', b'"background"')
"""Where an event can name another session."""


def rename_in(line: bytes, name: Callable[[str], str]) -> bytes:
    """An event whose sessions have other names now; as it was where it names none."""
    if not any(naming in line for naming in _NAMING):
        return line
    event = decode_event(line)
    body: Any = event.body
    if not isinstance(body, Updated):
        return line
    try:
        update = renamed(body.update, name)
    except Malformed:
        return line  # the fold passes it over, too
    if update is body.update or update == body.update:
        return line
    raw = type(body).of(update).raw
    return encode_event(structs.replace(event, body=structs.replace(body, raw=raw)))


async def family_of(store: Journals, record: SessionRecord) -> tuple[list[SessionRecord], bool]:
    """Its record, and those of all that work for it, or for one of those: each behind whom it works for, and
    once, also where they work for each other in a circle. And whether anything of them is damaged."""
    found = {record.session_id: record}
    waiting, damaged = [record], False
    for one in waiting:
        ids, whole = await _announced(store, one)
        damaged = damaged or not whole
        for id in ids:
            child = None if id in found else await store.get(id)
            if child is not None and child.last and child.meta.get(SUBAGENT_OF) == one.session_id:
                found[id] = child
                waiting.append(child)
    return waiting, damaged


async def _announced(store: Journals, record: SessionRecord) -> tuple[list[str], bool]:
    """The ids of the subagents that a journal tells of up to where the record has it end, once each; and
    whether the session is whole."""
    ids: dict[str, None] = {}
    whole = record.last > 0 and (record.fault is None or not record.fault.in_record)
    async for found in salvage(store, record):
        if isinstance(found, Missing):
            whole = False
            continue
        for line, event in zip(found.lines, found.events, strict=True):
            if event is not None and ANNOUNCED in line:
                ids.update(dict.fromkeys(_told_in(event)))
    return list(ids), whole


def _told_in(event: Event) -> Iterator[str]:
    body: Any = event.body
    try:
        if isinstance(body, Updated) and isinstance(body.update, SubagentUpdate):
            yield body.update.session_id
    except Malformed:
        return
