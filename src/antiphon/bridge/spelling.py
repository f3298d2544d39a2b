"""Two spellings of v2's state: `state_update` as published, `state_change` as proposed (SD-01..03).

Readers take both and go on with the published one; a writer uses one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.schema import v2
from antiphon.schema.v2.proposed import StateChange
from antiphon.schema.wire import Unknown

PUBLISHED = "state_update"
PROPOSED = "state_change"


class _Reasons(Struct):
    """Both spellings of the key."""

    published: Any = msgspec.field(name="stopReason", default=None)
    proposed: Any = msgspec.field(name="stop_reason", default=None)


_read_reasons = msgspec.json.Decoder(_Reasons).decode


def normalize(update: v2.SessionUpdate, raw: bytes | msgspec.Raw | None = None) -> v2.SessionUpdate:
    """An update in the published spelling. With `raw`, both spellings of the reason are seen (SD-02)."""
    if isinstance(update, StateChange):
        return v2.SessionStateUpdate(
            state=update.state,
            stop_reason=_reason(raw, update.stop_reason),
            error=update.error,
            usage=update.usage,
            background=update.background,
            meta=update.meta,
        )
    if isinstance(update, v2.SessionStateUpdate) and update.stop_reason is None:
        reason = _reason(raw, None)
        return update if reason is None else msgspec.structs.replace(update, stop_reason=reason)
    if isinstance(update, Unknown) and update.get("sessionUpdate") in (PUBLISHED, PROPOSED):
        return _respelled(update, PUBLISHED, "stop_reason", "stopReason")
    return update


def as_proposed(update: v2.SessionUpdate) -> StateChange | Unknown | None:
    """A state update in the proposed spelling; `None` where both spell it the same."""
    if isinstance(update, v2.SessionStateUpdate):
        return StateChange(
            state=update.state,
            stop_reason=update.stop_reason,
            error=update.error,
            usage=update.usage,
            background=update.background,
            meta=update.meta,
        )
    if isinstance(update, Unknown) and update.get("sessionUpdate") == PUBLISHED:
        return _respelled(update, PROPOSED, "stopReason", "stop_reason")
    return None


def _reason(raw: bytes | msgspec.Raw | None, given: v2.StopReason | None) -> v2.StopReason | None:
    if raw is not None:
        with suppress(msgspec.MsgspecError):
            reasons = _read_reasons(raw)
            for reason in (reasons.published, reasons.proposed):
                if isinstance(reason, str):
                    return v2.StopReason(reason)
    return given


def _respelled(update: Unknown, tag: str, old: str, new: str) -> Unknown:
    """An update of unknown state, kept whole but for the spelling."""
    respelled = Unknown(update)
    respelled["sessionUpdate"] = tag
    if old in respelled:
        reason = respelled.pop(old)
        respelled.setdefault(new, reason)
    return respelled
