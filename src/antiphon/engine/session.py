"""Session: the fold of a journal, the commands that need more than one part of it, and forks.

A command returns the bodies to append and changes nothing: they count once they are applied.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from antiphon.engine import events as e
from antiphon.engine.annotations import Annotation
from antiphon.engine.events import AnyBody, Updated
from antiphon.engine.fold import SessionFold, is_state
from antiphon.engine.items import Item
from antiphon.engine.subagents import SubagentInfo
from antiphon.engine.tools import ToolCall
from antiphon.engine.transcript import Message, MessageType
from antiphon.engine.turn import NOTHING_SAID, AnyStateUpdate, Cause, Command, Effect, Turn, interrupted_by
from antiphon.errors import AntiphonError, ErrorObject, RequestCancelled
from antiphon.schema import v2
from antiphon.schema.v2.updates import SessionUpdate
from antiphon.schema.v2.usage import Usage

_STATUS_AFTER = {
    v2.StopReason.CANCELLED: v2.ToolCallStatus.CANCELLED,
    v2.StopReason.ERROR: v2.ToolCallStatus.FAILED,
}
"""How the unfinished tool calls of a turn end, by its stop reason. After any other reason the agent may go on
with them."""
_REJECTED = ErrorObject(AntiphonError.code, "The agent was lost", {"reason": "interrupted"})
_CANCELLED = ErrorObject(RequestCancelled.code, RequestCancelled.summary)


class Cancelled(NamedTuple):
    """The result of `session/cancel`."""

    ignored: bool = False
    """The turn it names has ended."""
    events: tuple[AnyBody, ...] = ()
    turn: Turn | None = None
    """The turn to cancel: flush its updates, then end it as cancelled (PROMPT-V2-35)."""


class Work(Struct, frozen=True, kw_only=True):
    """What a session works on, and what waits: all that `session/cancel` may mean."""

    turn: int | None = None
    """The id of the open turn."""
    prompts: tuple[str, ...] = ()
    """The prompts that have not ended, by their ids."""

    def shares_nothing_with(self, other: Work) -> bool:
        """Whether this is other work: nothing of it is part of `other`."""
        same_turn = self.turn is not None and self.turn == other.turn
        return not same_turn and not {*self.prompts} & {*other.prompts}


class Session(SessionFold):
    """A session folded up to `last_seq`. Read it; change it by `apply` alone."""

    __slots__ = ()

    def update(self, update: SessionUpdate, *, raw: bytes | Raw | None = None) -> tuple[AnyBody, ...]:
        """Return the events of an agent's update. One that ends a turn first cancels the questions of that
        turn. If the turn was cancelled or has failed, the tool calls end too that the agent left unfinished,
        except those that go on in the background (PROMPT-V2-39)."""
        body = Updated.of(update, raw=raw)
        if self.turn is None or not is_state(update) or self.turns.effect_of(update) is not Effect.ENDED:
            return (body,)
        pending = self.questions.of_turn(self.turn.turn_id)
        closing = self.questions.close_all(pending, e.QuestionEnd.CANCELLED)
        return (*closing, *self._left_unfinished(update), body)

    def _left_unfinished(self, ending: AnyStateUpdate) -> tuple[Updated, ...]:
        reason = getattr(ending, "stop_reason", None)
        status = None if reason is None else _STATUS_AFTER.get(reason)
        if status is None:
            return ()
        listed = getattr(ending, "background", None)
        works = self.background if listed is None or listed is UNSET else listed
        behind = {getattr(work, "tool_call_id", None) for work in works or ()}
        terminals = {getattr(work, "terminal_id", None) for work in works or ()}
        return tuple(
            _ended(call, status)
            for call in self.tools
            if not call.final and call.id not in behind and not (terminals and _shows(call, terminals))
        )

    def run(self) -> tuple[AnyBody, ...]:
        """Report that foreground work starts or continues; a prompt that was just accepted joins it."""
        return self._report(Command.RUN)

    def block(self, *, others_running: bool = False) -> tuple[AnyBody, ...]:
        """Report `requires_action`, if a question of the turn is open and nothing else of it runs
        (PROMPT-V2-23, -25)."""
        if self.turn is None or others_running:
            return ()
        named = [question.question_id for question in self.questions.of_turn(self.turn.turn_id)]
        if not named:
            return ()
        return self._report(Command.BLOCK, meta={"antiphon": {"waitingFor": named}})

    def unblock(self) -> tuple[AnyBody, ...]:
        """Progress resumes (PROMPT-V2-24)."""
        return self._report(Command.UNBLOCK)

    def report_background(self, background: Sequence[v2.BackgroundWork]) -> tuple[AnyBody, ...]:
        """Report the complete list of background work, on a repeated snapshot (PROMPT-V2-21, -44)."""
        return self._report(Command.REPEAT, background=background)

    def end(
        self,
        stop_reason: v2.StopReason | None,
        *,
        error: v2.Error | None = None,
        usage: Usage | None = None,
        background: Sequence[v2.BackgroundWork] | UnsetType = UNSET,
    ) -> tuple[AnyBody, ...]:
        """End the open turn. Without one, return nothing: a turn ends once."""
        ended = self.turns.command(
            Command.END, stop_reason=stop_reason, error=error, usage=usage, background=background
        )
        return () if ended is None else self.update(ended)

    def interrupt(
        self,
        *,
        attended: bool = False,
        cancelled: bool = False,
        cause: Cause | None = None,
        said: Mapping[str, Any] = NOTHING_SAID,
    ) -> tuple[AnyBody, ...]:
        """Interrupt the open turn, because the agent is gone or this process was restarted: its tool calls
        and compactions fail, its terminals exit, every question expires, and prompts that were sent and not
        answered are rejected. Messages of accepted prompts are shown that were left to the agent. Queued
        prompts stay, and the queue pauses.

        attended: only the agent is gone; clients still wait for their held prompts, and the queue continues
        if there are any, or if nothing was interrupted
        cancelled: the open turn had been cancelled and ends as that (PROMPT-V2-35)
        cause: what cut it short, if that is known
        said: more `data` for the error: the agent's last words
        """
        status = v2.ToolCallStatus.CANCELLED if cancelled else v2.ToolCallStatus.FAILED
        error, rejected = interrupted_by(cause, said), _REJECTED
        if said:
            rejected = replace(rejected, data={**said, "reason": "interrupted"})
        cut = self.turn is not None or self.turns.due or bool(self.prompts.sent)
        goes_on = attended and (not cut or any(entry.held for entry in self.prompts.queued))
        cut_state = v2.StateUpdate(state=v2.State.IDLE, stop_reason=v2.StopReason.ERROR, error=error)
        bodies: list[AnyBody] = list(
            self.prompts.messages(shown=lambda id: self.message(MessageType.USER, id) is not None)
        )
        bodies += [
            body
            for entry in self.prompts.sent
            for body in self.prompts.reject(entry.message_id, _CANCELLED if cancelled else rejected).events
        ]
        bodies += self.questions.close_all(self.questions.open, e.QuestionEnd.EXPIRED, cause=cause)
        bodies += [_ended(call, status) for call in self.tools if not call.final]
        bodies += [
            Updated.of(
                v2.TerminalUpdate(
                    terminal_id=terminal.id,
                    exit_status=v2.TerminalExitStatus(),
                    capabilities=UNSET if terminal.capabilities is None else None,  # TERMV2-12
                )
            )
            for terminal in self.terminals
            if not terminal.exited
        ]
        bodies += [  # COMP-05: each ends, once
            Updated.of(
                v2.CompactionUpdate(
                    compaction_id=compaction.id,
                    status=v2.CompactionStatus.FAILED,
                    summary=None,
                    error="The compaction was interrupted",
                )
            )
            for compaction in self.compactions
            if compaction.status == v2.CompactionStatus.IN_PROGRESS
        ]
        bodies += [  # it worked in the same process
            Updated.of(v2.SubagentUpdate(session_id=subagent.id, state=cut_state))
            for subagent in self.subagents
            if subagent.working
        ]
        if self.prompts.queued and not self.prompts.paused and not goes_on:
            bodies.append(e.QueuePaused())
        if cancelled:
            bodies += map(Updated.of, self.turns.cut(v2.StopReason.CANCELLED))
        else:
            bodies += map(Updated.of, self.turns.cut(v2.StopReason.ERROR, error=error))
        return tuple(bodies)

    @property
    def work(self) -> Work | None:
        """What is open; `None` if nothing is."""
        turn, prompts = self.turn, self.prompts.open(self.turns.taken)
        if turn is None and not prompts:
            return None
        return Work(turn=None if turn is None else turn.turn_id, prompts=prompts)

    def cancel(self, *, message_id: str | None = None) -> Cancelled:
        """Return the result of `session/cancel`. With a message id, cancel only the open turn that took that
        prompt.

        Background work continues, and its questions stay open (PROMPT-V2-40, PERM-V2-10).
        """
        turn = self.turn
        if message_id is not None and not self.turns.took(self.prompts.shown_as(message_id)):
            return Cancelled(ignored=True)
        pending = () if turn is None else self.questions.of_turn(turn.turn_id)  # PROMPT-V2-41
        closing = self.questions.close_all(pending, e.QuestionEnd.CANCELLED)
        return Cancelled(events=(*self.prompts.cancel(), *closing), turn=turn)

    def close(self) -> tuple[AnyBody, ...]:
        """`session/close`: as a cancel, and background work ends too (SESS-39)."""
        if self.closed:
            return ()
        closing = self.questions.close_all(self.questions.open, e.QuestionEnd.CANCELLED)
        calls = [_ended(call, v2.ToolCallStatus.CANCELLED) for call in self.tools if not call.final]
        states = map(Updated.of, self.turns.cut(v2.StopReason.CANCELLED))  # PROMPT-V2-38
        return (*self.prompts.cancel(closing=True), *closing, *calls, *states, e.SessionClosed())

    def _report(
        self,
        command: Command,
        *,
        background: Sequence[v2.BackgroundWork] | UnsetType = UNSET,
        meta: dict[str, Any] | None = None,
    ) -> tuple[AnyBody, ...]:
        update = self.turns.command(command, background=background, meta=meta)
        return () if update is None else (Updated.of(update),)


def _ended(call: ToolCall, status: v2.ToolCallStatus) -> Updated:
    """Return the end of a tool call that its agent left unfinished."""
    return Updated.of(
        v2.SessionToolCallUpdate(
            tool_call_id=call.id,
            status=status,
            capabilities=UNSET if call.capabilities is None else None,  # TOOL-V2-11
        )
    )


def _shows(call: ToolCall, terminals: Collection[str | None]) -> bool:
    """Return whether a tool call shows one of these terminals."""
    return any(isinstance(part, v2.Terminal) and part.terminal_id in terminals for part in call.content)


FACTS = ("facts/info", "facts/config", "facts/commands")
"""Facts that are copied in their present state, wherever they first appeared."""
USAGE = "facts/usage"
"""True of the whole conversation only."""


def forked(session: SessionFold, *, at: str | None = None) -> list[Any] | None:
    """Return the updates of a fork, a new session that continues this one; `None` if `at` is unknown.

    They are read from the fold of the source, which does not change (SESS-52). The open turn stays with the
    source. Older work that is in progress there is copied as it is; the fork has no agent for it and is
    interrupted once it is made.

    at: the message after which the fork begins; `None` is the last time the session was idle
    """
    items = session.items
    taken = items[: _before_turn(session)] if at is None else _through(items, at)
    if taken is None:
        return None
    whole = len(taken) == len(items)
    made = [
        item.materialize()
        for item in taken
        if (whole or item.key != USAGE) and not isinstance(item, SubagentInfo)  # they work for the source
    ]
    messages = {(item.type, item.id) for item in taken if isinstance(item, Message)}
    return made + [
        item.materialize()
        for item in items[len(taken) :]
        if item.key in FACTS or (isinstance(item, Annotation) and (item.role, item.message_id) in messages)
    ]


def _before_turn(session: SessionFold) -> int:
    """Return how many items there were when the open turn began: its prompt comes before its state
    (SD-07)."""
    turn = session.turn
    if turn is None:
        return len(session.items)
    took = [session.message(MessageType.USER, id) for id in turn.prompts]
    began = min([int(turn.turn_id), *(message.position for message in took if message is not None)])
    return sum(item.position < began for item in session.items)


def _through(items: list[Item], message_id: str) -> list[Item] | None:
    """Return everything up to a message; if message types share the id, up to the last of them (MSG-08)."""
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if isinstance(item, Message) and item.id == message_id:
            return items[: index + 1]
    return None
