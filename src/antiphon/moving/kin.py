"""The sessions that go with a session: those of its subagents, found in its journal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from antiphon.engine.events import Event, Updated
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.moving.families import ANNOUNCED, Journals
from antiphon.moving.salvage import Missing, salvage
from antiphon.schema.repair import Malformed
from antiphon.schema.v2.subagents import SubagentUpdate
from antiphon.stores.base import SessionRecord


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
