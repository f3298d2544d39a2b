"""The turn of a v1 agent, reported as in v2 by state updates (24.3).

v1 answers a prompt at the end of its turn, v2 at its insertion. So a turn opens when a prompt is sent and
ends when the last open one is answered; in between a question may block it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import UNSET, structs

from antiphon.bridge import losses
from antiphon.bridge.content import recast
from antiphon.bridge.losses import Ledger, mark
from antiphon.bridge.prompts import INTERRUPTED, RequestId, request_name
from antiphon.errors import ErrorObject, RequestCancelled, one_line
from antiphon.schema import v1, v2
from antiphon.schema.v1.optins import TurnComplete
from antiphon.schema.version import META_KEY

WAITING_FOR: Final = "waitingFor"
CANCELLED: Final = v2.SessionStateUpdate(state=v2.State.IDLE, stop_reason=v2.StopReason.CANCELLED)
REMEMBERED = 64
"""How many answered prompts are remembered, to recognise a second `turn_complete` for one of them."""


class Turns:
    """Our prompts to one session of a v1 agent, and the state that follows from them."""

    __slots__ = (
        "_blocked", "_cancelled", "_ended", "_ledger", "_open", "_over", "_questions", "_running", "state",
    )  # fmt: skip

    def __init__(self, ledger: Ledger, *, running: Callable[[set[str]], bool]) -> None:
        """`running` returns whether a tool call is in progress other than the given ones."""
        self._ledger = ledger
        self._running = running
        self._open: dict[RequestId, str] = {}
        """The prompts that are not answered yet, and the messages they became."""
        self._over: deque[RequestId] = deque(maxlen=REMEMBERED)
        """The prompts that were answered last."""
        self._cancelled: set[RequestId] = set()
        """The open prompts that we cancelled."""
        self._ended: list[dict[str, Any]] = []
        """How prompts of the open turn ended that were not its last."""
        self._questions: dict[str, str] = {}
        """The open questions, and the tool calls they are about."""
        self._blocked = False
        self.state = v2.State.IDLE
        """The state as last reported."""

    @property
    def open(self) -> bool:
        """Whether a prompt of ours is not answered yet."""
        return bool(self._open)

    def prompted(self, request_id: RequestId, message_id: str) -> list[v2.SessionStateUpdate]:
        opens = not self._open
        self._open[request_id] = message_id
        return [self._report(v2.State.RUNNING)] if opens else []  # PROMPT-V2-22

    def cancelled(self) -> None:
        self._cancelled.update(self._open)

    def responded(self, request_id: RequestId, result: v1.PromptResponse) -> list[v2.SessionStateUpdate]:
        idle = v2.SessionStateUpdate(
            state=v2.State.IDLE,
            stop_reason=v2.StopReason(result.stop_reason),
            usage=None if result.usage is None else recast(result.usage, v2.Usage),
            meta=result.meta,
        )
        return self._end(request_id, idle)

    def failed(self, request_id: RequestId, error: ErrorObject) -> list[v2.SessionStateUpdate]:
        if request_id not in self._open:
            return []
        if error.code == RequestCancelled.code:
            idle = CANCELLED
        elif request_id in self._cancelled:  # PROMPT-V2-35, -36
            self._ledger.lose(losses.CANCEL_FAILED, error)
            idle = v2.SessionStateUpdate(
                state=v2.State.IDLE,
                stop_reason=v2.StopReason.CANCELLED,
                meta=mark(None, {"error": error}),
            )
        else:
            idle = self._failure(error)
        return self._end(request_id, idle)

    def interrupted(self) -> list[v2.SessionStateUpdate]:
        cut = bool(self._open) or self.state is not v2.State.IDLE
        cancelled = bool(self._open) and self._cancelled.issuperset(self._open)  # PROMPT-V2-35
        self._open.clear()
        self._close()
        if not cut:
            return []
        return [CANCELLED if cancelled else INTERRUPTED]

    def completed(self, update: TurnComplete) -> list[v2.SessionStateUpdate]:
        """The agent reports that a turn has ended (TC-01). If the turn is ours, the response to its prompt
        follows and has more. Another turn ended the work of the session, unless ours is open; as its
        beginning was not reported, this ends none (PROMPT-V2-20). A copy for an ended prompt of ours has no
        effect."""
        named = str(update.prompt_request_id)
        if any(named == request_name(request) for request in (*self._open, *self._over)):
            return []
        if self._open:
            self._ledger.lose(losses.OTHER_TURN, update)
            return []
        return [idle_of(update)]

    def asked(self, question: str, call: str) -> list[v2.SessionStateUpdate]:
        self._questions[question] = call
        return self.update_state()

    def answered(self, question: str) -> list[v2.SessionStateUpdate]:
        self._questions.pop(question, None)
        return self.update_state()

    def update_state(self) -> list[v2.SessionStateUpdate]:
        """Return the state, if questions and running calls change it (PROMPT-V2-23..25)."""
        if not self._open:
            return []  # a question outside a turn blocks none
        blocked = bool(self._questions) and not self._running(set(self._questions.values()))
        if blocked is self._blocked:
            return []
        self._blocked = blocked
        if not blocked:
            return [self._report(v2.State.RUNNING)]  # PROMPT-V2-24
        return [self._report(v2.State.REQUIRES_ACTION, {META_KEY: {WAITING_FOR: list(self._questions)}})]

    def _end(self, request_id: RequestId, idle: v2.SessionStateUpdate) -> list[v2.SessionStateUpdate]:
        message_id = self._open.pop(request_id, None)
        if message_id is None:
            return []
        self._over.append(request_id)
        if self._open:
            ended = msgspec.to_builtins(idle)
            self._ledger.lose(losses.PROMPT_END, idle)
            del ended["sessionUpdate"], ended["state"]
            self._ended.append({"messageId": message_id, **ended})
            return []
        if self._ended:
            original = (idle.meta or {}).get(losses.ORIGINAL, {})
            idle = structs.replace(idle, meta=mark(idle.meta, {**original, "prompts": self._ended}))
        self._close()
        return [idle]

    def _close(self) -> None:
        self._ended = []
        self._cancelled.clear()
        self._questions.clear()
        self._blocked = False
        self.state = v2.State.IDLE

    def _report(self, state: v2.State, meta: dict[str, Any] | None = None) -> v2.SessionStateUpdate:
        self.state = state
        return v2.SessionStateUpdate(state=state, meta=meta)

    def _failure(self, error: ErrorObject) -> v2.SessionStateUpdate:
        meta = None
        try:
            code = v2.ErrorCode(error.code)
        except ValueError:
            self._ledger.lose(losses.ERROR_CODE, error)
            code, meta = v2.ErrorCode.INTERNAL_ERROR, mark(None, {"code": error.code})
        return v2.SessionStateUpdate(
            state=v2.State.IDLE,
            stop_reason=v2.StopReason.ERROR,
            error=v2.Error(code=code, message=one_line(error.message), data=error.data),
            meta=meta,
        )


def idle_of(update: TurnComplete) -> v2.SessionStateUpdate:
    """Return the end of a turn as `turn_complete` reports it: with its stop reason, or with its error."""
    error, reason = None, None if update.stop_reason is UNSET else v2.StopReason(update.stop_reason)
    if update.error is not UNSET:
        reason = v2.StopReason.ERROR
        said = update.error
        error = v2.Error(code=v2.ErrorCode(said.code), message=one_line(said.message), data=said.data)
    return v2.SessionStateUpdate(state=v2.State.IDLE, stop_reason=reason, error=error, meta=update.meta)
