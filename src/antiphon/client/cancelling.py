"""Cancelling: one turn and no other, or whatever the session works on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from antiphon.client.asking import Asking
from antiphon.client.spoken import Spoken
from antiphon.client.turn import ClientTurn
from antiphon.client.view import View
from antiphon.connection import Connection
from antiphon.errors import LinkLost
from antiphon.schema import v2
from antiphon.schema.version import META_KEY, without_ours


class Cancelling:
    def __init__(
        self, session_id: str, connection: Connection, spoken: Spoken, view: View, asking: Asking
    ) -> None:
        self._session_id = v2.SessionId(session_id)
        self._connection = connection
        self._spoken = spoken
        self._view = view
        self._asking = asking
        self._later: list[ClientTurn] = []
        """Turns to be cancelled that are not worked on yet."""
        self.marks = True
        """Whether unfinished calls are marked here; who only passes on leaves that to those who look."""
        self.operation: Callable[[str | None], dict[str, str]] = lambda _: {}
        """The operation id of a cancel, by its name, where it has one; of what is given, or made up."""

    async def session(self, operation_id: str | None = None, meta: dict[str, Any] | None = None) -> None:
        """Stop whatever is worked on."""
        self._note(self._view.spans.all())
        self._mark()
        await self._send(None, operation_id, meta)

    async def turn(self, turn: ClientTurn) -> None:
        """Stop one turn. `session/cancel` hits what the session works on: while that is another one, it
        waits until this one has its turn."""
        if turn.end is not None:
            return
        if self._view.spans.works_on(turn):
            self._note([turn])
            self._mark()
            await self._send(turn)
        else:
            self.once_worked_on(turn)

    def once_worked_on(self, turn: ClientTurn) -> None:
        """Stop a turn as soon as the session works on it."""
        if turn not in self._later:
            self._later.append(turn)
        self.due()

    def soon(self, turn: ClientTurn) -> None:
        """The same, for who cannot wait; it is sent even if the turn ends here meanwhile."""
        if self._view.spans.works_on(turn):
            self._mark()
            self._connection.start_soon(self._send(turn))

    def due(self) -> None:
        """It may be another turn that is worked on: perhaps one that was cancelled before."""
        if not self._later:
            return
        open = self._view.spans.all()
        self._later = [turn for turn in self._later if turn.end is None or turn in open]
        for turn in [turn for turn in self._later if self._view.spans.works_on(turn)]:
            self._later.remove(turn)
            self._note([turn])
            self.soon(turn)

    def restored(self) -> None:
        """Another link is in use: what was to end, and has not, may not have been told."""
        span = self._view.spans.open
        if span is not None and span.cancelled:
            self._connection.start_soon(self._send(self._view.spans.turn, span.cancelled_by))

    async def _send(
        self, turn: ClientTurn | None, operation_id: str | None = None, beside: dict[str, Any] | None = None
    ) -> None:
        message_id = None if turn is None else self._spoken.named(turn)
        ours = {} if message_id is None else {"messageId": message_id}
        ours |= self.operation(operation_id)
        if self._view.spans.open is not None:
            self._view.spans.open.cancelled_by = ours.get("operationId")
        meta = {**(without_ours(beside) or {}), **({META_KEY: ours} if ours else {})}
        params = v2.CancelSessionNotification(session_id=self._session_id, meta=meta or None)
        self._asking.cancel()  # the answers follow the notification, and do not wait for a congested link
        with contextlib.suppress(LinkLost):  # then it has ended anyway
            await self._connection.notify("session/cancel", params)

    def _note(self, turns: Iterable[ClientTurn]) -> None:
        """The agent is about to be asked to stop these turns, and with them the turn that is open."""
        span = self._view.spans.open
        for turn in (*turns, *(() if span is None else (span.own,))):
            turn.stopping = True

    def _mark(self) -> None:
        """PROMPT-V1-11, PROMPT-V2-39: unfinished calls of the turn count as cancelled from here on."""
        self._spoken.cancelled()
        span = self._view.spans.open
        if span is None:
            return
        span.cancelled = True
        if not self.marks:
            return
        about = {getattr(event.update, "tool_call_id", None): None for event in span.events}
        for call_id in [*about, *self._asking.calls]:
            call = None if call_id is None else self._view.fold.tools.get(call_id)
            if call is None or call.final or self._view.is_behind(call.id, None):
                continue
            if not self._view.runs_behind(call.id):
                stopped = v2.ToolCallStatus.CANCELLED
                self._view.tell(v2.SessionToolCallUpdate(tool_call_id=call.id, status=stopped))
