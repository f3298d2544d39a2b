"""ACP v2 as it was first proposed, where that differs from the pinned schema. Written by hand.

Readers accept these spellings always; a writer uses them only towards a peer that chose the dialect.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from antiphon.schema.v2.errors import Error
from antiphon.schema.v2.prompt import BackgroundWork, State, StopReason
from antiphon.schema.v2.usage import Usage
from antiphon.schema.wire import Lenient, Wire


class StateChange(Wire, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="state_change"):
    """The state of a session; what the pinned schema calls `state_update`."""

    state: State
    stop_reason: StopReason | None = field(name="stop_reason", default=None)
    published_reason: StopReason | None = field(name="stopReason", default=None)
    """The published spelling of the key, which counts where both are given (SD-02)."""
    error: Error | None = None
    usage: Usage | None = None
    background: list[BackgroundWork] | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class PromptTaken(Wire, frozen=True, kw_only=True):
    """The answer `{}` to `session/prompt`: taken, and the id comes with the user message (C-01)."""

    meta: dict[str, Any] | None = field(name="_meta", default=None)


LENIENT: dict[type[Wire], dict[str, Lenient]] = {
    StateChange: dict.fromkeys(
        ("stop_reason", "published_reason", "error", "usage", "background"), Lenient.ERROR
    ),
}
OPEN_STRUCTS: dict[type[Wire], str] = {StateChange: "state"}
