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
"""Marks of events that may name another session."""


def rename_in(line: bytes, name: Callable[[str], str]) -> bytes:
    """Return an event with other session ids; the same bytes if it names none."""
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
    """Return its record and those of all subagents below it, and whether any of them is damaged. Each follows
    its parent and is listed once, even if the parents form a circle."""
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
    """Return the ids of the subagents that a journal announces, up to the end that the record has, once each;
    and whether the session is whole."""
    ids: dict[str, None] = {}
    whole = record.last > 0 and (record.fault is None or not record.fault.in_record)
    async for found in salvage(store, record):
        if isinstance(found, Missing):
            whole = False
            continue
        for line, event in zip(found.lines, found.events, strict=True):
            if event is not None and ANNOUNCED in line:
                ids.update(dict.fromkeys(_announced_in(event)))
    return list(ids), whole


def _announced_in(event: Event) -> Iterator[str]:
    body: Any = event.body
    try:
        if isinstance(body, Updated) and isinstance(body.update, SubagentUpdate):
            yield body.update.session_id
    except Malformed:
        return
