"""Shared values: large values that are read from the store are those that the session holds already.

A v1 client is written the whole of a tool call with each change of it, so its writer keeps what was told of
the call. Values of a journal that is read anew for each client would be a copy for each of them.
"""

from __future__ import annotations

from typing import Any

from msgspec import structs

from antiphon.engine.events import Event, Updated, decode_event
from antiphon.engine.session import Session
from antiphon.engine.tools import ToolCall
from antiphon.schema import v2
from antiphon.schema.repair import Malformed

LARGE = 16 * 1024
"""Bytes of an event from which on it is looked at."""


def decode_sharing(line: bytes, fold: Session) -> Event:
    """Decode an event of a session; the values of a tool call that `fold` has too are those of the fold."""
    event = decode_event(line)
    if len(line) >= LARGE and isinstance(event.body, Updated):
        try:
            update: Any = event.body.update
        except Malformed:
            return event
        if isinstance(update, v2.SessionToolCallUpdate | v2.ToolCallContentChunk):
            call = fold.tools.get(update.tool_call_id)
            if call is not None:
                event.body.__dict__["update"] = _shared(update, call)
    return event


def _shared(update: Any, call: ToolCall) -> Any:
    content = update.content
    if isinstance(update, v2.ToolCallContentChunk):
        return structs.replace(update, content=_found(content, call.content))
    if isinstance(content, list):
        content = [
            held if held == item else item
            for item, held in zip(content, [*call.content, *content[len(call.content) :]], strict=False)
        ]
    return structs.replace(
        update,
        content=content,
        raw_input=_found(update.raw_input, [call.raw_input]),
        raw_output=_found(update.raw_output, [call.raw_output]),
    )


def _found(value: Any, held: list[Any]) -> Any:
    return next((one for one in held if one == value), value)
