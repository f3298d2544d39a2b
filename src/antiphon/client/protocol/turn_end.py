"""TurnEnd: how a turn ended."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from antiphon.errors import ErrorObject, LinkLost, RequestCancelled, one_line
from antiphon.schema import v2
from antiphon.schema.v2.prompt import StopReason


class TurnEnd(Struct, frozen=True, kw_only=True):
    """How a turn ended."""

    stop_reason: StopReason | None = None
    """`None` if the agent did not report one."""
    usage: v2.Usage | None = None
    error: v2.Error | None = None
    cut: str | None = None
    """Why the turn ended without a report of the agent: the agent died, was silent for too long, or the link
    was lost. `stop_reason` is then `cancelled` if this client had cancelled the turn before, else `error`."""

    @property
    def cancelled(self) -> bool:
        return self.stop_reason == StopReason.CANCELLED

    @property
    def refused(self) -> bool:
        """Whether the agent drops this turn, its prompt included, from its context (PROMPT-V1-08).
        `session.forgotten` has the messages."""
        return self.stop_reason == StopReason.REFUSAL

    @classmethod
    def from_state(cls, state: Any) -> TurnEnd:
        """The end that an idle state reports."""
        return cls(
            stop_reason=getattr(state, "stop_reason", None),
            usage=getattr(state, "usage", None),
            error=getattr(state, "error", None),
        )

    @classmethod
    def from_error(cls, error: ErrorObject) -> TurnEnd:
        """The end that an error response reports. `-32800` means that the prompt was cancelled."""
        if error.code == RequestCancelled.code:
            return cls(stop_reason=StopReason.CANCELLED)
        try:
            code = v2.ErrorCode(error.code)
        except ValueError:
            code = v2.ErrorCode.INTERNAL_ERROR
        reported = v2.Error(code=code, message=one_line(error.message), data=error.data)
        return cls(stop_reason=StopReason.ERROR, error=reported)

    @classmethod
    def interrupted(cls, reason: str | LinkLost) -> TurnEnd:
        """The end of a turn that was cut short without a report of the agent."""
        why = reason.reason if isinstance(reason, LinkLost) else reason
        error = v2.Error(
            code=v2.ErrorCode.INTERNAL_ERROR, message="The turn was cut short", data={"reason": "interrupted"}
        )
        return cls(stop_reason=StopReason.ERROR, error=error, cut=why)
