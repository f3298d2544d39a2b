"""Canceller: cancels one turn, everything that a session works on, one tool call or one terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from antiphon.client.protocol.dialect import AgentDialect
from antiphon.client.protocol.questions import PendingQuestions
from antiphon.client.protocol.tracked_session import is_background, shows_background_terminal
from antiphon.client.session.context import SessionContext
from antiphon.client.session.tracker import SessionTracker
from antiphon.client.session.turn import ClientTurn
from antiphon.errors import LinkLost, LocalError
from antiphon.schema import v2
from antiphon.schema.version import META_KEY, without_ours


class Canceller:
    def __init__(
        self,
        context: SessionContext,
        session_id: str,
        dialect: AgentDialect,
        tracker: SessionTracker,
        questions: PendingQuestions,
    ) -> None:
        self._context = context
        self._connection = context.agent.connection
        self._session_id = v2.SessionId(session_id)
        self._dialect = dialect
        self._tracker = tracker
        self._questions = questions
        self._later: list[ClientTurn] = []
        """Cancelled turns that the agent does not work on yet."""

    async def cancel_session(self, operation_id: str | None, meta: dict[str, Any] | None) -> None:
        """Cancel everything that the session works on."""
        self._mark_turns(self._tracker.turns.unfinished())
        self._mark_calls()
        await self._send(None, operation_id, meta)

    async def cancel_turn(self, turn: ClientTurn) -> None:
        """Cancel one turn. `session/cancel` hits what the session works on: while that is another turn, wait
        until the agent works on this one."""
        if turn.ended:
            return
        if self._tracker.turns.is_working_on(turn):
            self._mark_turns([turn])
            self._mark_calls()
            await self._send(turn)
        else:
            self.cancel_once_running(turn)

    def cancel_once_running(self, turn: ClientTurn) -> None:
        """Cancel a turn as soon as the session works on it."""
        if turn not in self._later:
            self._later.append(turn)
        self.turn_changed()

    def cancel_soon(self, turn: ClientTurn) -> None:
        """Cancel a turn without waiting. The notification is sent even if the turn ends here meanwhile."""
        if self._tracker.turns.is_working_on(turn):
            self._mark_calls()
            self._connection.start_soon(self._send(turn))

    def turn_changed(self) -> None:
        """The session may work on another turn: perhaps one that was cancelled before."""
        if not self._later:
            return
        turns = self._tracker.turns
        open = turns.unfinished()
        self._later = [turn for turn in self._later if not turn.ended or turn in open]
        for turn in [turn for turn in self._later if turns.is_working_on(turn)]:
            self._later.remove(turn)
            self._mark_turns([turn])
            self.cancel_soon(turn)

    def link_restored(self) -> None:
        """Send the cancel of a turn that is still open again: the agent may not have received it."""
        span = self._tracker.turns.open
        if span is not None and span.cancelled:
            self._connection.start_soon(self._send(self._tracker.turns.turn, span.cancelled_by))

    async def _send(
        self, turn: ClientTurn | None, operation_id: str | None = None, meta: dict[str, Any] | None = None
    ) -> None:
        message_id = None if turn is None else self._dialect.cancel_id(turn.message_id)
        ours = {} if message_id is None else {"messageId": message_id}
        ours |= self._context.operation("cancel", operation_id)
        span = self._tracker.turns.open
        if span is not None:
            span.cancelled_by = ours.get("operationId")
        meta = {**(without_ours(meta) or {}), **({META_KEY: ours} if ours else {})}
        params = v2.CancelSessionNotification(session_id=self._session_id, meta=meta or None)
        # The answers follow the notification, and do not wait for a congested link.
        self._questions.cancel_foreground()
        with contextlib.suppress(LinkLost):  # then the turn has ended anyway
            await self._connection.notify("session/cancel", params)

    def _mark_turns(self, turns: Iterable[ClientTurn]) -> None:
        """Mark these turns, and the open one, as cancelled by this client."""
        span = self._tracker.turns.open
        for turn in (*turns, *(() if span is None else (span.handle,))):
            turn._cancel_sent = True

    def _mark_calls(self) -> None:
        """Mark unfinished tool calls of the turn as cancelled (PROMPT-V1-11, PROMPT-V2-39)."""
        tracker = self._tracker
        self._dialect.cancel_sent()
        span = tracker.turns.open
        if span is None:
            return
        span.cancelled = True
        about = {getattr(event.update, "tool_call_id", None): None for event in span.events}
        for call_id in [*about, *self._questions.foreground_calls]:
            call = None if call_id is None else tracker.fold.tools.get(call_id)
            if call is None or call.final or is_background(tracker.fold, call.id, None):
                continue
            if not shows_background_terminal(tracker.fold, call.id):
                stopped = v2.ToolCallStatus.CANCELLED
                tracker.apply(v2.SessionToolCallUpdate(tool_call_id=call.id, status=stopped))

    # --- one tool call, one terminal ---------------------------------------------------------------
    # The agent reports the result in an update. The state of the session does not change (TOOL-V2-15).

    async def cancel_tool_call(self, tool_call_id: str) -> None:
        call = self._tracker.fold.tools.get(tool_call_id)
        if call is None or call.final or call.capabilities is None or call.capabilities.cancel is None:
            raise LocalError(
                f"the agent does not offer to cancel the tool call {tool_call_id!r}"
            )  # TOOL-V2-12
        params = v2.CancelToolCallRequest(session_id=self._session_id, tool_call_id=call.id)
        await self._connection.call("tool_call/cancel", params)

    async def cancel_terminal(self, terminal_id: str) -> None:
        shown = self._tracker.fold.terminals.get(terminal_id)
        if shown is None or shown.exited or shown.capabilities is None or shown.capabilities.cancel is None:
            raise LocalError(f"the agent does not offer to cancel the terminal {terminal_id!r}")  # TERMV2-10
        params = v2.CancelTerminalRequest(session_id=self._session_id, terminal_id=shown.id)
        await self._connection.call("terminal/cancel", params)
