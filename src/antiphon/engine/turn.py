"""The turn: the states of a session, the meaning of a state update in each, and the update to report.

Two total tables. `REPORTS` reads a state update, our own or an agent's; `COMMANDS` chooses the one to write.
A state update is a snapshot of the session: only one that leaves a turn ends it (PROMPT-V2-19, -20).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NewType, TypeAlias

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from antiphon.schema.v2.errors import Error, ErrorCode
from antiphon.schema.v2.prompt import BackgroundWork, SessionStateUpdate, State, StopReason
from antiphon.schema.v2.proposed import StateChange
from antiphon.schema.v2.usage import Usage
from antiphon.schema.wire import Unknown, Wire

TurnId = NewType("TurnId", int)
"""The number of the event that opened the turn."""
AnyStateUpdate: TypeAlias = SessionStateUpdate | StateChange | Unknown


class TurnState(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    REQUIRES_ACTION = "requires_action"
    UNSURE = "unsure"
    """A state we do not know, and no turn is open: busy until a known one comes (PROMPT-V2-48)."""
    OBSCURED = "obscured"
    """The same, with a turn open: that state ended nothing (PROMPT-V2-50)."""


class Report(StrEnum):
    """The content of a state update."""

    RUNNING = "running"
    REQUIRES_ACTION = "requires_action"
    IDLE = "idle"
    OTHER = "other"


class Effect(StrEnum):
    """The effect of a state update."""

    OPENED = "opened"
    ENDED = "ended"
    BLOCKED = "blocked"
    UNBLOCKED = "unblocked"
    REPEATED = "repeated"
    OBSCURED = "obscured"


class Command(StrEnum):
    """What the worker wants to report."""

    RUN = "run"
    BLOCK = "block"
    UNBLOCK = "unblock"
    END = "end"
    REPEAT = "repeat"


_T, _R, _E = TurnState, Report, Effect

REPORTS: Mapping[tuple[TurnState, Report], tuple[TurnState, Effect]] = {
    (_T.IDLE, _R.RUNNING): (_T.RUNNING, _E.OPENED),
    (_T.IDLE, _R.REQUIRES_ACTION): (_T.REQUIRES_ACTION, _E.OPENED),  # PROMPT-V2-10
    (_T.IDLE, _R.IDLE): (_T.IDLE, _E.REPEATED),
    (_T.IDLE, _R.OTHER): (_T.UNSURE, _E.OBSCURED),
    (_T.RUNNING, _R.RUNNING): (_T.RUNNING, _E.REPEATED),
    (_T.RUNNING, _R.REQUIRES_ACTION): (_T.REQUIRES_ACTION, _E.BLOCKED),
    (_T.RUNNING, _R.IDLE): (_T.IDLE, _E.ENDED),
    (_T.RUNNING, _R.OTHER): (_T.OBSCURED, _E.OBSCURED),
    (_T.REQUIRES_ACTION, _R.RUNNING): (_T.RUNNING, _E.UNBLOCKED),  # PROMPT-V2-24
    (_T.REQUIRES_ACTION, _R.REQUIRES_ACTION): (_T.REQUIRES_ACTION, _E.REPEATED),
    (_T.REQUIRES_ACTION, _R.IDLE): (_T.IDLE, _E.ENDED),
    (_T.REQUIRES_ACTION, _R.OTHER): (_T.OBSCURED, _E.OBSCURED),
    (_T.UNSURE, _R.RUNNING): (_T.RUNNING, _E.OPENED),
    (_T.UNSURE, _R.REQUIRES_ACTION): (_T.REQUIRES_ACTION, _E.OPENED),
    (_T.UNSURE, _R.IDLE): (_T.IDLE, _E.REPEATED),  # no turn was seen to open, so none ends
    (_T.UNSURE, _R.OTHER): (_T.UNSURE, _E.REPEATED),
    (_T.OBSCURED, _R.RUNNING): (_T.RUNNING, _E.UNBLOCKED),
    (_T.OBSCURED, _R.REQUIRES_ACTION): (_T.REQUIRES_ACTION, _E.BLOCKED),
    (_T.OBSCURED, _R.IDLE): (_T.IDLE, _E.ENDED),
    (_T.OBSCURED, _R.OTHER): (_T.OBSCURED, _E.REPEATED),
}

COMMANDS: Mapping[tuple[TurnState, Command], State | None] = {
    (_T.IDLE, Command.RUN): State.RUNNING,
    (_T.IDLE, Command.BLOCK): State.REQUIRES_ACTION,
    (_T.IDLE, Command.UNBLOCK): None,  # PROMPT-V2-26: an ended turn is not resumed
    (_T.IDLE, Command.END): None,  # a turn ends once
    (_T.IDLE, Command.REPEAT): State.IDLE,
    (_T.RUNNING, Command.RUN): None,  # PROMPT-V2-22: one more activity is no transition
    (_T.RUNNING, Command.BLOCK): State.REQUIRES_ACTION,
    (_T.RUNNING, Command.UNBLOCK): None,
    (_T.RUNNING, Command.END): State.IDLE,
    (_T.RUNNING, Command.REPEAT): State.RUNNING,
    (_T.REQUIRES_ACTION, Command.RUN): State.RUNNING,
    (_T.REQUIRES_ACTION, Command.BLOCK): State.REQUIRES_ACTION,  # PROMPT-V2-21: for something else
    (_T.REQUIRES_ACTION, Command.UNBLOCK): State.RUNNING,
    (_T.REQUIRES_ACTION, Command.END): State.IDLE,
    (_T.REQUIRES_ACTION, Command.REPEAT): State.REQUIRES_ACTION,
    (_T.UNSURE, Command.RUN): State.RUNNING,
    (_T.UNSURE, Command.BLOCK): State.REQUIRES_ACTION,
    (_T.UNSURE, Command.UNBLOCK): None,
    (_T.UNSURE, Command.END): State.IDLE,
    (_T.UNSURE, Command.REPEAT): None,  # an unknown state is not repeated
    (_T.OBSCURED, Command.RUN): State.RUNNING,
    (_T.OBSCURED, Command.BLOCK): State.REQUIRES_ACTION,
    (_T.OBSCURED, Command.UNBLOCK): State.RUNNING,
    (_T.OBSCURED, Command.END): State.IDLE,
    (_T.OBSCURED, Command.REPEAT): None,
}

INTERRUPTED = Error(
    code=ErrorCode.INTERNAL_ERROR, message="The turn was interrupted", data={"reason": "interrupted"}
)
"""Why a turn ended that was cut short: its agent died, or the process that held the session."""


class Cause(StrEnum):
    """What cut a turn short. It is in `data.cause` of the error, and with the questions that ended by it."""

    HUB_STOPPED = "hub_stopped"
    """The hub was stopped, and the turn had not ended when its time was over."""
    HUB_LOST = "hub_lost"
    """The hub ended without stopping: it was killed, or its machine failed."""
    AGENT_LOST = "agent_lost"
    """The process of the agent ended, or the connection to it."""


CAUSES: Mapping[str, str] = {
    Cause.HUB_STOPPED: "the hub was stopped",
    Cause.HUB_LOST: "the hub ended unexpectedly",
    Cause.AGENT_LOST: "the agent ended",
}


NOTHING_SAID: Mapping[str, Any] = MappingProxyType({})


def interrupted_by(cause: Cause | None, said: Mapping[str, Any] = NOTHING_SAID) -> Error:
    """Return the error of a turn that was cut short, with what cut it if that is known, and what the agent
    `said` at last as more `data`."""
    if cause is None:
        return replace(INTERRUPTED, data={**said, "reason": "interrupted"}) if said else INTERRUPTED
    data = {**said, "reason": "interrupted", "cause": str(cause)}
    return replace(INTERRUPTED, message=f"The turn was interrupted: {CAUSES[cause]}", data=data)


def is_interruption(error: Error | None) -> bool:
    data = None if error is None else error.data
    return isinstance(data, dict) and data.get("reason") == "interrupted"


class Opener(StrEnum):
    PROMPT = "prompt"
    AGENT = "agent"


class Turn(Wire, frozen=True, kw_only=True):
    """One span of foreground work, open or ended."""

    turn_id: TurnId
    opened_at: int
    opened_by: Opener
    prompts: tuple[str, ...] = ()
    """The prompts it took, by message id, in their order."""
    ended_at: int | None = None
    stop_reason: StopReason | None = None
    error: Error | None = None
    usage: Usage | None = None

    @property
    def ended(self) -> bool:
        return self.ended_at is not None

    @property
    def interrupted(self) -> bool:
        return is_interruption(self.error)


class TurnPart(Wire, frozen=True, kw_only=True):
    """All of `Turns`, to be kept."""

    state: TurnState
    current: Turn | None = None
    last: Turn | None = None
    latest: SessionStateUpdate | None = None
    unknown: dict[str, Any] | None = None
    accepted: tuple[str, ...] = ()


class Turns:
    """The open turn, if there is one, and the last one that ended."""

    __slots__ = ("_accepted", "current", "last", "latest", "state")

    def __init__(self) -> None:
        self.state = TurnState.IDLE
        self.current: Turn | None = None
        self.last: Turn | None = None
        self.latest: SessionStateUpdate | Unknown | None = None
        """The last state update, whole: a client that joins late gets it (SESS-21)."""
        self._accepted: tuple[str, ...] = ()

    @property
    def background(self) -> list[BackgroundWork] | None:
        """The work in the background; `None` if it was not reported, which is not the same as none
        (PROMPT-V2-47)."""
        return None if self.latest is None or isinstance(self.latest, Unknown) else self.latest.background

    def effect_of(self, update: AnyStateUpdate) -> Effect:
        """Return the effect that a state update would have."""
        return REPORTS[self.state, report_of(update)][1]

    def apply(self, update: AnyStateUpdate, *, seq: int, at: int) -> Effect:
        self.state, effect = REPORTS[self.state, report_of(update)]
        if isinstance(update, StateChange):
            update = as_state_update(update)
        self.latest = update
        if effect is Effect.OPENED:
            self.current = Turn(
                turn_id=TurnId(seq),
                opened_at=at,
                opened_by=Opener.PROMPT if self._accepted else Opener.AGENT,
                prompts=self._accepted,
            )
            self._accepted = ()
        elif effect is Effect.ENDED and self.current is not None and not isinstance(update, Unknown):
            self.last = replace(
                self.current,
                ended_at=at,
                stop_reason=update.stop_reason,
                error=update.error,
                usage=update.usage,
            )
            self.current = None
        return effect

    def take(self, message_id: str) -> None:
        """Add an accepted prompt to the open turn, or to the one it will open."""
        if self.current is None:
            self._accepted = (*self._accepted, message_id)
        else:
            self.current = replace(self.current, prompts=(*self.current.prompts, message_id))

    @property
    def due(self) -> bool:
        """Whether a prompt was accepted whose turn has not opened yet."""
        return self.current is None and bool(self._accepted)

    @property
    def taken(self) -> tuple[str, ...]:
        """The prompts that the open turn took, or the one about to open."""
        return self._accepted if self.current is None else self.current.prompts

    def took(self, message_id: str) -> bool:
        """Whether the open turn, or the one about to open, took a prompt."""
        return message_id in self.taken

    def command(
        self,
        command: Command,
        *,
        stop_reason: StopReason | None = None,
        error: Error | None = None,
        usage: Usage | None = None,
        background: Sequence[BackgroundWork] | UnsetType = UNSET,
        meta: dict[str, Any] | None = None,
    ) -> SessionStateUpdate | None:
        """Return the state update to send, or `None` if there is nothing to report.

        Once `background` was reported it is on every update, unchanged unless given (PROMPT-V2-45).
        """
        state = COMMANDS[self.state, command]
        if state is None:
            return None
        listed = self.background if background is UNSET else list(background)
        if command is Command.REPEAT and isinstance(self.latest, SessionStateUpdate):
            return replace(self.latest, background=listed)
        return SessionStateUpdate(
            state=state, stop_reason=stop_reason, error=error, usage=usage, background=listed, meta=meta
        )

    def cut(self, stop_reason: StopReason, *, error: Error | None = None) -> list[SessionStateUpdate]:
        """Return the updates to report when everything stops at once, background work too.

        A prompt that was accepted and whose turn had not opened gets a turn, so that its end is reported.
        """
        gone: list[BackgroundWork] | None = None if self.background is None else []
        ended = SessionStateUpdate(state=State.IDLE, stop_reason=stop_reason, error=error, background=gone)
        if self.current is None and self._accepted:
            return [SessionStateUpdate(state=State.RUNNING, background=gone), ended]
        if self.state is not TurnState.IDLE:
            return [ended]
        if self.background and isinstance(self.latest, SessionStateUpdate):
            return [replace(self.latest, background=[])]
        return []

    def snapshot(self) -> SessionStateUpdate | Unknown:
        """Return the present state, which closes a replay (SESS-21)."""
        return SessionStateUpdate(state=State.IDLE) if self.latest is None else self.latest

    def part(self) -> TurnPart:
        known = self.latest if isinstance(self.latest, SessionStateUpdate) else None
        return TurnPart(
            state=self.state,
            current=self.current,
            last=self.last,
            latest=known,
            unknown=self.latest if isinstance(self.latest, Unknown) else None,
            accepted=self._accepted,
        )

    def restore(self, part: TurnPart) -> None:
        self.state = part.state
        self.current = part.current
        self.last = part.last
        self.latest = part.latest if part.unknown is None else Unknown(part.unknown)
        self._accepted = part.accepted


def report_of(update: AnyStateUpdate) -> Report:
    if isinstance(update, Unknown) or update.state is State.UNKNOWN:
        return Report.OTHER
    return Report(update.state)


def as_state_update(update: StateChange) -> SessionStateUpdate:
    """Return a state update as first proposed in the published spelling (SD-01)."""
    return SessionStateUpdate(
        state=update.state,
        stop_reason=update.published_reason or update.stop_reason,
        error=update.error,
        usage=update.usage,
        background=update.background,
        meta=update.meta,
    )
