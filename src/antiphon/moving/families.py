"""Families: a session, and those of its subagents, which go where it goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import structs

from antiphon.engine.events import Updated, decode_event, encode_event
from antiphon.engine.subagents import renamed
from antiphon.schema.repair import Malformed
from antiphon.stores.base import Page, SessionRecord

ANNOUNCED = b'"subagent_update"'
_NAMING = (ANNOUNCED, b'"session_message', b'"background"')
"""Where an event can name another session."""


class Journals(Protocol):
    """What an export reads from: a store, or something that leads to one."""

    async def get(self, session_id: str) -> SessionRecord | None: ...

    async def read(self, session_id: str, after: int, *, limit_bytes: int) -> Page: ...


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
