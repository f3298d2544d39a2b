"""PendingAnswers: the prompts of one client that wait for their responses.

A response has its place among the updates: where the prompt is accepted, or where its turn ends, depending on
the client's dialect.
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
"""How a turn ends when its session is closed."""


class PendingAnswers:
    """`send` sends an update to the client."""

    def __init__(self, connection: Connection, writer: Writer, *, send: Send) -> None:
        self._connection = connection
        self._writer = writer
        self._send = send
        self._waiting: dict[str, list[Inbound]] = {}
        """Prompts that are not settled, by their message ids."""
        self._taken: dict[Any, Inbound] = {}
        """Prompts whose turn has not ended, by the ids of their requests."""
        self._message_ids: dict[Any, str] = {}
        """The message that each of those became."""
        self._recognized: set[str] = set()
        """Queued prompts that this client sent over an earlier connection."""
        self._answered: dict[Inbound, asyncio.Future[None]] = {}
        """All requests without a response; each future is done when its response is sent."""

    def __bool__(self) -> bool:
        return bool(self._answered)

    @property
    def waiting(self) -> list[str]:
        """The message ids of the prompts that are not settled."""
        return list(self._waiting)

    def is_abandoned(self, message_id: str) -> bool:
        """Whether the client does not wait for a prompt any more: each request for it was cancelled, or has a
        response."""
        return all(inbound.cancelled for inbound in self._waiting.get(message_id, ()))

    def add(self, message_id: str, inbound: Inbound, *, taken: bool) -> asyncio.Future[None]:
        """Answer a prompt later; the future is done then. `taken`: it was accepted already.

        A prompt that was sent twice under one operation id gets the same response twice.
        """
        if taken:
            self._take(message_id, inbound)
        else:
            self._waiting.setdefault(message_id, []).append(inbound)
        answered = self._answered[inbound] = asyncio.get_running_loop().create_future()
        return answered

    def forget(self, message_id: str, inbound: Inbound) -> None:
        """Do not answer a prompt after all: it was refused, or it is answered otherwise."""
        waiting = [one for one in self._waiting.pop(message_id, ()) if one is not inbound]
        if waiting:
            self._waiting[message_id] = waiting
        self._answered.pop(inbound, None)

    def recognize(self, entry: Entry) -> None:
        """Note a prompt that this client sent over an earlier connection. A v1 client does not get its
        message, even if the prompt is accepted before the client asks for it again."""
        if entry.settled:
            self._writer.inserted(entry.became or entry.message_id)
        else:
            self._recognized.add(entry.message_id)

    def move_from(self, other: PendingAnswers, *, accepted_again: Callable[[str], bool]) -> None:
        """Take over the pending answers of the client's earlier attachment. A prompt whose acceptance is
        written again waits for that: a turn that ended before it is not its own."""
        self._waiting.update(other._waiting)
        for id, inbound in other._taken.items():
            message_id = other._message_ids[id]
            if accepted_again(message_id):
                self._waiting.setdefault(message_id, []).append(inbound)
            else:
                self._take(message_id, inbound)
        self._answered.update(other._answered)

    # --- events of the journal -----------------------------------------------------------------------

    def accepted(self, body: PromptAccepted) -> None:
        shown = body.became or body.message_id
        if body.message_id in self._recognized:
            self._recognized.discard(body.message_id)
            self._writer.inserted(shown)
        for inbound in self._waiting.pop(body.message_id, ()):
            taken = self._writer.inserted(shown)
            if taken is None:
                self._take(body.message_id, inbound)
            else:
                self._answer(inbound, taken)

    def refused(self, message_id: str, error: ErrorObject, *, withdrawn: bool = False) -> None:
        """Answer a prompt that was not accepted. `withdrawn`: a client withdrew it; otherwise it was
        cancelled."""
        for inbound in self._waiting.pop(message_id, ()):
            self.refuse(inbound, error, withdrawn=withdrawn)

    def refuse(self, inbound: Inbound, error: ErrorObject, *, withdrawn: bool = False) -> None:
        """Answer a prompt that was not accepted. A v1 client gets a cancelled one as a result, not as an
        error (PROMPT-V1-14, -15)."""
        id: Any = inbound.id
        self._send_all(self._writer.refused(id, error, cancelled=not withdrawn), {id: inbound})

    def ended(self, update: v2.SessionStateUpdate) -> list[bytes | Callable[[], None]]:
        """Return what follows the last update of a turn, in order: updates to send and functions to call."""
        taken, self._taken = self._taken, {}
        return [
            partial(self._answer, taken[one.request], one.given) if isinstance(one, Answer) else one
            for one in self._writer.ended(update, list(taken))
        ]

    def answer_missed(self, entries: Iterable[Entry], turn: Turn | None) -> None:
        """Answer the prompts whose events this client is not sent, because it moved its attachment past them.

        entries: the prompts as of the new cursor
        turn: the turn that is open there
        """
        for entry in entries:
            if entry.state is PromptState.ACCEPTED:
                self.accepted(PromptAccepted(message_id=entry.message_id, became=entry.became))
                if turn is None or (entry.became or entry.message_id) not in turn.prompts:
                    self._answer_ended(entry)
            elif entry.state in (PromptState.REJECTED, PromptState.WITHDRAWN):
                withdrawn = entry.state is PromptState.WITHDRAWN
                error = entry.error or RequestCancelled().to_wire()
                self.refused(entry.message_id, error, withdrawn=withdrawn)

    def _answer_ended(self, entry: Entry) -> None:
        """Answer a prompt whose turn has ended."""
        requests = [id for id, message_id in self._message_ids.items() if message_id == entry.message_id]
        ended = {id: self._taken.pop(id) for id in requests if id in self._taken}
        if ended:
            self._send_all(self._writer.ended(_end_of(entry), list(ended)), ended)

    # --- answers -------------------------------------------------------------------------------------

    def answer_again(self, entry: Entry, inbound: Inbound, *, over: bool) -> bool:
        """Answer a repeated prompt as it was answered the first time; return whether that is possible now.

        over: its turn has ended, and everything of it was written to this client
        """
        id: Any = inbound.id
        if entry.state is not PromptState.ACCEPTED:
            error = entry.error or RequestCancelled().to_wire()
            self.refuse(inbound, error, withdrawn=entry.state is PromptState.WITHDRAWN)
            return True
        shown = entry.became or entry.message_id
        ended = _end_of(entry, meta={META_KEY: {**REPEATED, "messageId": shown}})
        taken = self._writer.inserted(shown, extra=repeated_over(ended) if over else REPEATED)
        if taken is not None:
            self._answer(inbound, taken)
        elif over:
            self._send_all(self._writer.ended(ended, [id]), {id: inbound})
        return over or taken is not None

    def cancel(self) -> None:
        """Answer all prompts as cancelled: the session is closed."""
        for message_id in tuple(self._waiting):
            self.refused(message_id, RequestCancelled().to_wire())
        taken, self._taken = self._taken, {}
        if taken:
            self._send_all(self._writer.ended(CLOSED, list(taken)), taken)

    def fail(self, error: ErrorObject) -> None:
        """Answer all prompts with an error."""
        self._waiting.clear()
        self._taken.clear()
        for inbound in tuple(self._answered):
            self._answer(inbound, error)

    def _take(self, message_id: str, inbound: Inbound) -> None:
        """Wait for the end of the turn of an accepted prompt."""
        self._message_ids[inbound.id] = message_id
        self._taken[inbound.id] = inbound

    def _answer(self, inbound: Inbound, given: Any) -> None:
        self._message_ids.pop(inbound.id, None)
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
    """Return the state update that ended the turn of a prompt."""
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
