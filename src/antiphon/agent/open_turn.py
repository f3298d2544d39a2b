"""OpenTurn: the life of one turn of an agent, as one total table."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from antiphon.agent.scope import Scope
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import Who
from antiphon.server.connection import ClientConnection

TRACE = ("traceparent", "tracestate", "baggage", "requestId")
"""The root keys of `_meta` that go with everything that a prompt leads to: W3C trace context (EXT-05), and
the id by which a client knows what belongs together (OBS-01)."""


class TurnStage(StrEnum):
    TAKEN = "taken"
    """Its prompt is accepted; its handler has not taken the first step."""
    RUNNING = "running"
    CANCELLING = "cancelling"
    """A client has cancelled it; its work has not ended yet."""
    INTERRUPTING = "interrupting"
    """Its session is put away; its work has not ended yet."""
    ENDED = "ended"


class TurnInput(StrEnum):
    BEGIN = "begin"
    """The handler is about to take its first step."""
    CANCEL = "cancel"
    INTERRUPT = "interrupt"
    END = "end"
    """The work has ended, or is not waited for any longer."""


class TurnEffect(StrEnum):
    """What has to be done."""

    NOTHING = "nothing"
    RUN = "run"
    """Run the handler."""
    CANCEL_WORK = "cancel_work"
    REPORT_END = "report_end"


_S, _I, _E = TurnStage, TurnInput, TurnEffect

LIFE: Mapping[tuple[TurnStage, TurnInput], tuple[TurnStage, TurnEffect]] = {
    (_S.TAKEN, _I.BEGIN): (_S.RUNNING, _E.RUN),
    # A task that is cancelled before its first step never runs, and its turn would never end.
    (_S.TAKEN, _I.CANCEL): (_S.CANCELLING, _E.NOTHING),
    (_S.TAKEN, _I.INTERRUPT): (_S.INTERRUPTING, _E.NOTHING),
    (_S.TAKEN, _I.END): (_S.ENDED, _E.REPORT_END),
    (_S.RUNNING, _I.BEGIN): (_S.RUNNING, _E.NOTHING),  # a handler begins once
    (_S.RUNNING, _I.CANCEL): (_S.CANCELLING, _E.CANCEL_WORK),
    (_S.RUNNING, _I.INTERRUPT): (_S.INTERRUPTING, _E.CANCEL_WORK),
    (_S.RUNNING, _I.END): (_S.ENDED, _E.REPORT_END),
    (_S.CANCELLING, _I.BEGIN): (_S.CANCELLING, _E.NOTHING),  # its handler is not run
    # A second cancel would cut short what the handler does to end.
    (_S.CANCELLING, _I.CANCEL): (_S.CANCELLING, _E.NOTHING),
    (_S.CANCELLING, _I.INTERRUPT): (_S.CANCELLING, _E.NOTHING),
    (_S.CANCELLING, _I.END): (_S.ENDED, _E.REPORT_END),
    (_S.INTERRUPTING, _I.BEGIN): (_S.INTERRUPTING, _E.NOTHING),
    (_S.INTERRUPTING, _I.CANCEL): (_S.CANCELLING, _E.NOTHING),
    (_S.INTERRUPTING, _I.INTERRUPT): (_S.INTERRUPTING, _E.NOTHING),
    (_S.INTERRUPTING, _I.END): (_S.ENDED, _E.REPORT_END),
    # A turn ends once: what a handler does that took too long to end is ignored.
    (_S.ENDED, _I.BEGIN): (_S.ENDED, _E.NOTHING),
    (_S.ENDED, _I.CANCEL): (_S.ENDED, _E.NOTHING),
    (_S.ENDED, _I.INTERRUPT): (_S.ENDED, _E.NOTHING),
    (_S.ENDED, _I.END): (_S.ENDED, _E.NOTHING),
}


class Prompt(Struct, frozen=True):
    """What the user said."""

    message_id: str
    content: list[v2.ContentBlock]
    meta: dict[str, Any] = {}
    """The `_meta` of the client's request, such as trace context (OBS-01)."""
    sender: Who | None = None
    """The client that it came from, as that calls itself."""

    @property
    def text(self) -> str:
        """Its plain text, blocks joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, v2.TextContent))


class OpenTurn:
    """One turn: its prompt, the client that sent it, its work, and what it used."""

    def __init__(self, prompt: Prompt | None = None, prompter: ClientConnection | None = None) -> None:
        self.prompt = prompt
        self.prompter = prompter
        self.usage: v2.Usage | None = None
        self.work: asyncio.Task[None] | Scope | None = None
        """The task of its handler, or the block of a turn that the author opened."""
        self.ended = asyncio.Event()
        self._stage = TurnStage.TAKEN

    @property
    def cancelling(self) -> bool:
        return self._stage is TurnStage.CANCELLING

    @property
    def has_handler(self) -> bool:
        """Whether its work is a task of the session. A block ends with the task that it is in."""
        return isinstance(self.work, asyncio.Task)

    def step(self, input: TurnInput) -> TurnEffect:
        """Apply an input, and return what has to be done. The work is cancelled here."""
        self._stage, effect = LIFE[self._stage, input]
        if effect is TurnEffect.CANCEL_WORK and self.work is not None:
            self.work.cancel()
        elif effect is TurnEffect.REPORT_END:
            self.ended.set()
        return effect

    @property
    def trace(self) -> dict[str, Any]:
        meta = {} if self.prompt is None else self.prompt.meta
        return {key: meta[key] for key in TRACE if key in meta}


class StopTurn(Exception):
    """Ends the turn with a stop reason, from however deep in the handler it is raised (`turn.stop`)."""

    def __init__(self, reason: v2.StopReason, turn: OpenTurn) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.turn = turn
