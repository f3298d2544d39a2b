"""Owed: the prompts of one client that wait for their answers.

An answer stands in the stream of updates, at the place where it becomes true: where the prompt is accepted,
or where its turn ends, as the client's dialect has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from antiphon.bridge.dialects import Sent, Writer
from antiphon.bridge.prompts import REPEATED, Answer, repeated_over
from antiphon.connection import Connection
from antiphon.engine.events import PromptAccepted
from antiphon.engine.prompt_states import PromptState
from antiphon.engine.prompts import Entry
from antiphon.engine.turn import Turn
from antiphon.errors import ErrorObject, RequestCancelled
from antiphon.jsonrpc.peer import Inbound
from antiphon.live.update_sender import Send
from antiphon.schema import v2
from antiphon.schema.version import META_KEY

CLOSED = v2.SessionStateUpdate(state=v2.State.IDLE, stop_reason=v2.StopReason.CANCELLED)
"""How a turn ends by the closing of its session."""


class PendingAnswers:
    """`send` sends the client an update."""

    def __init__(self, connection: Connection, writer: Writer, *, send: Send) -> None:
        self._connection = connection
        self._writer = writer
        self._send = send
        self._waiting: dict[str, list[Inbound]] = {}
        """Prompts that are not settled, by their message ids."""
        self._taken: dict[Any, Inbound] = {}
        """Prompts whose turn has not ended, by the ids of their requests."""
        self._said: dict[Any, str] = {}
        """Which message each of those became."""
        self._own: set[str] = set()
        """Prompts of this client that wait since an earlier link."""
        self._answered: dict[Inbound, asyncio.Future[None]] = {}
        """All that is owed, and who waits for it."""

    def __bool__(self) -> bool:
        return bool(self._answered)

    def add(self, message_id: str, inbound: Inbound, *, taken: bool) -> asyncio.Future[None]:
        """Owe an answer to a prompt, which was `taken` already, or waits; done when it is given.

        Asked twice under one operation, it is answered twice alike.
        """
        if taken:
            self._take(message_id, inbound)
        else:
            self._waiting.setdefault(message_id, []).append(inbound)
        answered = self._answered[inbound] = asyncio.get_running_loop().create_future()
        return answered

    def recognize(self, entry: Entry) -> None:
        """A prompt of this client, from an earlier link: its message is not shown to a v1 client, also where
        it is taken before this client asks again."""
        if entry.settled:
            self._writer.inserted(entry.became or entry.message_id)
        else:
            self._own.add(entry.message_id)

    def move_from(self, other: PendingAnswers, *, accepted_again: Callable[[str], bool]) -> None:
        """What this client was owed where it was attached before. A prompt whose acceptance is written again
        waits for that: no turn that ended before it is its own."""
        self._waiting.update(other._waiting)
        for id, inbound in other._taken.items():
            message_id = other._said[id]
            if accepted_again(message_id):
                self._waiting.setdefault(message_id, []).append(inbound)
            else:
                self._take(message_id, inbound)
        self._answered.update(other._answered)

    # --- what the journal says -----------------------------------------------------------------------

    def accepted(self, body: PromptAccepted) -> None:
        shown = body.became or body.message_id
        if body.message_id in self._own:
            self._own.discard(body.message_id)
            self._writer.inserted(shown)
        for inbound in self._waiting.pop(body.message_id, ()):
            taken = self._writer.inserted(shown)
            if taken is None:
                self._take(body.message_id, inbound)
            else:
                self._answer(inbound, taken)

    def refused(self, message_id: str, error: ErrorObject, *, withdrawn: bool = False) -> None:
        """A prompt was not taken. `withdrawn`: somebody took it back, and no cancel did that."""
        for inbound in self._waiting.pop(message_id, ()):
            self.refuse(inbound, error, withdrawn=withdrawn)

    def refuse(self, inbound: Inbound, error: ErrorObject, *, withdrawn: bool = False) -> None:
        """Answer a prompt that was not taken. To a v1 client what was cancelled, by whomever, is a result and
        no error (PROMPT-V1-14, -15)."""
        id: Any = inbound.id
        self._send_all(self._writer.refused(id, error, cancelled=not withdrawn), {id: inbound})

    def ended(self, update: v2.SessionStateUpdate) -> list[bytes | Callable[[], None]]:
        """The turn has ended: what follows its last update, in order. What is no update is called."""
        taken, self._taken = self._taken, {}
        return [
            partial(self._answer, taken[one.request], one.given) if isinstance(one, Answer) else one
            for one in self._writer.ended(update, list(taken))
        ]

    def answer_missed(self, entries: Iterable[Entry], turn: Turn | None) -> None:
        """Answer what became true between the last event that was written and those `entries`, where `turn`
        is open: nobody writes those events to a client that has moved its attachment."""
        for entry in entries:
            if entry.state is PromptState.ACCEPTED:
                self.accepted(PromptAccepted(message_id=entry.message_id, became=entry.became))
                if turn is None or (entry.became or entry.message_id) not in turn.prompts:
                    self._over(entry)
            elif entry.state in (PromptState.REJECTED, PromptState.WITHDRAWN):
                withdrawn = entry.state is PromptState.WITHDRAWN
                error = entry.error or RequestCancelled().to_wire()
                self.refused(entry.message_id, error, withdrawn=withdrawn)

    def _over(self, entry: Entry) -> None:
        """The turn of a prompt ended where nobody was told."""
        requests = [id for id, message_id in self._said.items() if message_id == entry.message_id]
        over = {id: self._taken.pop(id) for id in requests if id in self._taken}
        if over:
            self._send_all(self._writer.ended(_end_of(entry), list(over)), over)

    # --- answers -------------------------------------------------------------------------------------

    def answer_again(self, entry: Entry, inbound: Inbound, *, over: bool) -> bool:
        """A prompt that was settled before comes again: answer it as then, which is `over` where its turn is,
        and everything of that was written; whether that was possible now."""
        id: Any = inbound.id
        if entry.state is not PromptState.ACCEPTED:
            error = entry.error or RequestCancelled().to_wire()
            self.refuse(inbound, error, withdrawn=entry.state is PromptState.WITHDRAWN)
            return True
        shown = entry.became or entry.message_id
        ended = _end_of(entry, meta={META_KEY: {**REPEATED, "messageId": shown}})
        taken = self._writer.inserted(shown, beside=repeated_over(ended) if over else REPEATED)
        if taken is not None:
            self._answer(inbound, taken)
        elif over:
            self._send_all(self._writer.ended(ended, [id]), {id: inbound})
        return over or taken is not None

    def cancel(self) -> None:
        """The session is closed and this client is told nothing more: its prompts end as cancelled."""
        for message_id in tuple(self._waiting):
            self.refused(message_id, RequestCancelled().to_wire())
        taken, self._taken = self._taken, {}
        if taken:
            self._send_all(self._writer.ended(CLOSED, list(taken)), taken)

    def fail(self, error: ErrorObject) -> None:
        """Answer all of it so."""
        self._waiting.clear()
        self._taken.clear()
        for inbound in tuple(self._answered):
            self._answer(inbound, error)

    def _take(self, message_id: str, inbound: Inbound) -> None:
        """It was accepted: the end of its turn is still to be told."""
        self._said[inbound.id] = message_id
        self._taken[inbound.id] = inbound

    def _answer(self, inbound: Inbound, given: Any) -> None:
        self._said.pop(inbound.id, None)
        self._connection.answer(inbound, given)
        answered = self._answered.pop(inbound, None)
        if answered is not None and not answered.done():
            answered.set_result(None)

    def _send_all(self, sent: list[Sent], requests: dict[Any, Inbound]) -> None:
        for one in sent:
            if isinstance(one, Answer):
                self._answer(requests[one.request], one.given)
            else:
                self._send(one)


def _end_of(entry: Entry, *, meta: dict[str, Any] | None = None) -> v2.SessionStateUpdate:
    """How the turn of a prompt ended."""
    return v2.SessionStateUpdate(
        state=v2.State.IDLE, stop_reason=entry.stop_reason, error=_error(entry.error), meta=meta
    )


def _error(error: ErrorObject | None) -> v2.Error | None:
    if error is None:
        return None
    try:
        code = v2.ErrorCode(error.code)
    except ValueError:
        code = v2.ErrorCode.INTERNAL_ERROR
    return v2.Error(code=code, message=error.message, data=error.data)
