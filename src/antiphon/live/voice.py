"""Voice: one client of a live session, speaking its dialect over its connection.

It writes what the journal says, in order: updates as they are, the answers to this client's own prompts at
the place where they become true, and the questions it is asked. What it hears it hands on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from antiphon.bridge.dialects import Sent, Writer, update_params
from antiphon.bridge.prompts import Answer
from antiphon.connection import Connection
from antiphon.engine.events import (
    Event,
    PromptAccepted,
    PromptRejected,
    PromptWithdrawn,
    QuestionClosed,
    QuestionOpened,
    Updated,
)
from antiphon.engine.prompt_states import PromptState
from antiphon.engine.prompts import Entry, Prompts, QueuePart
from antiphon.engine.questions import Question, QuestionState
from antiphon.engine.reading import UPDATES, encode
from antiphon.engine.snapshot import state_update
from antiphon.engine.turn import Effect, Turns
from antiphon.errors import ErrorObject, LinkLost, RequestCancelled, SessionUnknown, StoreError
from antiphon.jsonrpc.frames import encode_notification
from antiphon.jsonrpc.peer import Inbound
from antiphon.live.asking import Asking
from antiphon.live.attachment import Attachment
from antiphon.live.session import LiveSession
from antiphon.schema import v2
from antiphon.schema.repair import Malformed
from antiphon.schema.updates import UPDATE
from antiphon.schema.v2.prompt import StopReason
from antiphon.schema.version import Extras

NOT_KEPT = v2.Error(
    code=v2.ErrorCode.INTERNAL_ERROR, message="The session cannot be kept", data={"reason": "store"}
)

Heard = Callable[[str, Any, "Voice"], None]
"""Called with a question's id, what this client answered, and its voice: a `RequestPermissionOutcome`, or a
`CreateElicitationResponse`, which is `None` where there was an error instead."""


class Voice:
    """Made before the session is open, so that it can be shown while it is read (`preview`); `pin` ties it to
    the live session, `start` lets it follow."""

    def __init__(
        self,
        session_id: str,
        connection: Connection,
        writer: Writer,
        *,
        extras: Extras | None = None,
        modes: frozenset[str] = frozenset(),
    ) -> None:
        self.writer = writer
        self.modes = modes
        """The modes of elicitations that this client takes."""
        self._connection = connection
        self._extras = extras or Extras()
        # The frame of an update is put together around bytes that are JSON already.
        params = update_params(encode(session_id), b"%b")
        self._start, self._end = encode_notification(UPDATE, params).split(b"%b")
        self._live: LiveSession
        self._heard: Heard
        self._attachment: Attachment | None = None
        self._turns = Turns()
        self._queue: Prompts | None = None
        """What waits, as of what was written to this client; kept for one that asked to see it."""
        self._prompts: dict[str, list[Inbound]] = {}
        self._unanswered: dict[Any, Inbound] = {}
        self._said: dict[Any, str] = {}
        """Which message each of those became, by the ids of the requests."""
        self._answered: dict[Inbound, asyncio.Future[None]] = {}
        self._asking = Asking(
            connection,
            writer,
            modes=modes,
            send=self._send,
            heard=self._hear,
        )
        self._following: asyncio.Task[None] | None = None
        self._previewed = 0
        self._pinned = 0
        self._after: int | None = None
        self._waiting: tuple[QueuePart, list[Entry]]
        self._replay: list[Any] = []
        self._closing: bytes | None = None
        self._questions: list[Question] = []
        self.cancelled = False
        """Whether this client has cancelled the turn that is open: its held prompts end as cancelled."""

    # --- joining and leaving -----------------------------------------------------------------------

    def preview(self, updates: list[bytes]) -> bool:
        """Send the beginning of a replay; whether there is room for more. Nobody waits for this client."""
        for raw in updates:
            self._send_update(raw)
        self._previewed += len(updates)
        return not self._connection.congested

    def pin(
        self,
        live: LiveSession,
        heard: Heard,
        *,
        history: bool = False,
        after: int | None = None,
    ) -> None:
        """Follow the session from here, this very step: what is to be replayed is what the fold has now,
        beside what was shown before. With `after`, the events
        since that one are sent instead."""
        self._live, self._heard = live, heard
        self._after = after
        fold = live.fold
        if after is None:
            self._turns.restore(fold.turns.part())
        self._replay = [item.materialize() for item in fold.items[self._previewed :]] if history else []
        self._closing = state_update(fold)
        self._pinned = fold.last_seq
        self._questions = fold.questions.open
        self._waiting = fold.prompts.part(), list(fold.prompts.entries.values())
        self._attachment = Attachment(live, self._write, drain=self._connection.drain, cursor=after)

    @property
    def pinned(self) -> bool:
        return self._attachment is not None

    def start(self, *, state: bool = False, then: Callable[[], None] = lambda: None) -> None:
        """Begin to send: the replay, once everything in it is in the store; then the state, if that is asked
        for; `then` is called before anything newer is sent."""
        attachment = self._attachment
        assert attachment is not None

        async def begin() -> None:
            replay, self._replay = self._replay, []
            for update in replay:
                for raw in self.writer.write(update, encode(update)):
                    self._send(raw)
                await self._connection.drain()
            await attachment.catch_up(self._pinned)
            for raw in self.writer.flush():
                self._send(raw)
            if state and self._closing is not None:
                for raw in self.writer.write(UPDATES.read(self._closing), self._closing):
                    self._send(raw, seq=self._pinned)
            if self._after is None and (self._prompts or self._unanswered):
                self._settle()
            then()
            if self._extras.queue_updates:
                self._queue = Prompts()
                self._queue.restore(*self._waiting)
                if self._queue.queued or self._queue.paused:
                    self._show_queue(self._pinned)
            for question in self._questions:
                self._asking.ask(question)

        self._following = asyncio.get_running_loop().create_task(self._follow(attachment, begin))

    async def _follow(self, attachment: Attachment, begin: Callable[[], Awaitable[None]]) -> None:
        try:
            await attachment.follow(begin=begin)
        except (StoreError, SessionUnknown):
            self._fail()

    def _fail(self) -> None:
        """The session cannot go on here: whoever waits for an answer gets one, and its turn ends. What was
        not kept is not shown; who opens the session again finds what was."""
        waiting = [inbound for held in self._prompts.values() for inbound in held]
        self._prompts.clear()
        if self._turns.current is not None:
            ended = v2.SessionStateUpdate(state=v2.State.IDLE, stop_reason=StopReason.ERROR, error=NOT_KEPT)
            for raw in self.writer.write(ended, encode(ended)):
                self._send(raw)
        for inbound in (*self._unanswered.values(), *waiting):
            self._answer(inbound, ErrorObject(int(NOT_KEPT.code), NOT_KEPT.message, NOT_KEPT.data))
        self._unanswered.clear()

    def take_over(self, other: Voice) -> None:
        """A client that joins again has one attachment: what it is owed moves here."""
        self._prompts.update(other._prompts)
        self._unanswered.update(other._unanswered)
        self._answered.update(other._answered)
        self._said.update(other._said)
        self.cancelled = other.cancelled

    async def stop(self) -> None:
        """Leave the session; it goes on without this client."""
        self._asking.withdraw()
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    async def caught_up(self) -> None:
        """Wait until everything emitted so far has been written to this client."""
        await self.reached(self._live.fold.last_seq)

    @property
    def joined_at(self) -> int:
        """The last event of what was there when this client joined."""
        return self._pinned

    async def reached(self, seq: int) -> None:
        """Wait until everything up to an event has been written to this client, or nothing is any more."""
        assert self._attachment is not None
        assert self._following is not None
        reached = asyncio.ensure_future(self._attachment.reached(seq))
        try:  # one that has left the session, or lost it, is written nothing more
            await asyncio.wait((reached, self._following), return_when=asyncio.FIRST_COMPLETED)
        finally:
            reached.cancel()

    async def ended_or(self, event: asyncio.Future[None]) -> None:
        """Wait for something that `start` brings about, or until nothing is written any more."""
        assert self._following is not None
        await asyncio.wait((event, self._following), return_when=asyncio.FIRST_COMPLETED)

    def say(self, update: bytes) -> None:
        """Send one update to this client alone."""
        self._send(update)

    # --- prompts -----------------------------------------------------------------------------------

    def prompted(self, message_id: str, inbound: Inbound) -> asyncio.Future[None]:
        """This prompt is this client's: it is answered when and where the journal says so.

        Asked twice under one operation, it is answered twice alike.
        """
        turn, shown = self._live.fold.turn, self._live.fold.prompts.shown_as(message_id)
        if turn is not None and shown in turn.prompts:
            self._said[inbound.id] = message_id
            self._unanswered[inbound.id] = inbound  # taken already: the end of its turn is still to be told
        else:
            self._prompts.setdefault(message_id, []).append(inbound)
        answered = self._answered[inbound] = asyncio.get_running_loop().create_future()
        return answered

    def _answer(self, inbound: Inbound, given: Any) -> None:
        self._said.pop(inbound.id, None)
        self._connection.answer(inbound, given)
        answered = self._answered.pop(inbound, None)
        if answered is not None and not answered.done():
            answered.set_result(None)

    # --- writing -----------------------------------------------------------------------------------

    def _write(self, events: list[Event]) -> None:
        # Run for every chunk and every client: what does not change is looked up once.
        write, send, start, end = self.writer.write, self._connection.send, self._start, self._end
        numbered = self._extras.seq
        for event in events:
            body = event.body
            if type(body) is Updated:
                try:
                    update = body.update
                except Malformed:
                    continue
                for raw in write(update, bytes(body.raw)):
                    if numbered:
                        self._send(raw, seq=event.seq)
                    else:
                        send(start + raw + end)
                if type(update) is v2.SessionStateUpdate:
                    self._turned(update, event)
                continue
            if isinstance(body, PromptAccepted):
                self._accepted(body)
            elif isinstance(body, PromptRejected):
                self._refused(body.message_id, body.error)
            elif isinstance(body, PromptWithdrawn):
                self._refused(body.message_id, RequestCancelled().to_wire())
            elif isinstance(body, QuestionOpened):
                question = self._live.fold.questions.get(body.question_id)
                if question is not None and question.state is QuestionState.OPEN:
                    self._asking.ask(question)
            elif isinstance(body, QuestionClosed):
                self._asking.withdraw(body.question_id)
            if self._queue is not None and self._queue.apply(body, seq=event.seq):
                self._show_queue(event.seq)

    def _show_queue(self, seq: int) -> None:
        assert self._queue is not None
        entries = [
            {"messageId": entry.message_id, "mode": str(entry.delivery), "content": entry.raw_content}
            for entry in self._queue.queued
        ]
        shown = {"sessionUpdate": "_antiphon_queue", "entries": entries, "paused": self._queue.paused}
        self._send(encode(shown), seq=seq)

    def _turned(self, update: v2.SessionStateUpdate, event: Event) -> None:
        if self._turns.apply(update, seq=event.seq, at=event.at) is Effect.ENDED:
            self.cancelled = False
            unanswered, self._unanswered = self._unanswered, {}
            self._send_all(self.writer.ended(update, list(unanswered)), unanswered)

    def _accepted(self, body: PromptAccepted) -> None:
        for inbound in self._prompts.pop(body.message_id, ()):
            taken = self.writer.inserted(body.became or body.message_id)
            if taken is None:
                self._said[inbound.id] = body.message_id
                self._unanswered[inbound.id] = inbound
            else:
                self._answer(inbound, taken)

    def _settle(self) -> None:
        """Answer what became true between the last event that was written and the one pinned at: nobody
        writes those events to a client that has moved its attachment."""
        turn = self._turns.current
        for entry in self._waiting[1]:
            if entry.state is PromptState.ACCEPTED:
                self._accepted(PromptAccepted(message_id=entry.message_id, became=entry.became))
                if turn is None or (entry.became or entry.message_id) not in turn.prompts:
                    self._over(entry)
            elif entry.state in (PromptState.REJECTED, PromptState.WITHDRAWN):
                self._refused(entry.message_id, entry.error or RequestCancelled().to_wire())

    def _over(self, entry: Entry) -> None:
        """The turn of a prompt ended where nobody was told."""
        requests = [id for id, message_id in self._said.items() if message_id == entry.message_id]
        over = {id: self._unanswered.pop(id) for id in requests if id in self._unanswered}
        if over:
            ended = v2.SessionStateUpdate(
                state=v2.State.IDLE, stop_reason=entry.stop_reason, error=_error(entry.error)
            )
            self._send_all(self.writer.ended(ended, list(over)), over)

    def _refused(self, message_id: str, error: ErrorObject) -> None:
        for inbound in self._prompts.pop(message_id, ()):
            id: Any = inbound.id
            self._send_all(self.writer.refused(id, error, cancelled=self.cancelled), {id: inbound})

    def _send_all(self, sent: list[Sent], requests: dict[Any, Inbound]) -> None:
        for one in sent:
            if isinstance(one, Answer):
                self._answer(requests[one.request], one.given)
            else:
                self._send(one)

    def _send_update(self, raw: bytes) -> None:
        for written in self.writer.write(UPDATES.read(raw), raw):
            self._send(written)

    def _send(self, update: bytes, *, seq: int | None = None) -> None:
        if seq is not None and self._extras.seq:
            update += b',"_meta":{"antiphon":{"seq":%d}}' % seq
        self._connection.send(self._start + update + self._end)

    # --- questions ---------------------------------------------------------------------------------

    def _hear(self, question_id: str, answer: Any) -> None:
        """Hand it on, after what is being written now."""
        asyncio.get_running_loop().call_soon(self._heard, question_id, answer, self)

    def asks(self, question_id: str) -> bool:
        """Whether this client has been asked and has not answered."""
        return question_id in self._asking

    async def notify(self, method: str, params: Any) -> None:
        """Tell this client something that is no part of the session; nothing where it is gone."""
        with contextlib.suppress(LinkLost):
            await self._connection.notify(method, params)


def _error(error: ErrorObject | None) -> v2.Error | None:
    if error is None:
        return None
    try:
        code = v2.ErrorCode(error.code)
    except ValueError:
        code = v2.ErrorCode.INTERNAL_ERROR
    return v2.Error(code=code, message=error.message, data=error.data)


__all__ = ["Voice"]
