"""Voice: one client of a live session, speaking its dialect over its connection.

It writes what the journal says, in order: updates as they are, the answers to this client's own prompts at
the place where they become true, and the questions it is asked. What it hears it hands on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from antiphon.bridge.dialects import Writer
from antiphon.connection import Connection
from antiphon.engine.events import (
    Event,
    PromptAccepted,
    PromptRejected,
    PromptWithdrawn,
    QuestionClosed,
    QuestionOpened,
    Translated,
    Updated,
    present,
)
from antiphon.engine.items import Item
from antiphon.engine.json_values import UPDATES, encode
from antiphon.engine.pieces import PIECE
from antiphon.engine.questions import Question, QuestionState, read_permission
from antiphon.engine.snapshot import state_word
from antiphon.engine.turn import Effect, Turns
from antiphon.engine.who import Who
from antiphon.errors import (
    AntiphonError,
    ErrorObject,
    LinkLost,
    RequestCancelled,
    SessionUnknown,
    StoreError,
)
from antiphon.jsonrpc.frames import encode_notification
from antiphon.jsonrpc.peer import Inbound
from antiphon.live.asked_questions import AskedQuestions
from antiphon.live.attachment import Attachment
from antiphon.live.pending_answers import PendingAnswers
from antiphon.live.pending_notifications import PendingNotifications
from antiphon.live.presence_feed import PresenceFeed
from antiphon.live.queue_feed import QueueFeed
from antiphon.live.replay import Replay, recall
from antiphon.live.runs import Envelope
from antiphon.live.session import LiveSession
from antiphon.live.tail import Stretch
from antiphon.live.update_sender import UpdateSender
from antiphon.schema import v2
from antiphon.schema.repair import Malformed
from antiphon.schema.v2.prompt import StopReason
from antiphon.schema.version import META_KEY, Extras

NOT_KEPT = v2.Error(
    code=v2.ErrorCode.INTERNAL_ERROR, message="The session cannot be kept", data={"reason": "store"}
)

Heard = Callable[[str, Any, "AttachmentWriter"], None]
"""Called with a question's id, what this client answered, and its voice: a `RequestPermissionOutcome`, or a
`CreateElicitationResponse`, which is `None` where there was an error instead."""


class AttachmentWriter:
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
        who: Who | None = None,
        client_version: str | None = None,
        answers: Callable[[Question], bool] = lambda _: True,
        counts: Callable[[], bool] = lambda: True,
        credential: str | None = None,
    ) -> None:
        """`answers` says which questions are put to this client, `counts` whether its answers still do.
        `credential` names what its connection was let in with: unlike `who`, no client can choose it."""
        self.writer = writer
        self.modes = modes
        """The modes of elicitations that this client takes."""
        self.who = who
        """Whom the others see in it."""
        self.client_version = client_version
        self.credential = credential
        self._answers = answers
        self.counts = counts
        self._connection = connection
        self._extras = extras or Extras()
        self._sender = UpdateSender(session_id, connection, numbered=self._extras.seq)
        self._send = self._sender.send
        self._envelope: Envelope | None = None
        self._live: LiveSession
        self._heard: Heard
        self._attachment: Attachment | None = None
        self._turns = Turns()
        """As of what was written to this client."""
        self.pending = PendingAnswers(connection, writer, send=self._send)
        self._queue_feed: QueueFeed | None = None
        self._questions = AskedQuestions(connection, writer, modes=modes, send=self._send, heard=self._hear)
        self._presence_feed = (
            PresenceFeed(connection, send=self._send, presence=lambda: self._live.presence.update(self.who))
            if self._extras.presence
            else None
        )
        self._begun = False
        """Whether what was there when it joined is told."""
        self._asks = False
        """Whether questions may be put."""
        self._notifications = PendingNotifications()
        self._following: asyncio.Task[None] | None = None
        self._previewed = 0
        self._after: int | None = None
        self._replay: Replay | None = None
        self.joined_at = 0
        """The last event of what was there when this client joined."""

    # --- joining and leaving -----------------------------------------------------------------------

    def preview(self, updates: list[bytes]) -> bool:
        """Send the beginning of a replay; whether there is room for more. Nobody waits for this client, so
        what is to be sent in pieces is left to the replay."""
        for raw in updates:
            if len(raw) > PIECE:
                return False
            for written in self.writer.write(UPDATES.read(raw), raw):
                self._send(written)
            self._previewed += 1
        return not self._connection.congested

    def pin(
        self,
        live: LiveSession,
        heard: Heard,
        *,
        history: bool = False,
        items: Sequence[Item] = (),
        after: int | None = None,
        begins: bool = False,
    ) -> None:
        """Follow the session from here, this very step: what is to be replayed is what the fold has now,
        beside what was shown before, or some `items` of it. With `after`, the events since that one are sent
        instead; `begins`: they are all news to the client, which has begun the session with that one."""
        self._live, self._heard, self._asks = live, heard, begins
        self._after = after
        if after is None:
            self._turns.restore(live.fold.turns.part())
        if history and not self._previewed:
            self._replay = Replay.whole(live)
        else:
            self._replay = Replay.take(live.fold, live.fold.items[self._previewed :] if history else items)
        self.joined_at = after if begins and after is not None else self._replay.seq
        self._envelope = self._sender.envelope()
        self._attachment = Attachment(live, self._write, self._connection, cursor=after)

    @property
    def pinned(self) -> bool:
        return self._attachment is not None

    def follows(self, live: LiveSession) -> bool:
        """Whether it follows this very session: one of the same id may have been opened since."""
        return self._live is live

    def joined(self, introduction: dict[str, Any]) -> dict[str, Any] | None:
        """What stands beside the answer by which a client joins: where that was, and what there is to say of
        the session, each for those that asked for such."""
        said: dict[str, Any] = {"seq": self.joined_at} if self._extras.seq else {}
        if self.writer.names_ends:
            said["state"] = state_word(self._live.fold)  # whether the end of a turn is still to come
        if self._extras.presence:
            said |= introduction
        return {META_KEY: said} if said else None

    def start(self, *, state: bool = False, then: Callable[[], None] = lambda: None) -> None:
        """Begin to send: the replay, once everything in it is in the store; then the state, if that is asked
        for; `then` is called before anything newer is sent."""
        attachment = self._attachment
        assert attachment is not None
        begins = self._asks  # it has begun the session, so it was told nothing before
        self._live.presence.join(self)

        async def begin() -> None:
            replay, self._replay = self._replay, None  # it may be large
            assert replay is not None
            written = replay.written(self.writer)
            while self._send_next(written):
                await self._connection.drain()
            if self._after and self.writer.recalls and not begins:
                await recall(self._live, self.writer, self._turns, upto=self._after)
            await attachment.catch_up(replay.seq)
            for raw in self.writer.flush():
                self._send(raw)
            if state:
                for raw in replay.written_state(self.writer):
                    self._send(raw, seq=replay.seq)
            if self._after is None and self.pending:
                self.pending.answer_missed(replay.prompts, self._turns.current)
            then()
            if self._extras.queue_updates:
                self._queue_feed = QueueFeed(replay.queue, replay.prompts, replay.seq, send=self._send)
            if self._presence_feed is not None:
                self._presence_feed.begin(replay.questions, replay.seq)
            self._begun = self._asks = True
            self.ask(replay.questions)
            self._notifications.flush(attachment.cursor)

        self._following = asyncio.get_running_loop().create_task(self._follow(attachment, begin))

    def _send_next(self, written: Iterator[Sequence[bytes]]) -> bool:
        """Send the next updates of a replay, if there are any. They are large, perhaps: nobody holds them
        while the link has no room."""
        updates = next(written, None)
        for raw in updates or ():
            self._send(raw)
        return updates is not None

    async def _follow(self, attachment: Attachment, begin: Callable[[], Awaitable[None]]) -> None:
        try:
            await attachment.follow(begin=begin)
        except (StoreError, SessionUnknown):
            self._fail()

    def _fail(self) -> None:
        """The session cannot go on here: whoever waits for an answer gets one, and its turn ends. What was
        not kept is not shown; who opens the session again finds what was."""
        if self._turns.current is not None:
            ended = v2.SessionStateUpdate(state=v2.State.IDLE, stop_reason=StopReason.ERROR, error=NOT_KEPT)
            for sent in (*self.writer.write(ended, encode(ended)), *self.pending.ended(ended)):
                if isinstance(sent, bytes):
                    self._send(sent)
                else:
                    sent()
        self.pending.fail(ErrorObject(int(NOT_KEPT.code), NOT_KEPT.message, NOT_KEPT.data))

    async def take_over(self, other: AttachmentWriter, *, after: int | None = None) -> None:
        """A client that joins again has one attachment: what it is owed moves here, and it never left. With
        `after` it reads on from that event, as the same client."""
        prompts = other._live.fold.prompts

        def accepted_again(message_id: str) -> bool:
            entry = prompts.get(message_id)
            return after is not None and entry is not None and entry.settled > after

        presence = other._live.presence
        presence.move(other, self)
        try:
            await other.stop()
        except BaseException:
            presence.leave(self)
            raise
        self.pending.move_from(other.pending, accepted_again=accepted_again)
        if after is not None:
            self.writer.adopt(other.writer)

    async def stop(self) -> None:
        """Leave the session; it goes on without this client."""
        self._live.presence.leave(self)
        self._questions.withdraw()
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    def part(self, *, closed: bool = False) -> None:
        """Answer the prompts of this client, which leaves. Those go on without it, unless the session is
        `closed`."""
        if closed:
            self.pending.cancel()
        self.pending.fail(ErrorObject(AntiphonError.code, "The session was left", {"reason": "detached"}))

    async def caught_up(self) -> None:
        """Wait until everything emitted so far has been written to this client."""
        await self.reached(self._live.fold.last_seq)

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

    # --- beside the journal ------------------------------------------------------------------------

    def show_presence(self) -> None:
        """Somebody came or went."""
        if self._presence_feed is not None and self._begun:
            self._presence_feed.show_presence()

    def say(self, update: bytes) -> None:
        """Send one update to this client alone."""
        self._send(update)

    async def notify(self, method: str, params: Any) -> None:
        """Tell this client something that is no part of the session; nothing where it is gone."""
        with contextlib.suppress(LinkLost):
            await self._connection.notify(method, params)

    def notify_at(self, seq: int, method: str, params: Any) -> None:
        """Send a notification behind the event `seq`, and before every later one."""
        frame = encode_notification(method, b"{}" if params is None else encode(params))
        self.send_at(seq, len(frame), lambda: self._connection.send(frame))

    def send_at(self, seq: int, size: int, send: Callable[[], None]) -> None:
        """Call `send` once the event `seq` is written to this client, and before any later one is. Nobody
        waits for this client: where it is behind, a bounded number of bytes waits for it."""
        assert self._attachment is not None
        reached = self._begun and self._attachment.cursor >= seq and not self._notifications
        if reached and not self._connection.congested:
            send()
            return
        if reached:
            self._connection.start_soon(self._send_notifications())
        self._notifications.put(seq, size, send)

    async def _send_notifications(self) -> None:
        with contextlib.suppress(LinkLost):
            await self._connection.drain()
            if self._attachment is not None:
                self._notifications.flush(self._attachment.cursor)

    # --- its prompts -------------------------------------------------------------------------------

    def prompted(self, message_id: str, inbound: Inbound) -> asyncio.Future[None]:
        """This prompt is this client's: it is answered when and where the journal says so."""
        entry = self._live.fold.prompts.get(message_id)
        assert self._attachment is not None
        taken = entry is not None and 0 < entry.settled <= self._attachment.cursor
        return self.pending.add(message_id, inbound, taken=taken)

    # --- writing -----------------------------------------------------------------------------------

    def _write(self, stretch: Stretch) -> None:
        if self._notifications:
            self._notifications.write(stretch, self._write_runs)
        else:
            self._write_runs(stretch)

    def _write_runs(self, stretch: Stretch) -> None:
        envelope, passes = self._envelope, self.writer.passes
        for run in stretch.runs:
            update = run.update
            if envelope is not None and update is not None and passes(update):
                self._connection.send_framed(run.framed(envelope))
            else:
                self._write_events(run.events)
        if self._queue_feed is not None:
            self._queue_feed.flush(stretch.last)

    def _write_events(self, events: Sequence[Event]) -> None:
        # Run for every chunk where it is not framed for many: what does not change is looked up once.
        write, sending = self.writer.write, self._sender
        send, start, end = self._connection.send, sending.start, sending.end
        numbered, send_numbered = sending.numbered, sending.send_numbered
        for event in events:
            body = event.body
            if type(body) is Updated:
                try:
                    update = body.update
                except Malformed:
                    continue
                updates = write(update, bytes(body.raw))
                if type(update) is v2.SessionStateUpdate:
                    self._turned(update, updates, event)
                elif numbered:
                    send_numbered(updates, event.seq)
                else:
                    for raw in updates:
                        send(start + raw + end)
                continue
            if isinstance(body, Translated):
                self._write_lifted(body, event.seq)
            elif isinstance(body, PromptAccepted):
                self.pending.accepted(body)
            elif isinstance(body, PromptRejected):
                self.pending.refused(body.message_id, body.error)
            elif isinstance(body, PromptWithdrawn):
                self.pending.refused(body.message_id, RequestCancelled().to_wire(), withdrawn=True)
            elif isinstance(body, QuestionOpened):
                self._opened(body, event.seq)
            elif isinstance(body, QuestionClosed):
                self._closed(body, event.seq)
            if self._queue_feed is not None:
                self._queue_feed.apply(body, event.seq)

    def _turned(self, update: v2.SessionStateUpdate, updates: Sequence[bytes], event: Event) -> None:
        ended = self._turns.apply(update, seq=event.seq, at=event.at) is Effect.ENDED
        self._sender.send_all([*updates, *self.pending.ended(update)] if ended else updates, event.seq)

    def _write_lifted(self, body: Translated, seq: int) -> None:
        with contextlib.suppress(Malformed):
            raw, origin, meta = bytes(body.raw), present(body.origin), present(body.meta)
            if origin is None:
                updates = self.writer.write(body.update, raw)
            else:
                updates = self.writer.write_lifted(body.update, raw, origin)
            if meta is not None:
                self._sender.send_accompanied(updates, meta, seq)
            elif self._extras.seq:
                self._sender.send_numbered(updates, seq)
            else:
                for update in updates:
                    self._send(update)

    # --- questions ---------------------------------------------------------------------------------

    def ask(self, questions: Sequence[Question]) -> None:
        """Put these to this client, those of them that it is to be asked and has not been asked yet."""
        for question in questions:
            if self._asks and self._answers(question):
                self._questions.ask(question)

    def asks(self, question_id: str) -> bool:
        """Whether this client has been asked and has not answered."""
        return question_id in self._questions

    def _opened(self, body: QuestionOpened, seq: int) -> None:
        if self._presence_feed is not None:
            self._presence_feed.opened(body, seq)
        question = self._live.fold.questions.get(body.question_id)
        if self._asks and question is not None and question.state is QuestionState.OPEN:
            self.ask([question])
        if not self.asks(body.question_id):
            asked = read_permission(body)
            if asked is not None:
                self._sender.send_numbered(self.writer.overheard(asked), seq)

    def _closed(self, body: QuestionClosed, seq: int) -> None:
        if self._presence_feed is not None:  # who has to put it away is told why
            self._presence_feed.closed(body, seq)
        self._questions.withdraw(body.question_id)

    def _hear(self, question_id: str, answer: Any) -> None:
        """Hand it on, after what is being written now."""
        asyncio.get_running_loop().call_soon(self._heard, question_id, answer, self)
