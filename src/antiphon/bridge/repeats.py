"""A prompt that comes again under its operation id: what its answer says of that, and how it is read.

v2 answers a prompt when it is taken, and the state tells its end, once. Who asks again would wait for that
for ever, so the answer itself says that it is a repetition and, where the turn is over, how it ended.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from antiphon.engine.reading import UPDATES, encode
from antiphon.schema import v2
from antiphon.schema.repair import Malformed
from antiphon.schema.version import ours_in

REPEATED = {"repeated": True}
"""What is said while the turn is open."""


class Repeat(Struct, frozen=True):
    """The prompt was taken before. `ended`: how its turn ended, if that is over."""

    ended: v2.SessionStateUpdate | None = None


def repeated_over(idle: v2.StateUpdate) -> dict[str, Any]:
    """What is said once the turn is over."""
    error = {} if idle.error is None else {"error": idle.error}
    return {**REPEATED, "stopReason": idle.stop_reason, **error}


def read_repeat(answer: Any) -> Repeat | None:
    """What the answer to a prompt says of this; `None` where it was taken just now."""
    ours = ours_in(answer.meta)
    if ours.get("repeated") is not True:
        return None
    if "stopReason" not in ours:
        return Repeat()
    said = {key: ours[key] for key in ("stopReason", "error") if key in ours}
    try:
        idle = UPDATES.read(encode({"sessionUpdate": "state_update", "state": "idle", **said}))
    except Malformed:
        idle = None
    unsaid = v2.SessionStateUpdate(state=v2.State.IDLE)
    return Repeat(idle if isinstance(idle, v2.SessionStateUpdate) else unsaid)


def read_message_id(answer: Any) -> str | None:
    """The message that a prompt became, where the answer has no other place for it (SD-05)."""
    named = ours_in(answer.meta).get("messageId")
    return named if isinstance(named, str) else None
