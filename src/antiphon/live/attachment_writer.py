"""AttachmentWriter: one client that is attached to a live session, from joining to leaving."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from antiphon.bridge.dialects import Writer
from antiphon.connection import Connection
from antiphon.engine.items import Item
from antiphon.engine.json_values import UPDATES, encode
from antiphon.engine.pieces import PIECE
from antiphon.engine.questions import Question
from antiphon.engine.snapshot import state_word
from antiphon.errors import AntiphonError, ErrorObject, LinkLost, SessionUnknown, StoreError
from antiphon.jsonrpc.frames import encode_notification
from antiphon.jsonrpc.peer import Inbound
from antiphon.live.asked_questions import AskedQuestions
from antiphon.live.attachment import Attachment
from antiphon.live.event_writer import EventWriter
from antiphon.live.feed import SessionFeed
from antiphon.live.pending_answers import PendingAnswers
from antiphon.live.presence_feed import PresenceFeed
from antiphon.live.queue_feed import QueueFeed
from antiphon.live.replay import Recall, Replay
from antiphon.live.update_sender import UpdateSender
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.v2.prompt import StopReason
from antiphon.schema.version import META_KEY, Extras

logger = logging.getLogger("antiphon.live")

NOT_KEPT = v2.Error(
    code=v2.ErrorCode.INTERNAL_ERROR, message="The session cannot be kept", data={"reason": "store"}
)
UNSENT = v2.Error(
    code=v2.ErrorCode.INTERNAL_ERROR,
    message="An update could not be sent to this client, so it was detached",
    data={"reason": "detached"},
)
DETACHED = v2.Notice(
    severity=v2.NoticeSeverity.ERROR,
    title="This client was detached from the session",
    description="An update could not be sent to it. Open the session again.",
)

MOVE_WAIT = 30.0
"""Seconds that an attachment waits for another feed after the store has failed."""
AGAIN = 1.0
"""Seconds after which it reads again from a feed that has not failed as a whole."""

OnAnswer = Callable[[str, Any, "AttachmentWriter"], None]
"""Called with a question's id, the answer of this client, and its attachment. The answer is a
`RequestPermissionOutcome`, or a `CreateElicitationResponse`, which is `None` after an error."""


class ClientProfile(Struct, frozen=True):
    """What an attachment has to know of its client."""

    who: Who | None
    """How the other clients see it."""
    version: str | None
    modes: frozenset[str]
    """The modes of elicitations that it takes."""
    answers: Callable[[Question], bool]
    """Says which questions it is asked."""
    counts: Callable[[], bool]
    """Says whether its answers still count."""
    credential: str | None
    """What its connection authenticated with; unlike `who`, no client can choose it."""


class AttachmentWriter:
    """Made before the session is open, so that `preview` can send it while it is read. `pin` binds it to a
    feed of the session, `start` begins to send, `move_to` replaces the feed."""

    def __init__(
        self,
        session_id: str,
        connection: Connection,
        writer: Writer,
        client: ClientProfile,
        *,
        extras: Extras,
        on_failed: Callable[[], None] = lambda: None,
    ) -> None:
        """Make an attachment that sends nothing yet. It calls `on_failed` when it cannot write an update for
        its client: then it sends nothing more."""
        self.writer = writer
        self.who = client.who
        self.client_version = client.version
        self.modes = client.modes
        self.counts = client.counts
        self.credential = client.credential
        self.joined_at = 0
        """The last event of the replay."""
        self._connection = connection
        self._on_failed = on_failed
        self._extras = extras
        self._sender = UpdateSender(session_id, connection, numbered=self._extras.seq)
        self._send = self._sender.send
        self.pending = PendingAnswers(connection, writer, send=self._send)
        self._questions = AskedQuestions(
            connection,
            writer,
            modes=client.modes,
            answers=client.answers,
            send=self._send,
            on_answer=self._answered,
        )
        self._previewed = 0
        self._feed: SessionFeed
        self._on_answer: OnAnswer
        self._events: EventWriter
        self._presence_feed: PresenceFeed | None = None
        self._attachment: Attachment | None = None
        self._history = False
        self._after: int | None = None
        self._begins = False
        self._replay: Replay | None = None
        """Set until it was sent; `None` before that if it has to be taken again."""
        self._unsent: Iterator[Sequence[bytes]] | None = None
        """The rest of the replay that is being sent."""
        self._recall: Recall | None = None
        self._begun = False
        """Whether the replay was sent."""
        self._moves = False
        self._moved = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    # --- joining and leaving -----------------------------------------------------------------------

    def preview(self, updates: list[bytes]) -> bool:
        """Send the beginning of a replay; return whether there is room for more. Nothing waits for this
        client, so an update that is to be sent in pieces is left to the replay."""
        for raw in updates:
            if len(raw) > PIECE:
                return False
            for written in self.writer.write(UPDATES.read(raw), raw):
                self._send(written)
            self._previewed += 1
        return not self._connection.congested

    def pin(
        self,
        feed: SessionFeed,
        on_answer: OnAnswer,
        *,
        history: bool = False,
        items: Sequence[Item] = (),
        after: int | None = None,
        begins: bool = False,
        moves: bool = False,
    ) -> None:
        """Follow a session from its present state on.

        history: replay everything that was not previewed
        items: replay these items only
        after: send the events after this one, instead of a replay
        begins: the client began the session with the event `after`, so it knows nothing of it yet
        moves: when the store of the feed fails, wait for `move_to`
        """
        self._feed, self._on_answer, self._questions.open = feed, on_answer, begins
        self._history, self._after, self._begins, self._moves = history, after, begins, moves
        if self._extras.presence:
            self._presence_feed = PresenceFeed(
                self._connection, send=self._send, presence=self._presence_update
            )
        self._events = EventWriter(
            feed,
            self._connection,
            self.writer,
            self._sender,
            pending=self.pending,
            questions=self._questions,
            presence_feed=self._presence_feed,
        )
        if after and self.writer.recalls and not begins:
            self._recall = Recall(self.writer, self._events.turns, upto=after)
        self._attachment = Attachment(feed, self._events.write, self._connection, cursor=after)
        self._take_replay(self._attachment, items)

    def _take_replay(self, attachment: Attachment, items: Sequence[Item] = ()) -> Replay:
        feed, fold = attachment.feed, attachment.feed.fold
        if self._history and not self._previewed:
            self._replay = Replay.whole(feed)
        else:
            self._replay = Replay.take(fold, fold.items[self._previewed :] if self._history else items)
        if self._after is None:
            self._events.turns.restore(fold.turns.part())
            attachment.cursor = self._replay.seq
        self.joined_at = self._after if self._begins and self._after is not None else self._replay.seq
        return self._replay

    def move_to(self, feed: SessionFeed, on_answer: OnAnswer) -> None:
        """Go on from the present cursor with another feed of the same session. The client is sent nothing
        twice, and nothing is left out. Its answers go to `on_answer` from now on.

        If all attachments of a session are moved in one step, no client is shown that others left and joined.
        """
        assert self._attachment is not None
        before, self._feed, self._on_answer = self._feed, feed, on_answer
        before.presence.hand_over(self, feed.presence)
        self._moved.set()
        self._attachment.interrupt()

    @property
    def pinned(self) -> bool:
        return self._attachment is not None

    def follows(self, feed: SessionFeed) -> bool:
        """Whether it follows this feed: another one of the same session may have been opened since."""
        return self._feed is feed

    def joined(self, introduction: dict[str, Any]) -> dict[str, Any] | None:
        """Return the `_meta` of the response by which a client joins: its cursor, the state and the
        introduction of the session, each if the client asked for it."""
        said: dict[str, Any] = {"seq": self.joined_at} if self._extras.seq else {}
        if self.writer.names_ends:
            said["state"] = state_word(self._feed.fold)  # whether the end of a turn is still to come
        if self._extras.presence:
            said |= introduction
        return {META_KEY: said} if said else None

    def start(self, *, state: bool = False, then: Callable[[], None] = lambda: None) -> None:
        """Send the replay once it is in the store, then follow the live journal.

        state: send the state after the replay
        then: called after the replay and before anything newer is sent
        """
        attachment = self._attachment
        assert attachment is not None
        self._feed.presence.join(self)
        begin = partial(self._begin, attachment, state=state, then=then)
        self._following = asyncio.get_running_loop().create_task(self._follow(attachment, begin))

    async def _begin(self, attachment: Attachment, *, state: bool, then: Callable[[], None]) -> None:
        """Send the replay. If this is interrupted, it is called again and goes on from there."""
        replay = self._replay
        if replay is None:
            replay = self._take_replay(attachment)
            await attachment.feed.durable(replay.seq)
        self._unsent = self._unsent or replay.written(self.writer)
        while self._send_next(self._unsent):
            await self._connection.drain()
        if self._recall is not None:
            await self._recall.run(attachment.feed)
        await attachment.catch_up(replay.seq)
        for raw in self.writer.flush():
            self._send(raw)
        if state:
            for raw in replay.written_state(self.writer):
                self._send(raw, seq=replay.seq)
        if self._after is None and self.pending:
            self.pending.answer_missed(replay.prompts, self._events.turns.current)
        then()
        if self._extras.queue_updates:
            again = self._after is not None and not self._begins
            self._events.queue_feed = QueueFeed(
                replay.queue, replay.prompts, replay.seq, send=self._send, again=again
            )
        if self._presence_feed is not None:
            self._presence_feed.begin(replay.questions, replay.seq)
        self._begun = self._questions.open = True
        self.ask(replay.questions)
        self._events.notifications.flush(attachment.cursor)
        self._replay = self._unsent = self._recall = None  # they may be large

    def _send_next(self, written: Iterator[Sequence[bytes]]) -> bool:
        """Send the next updates of a replay, if there are any. They may be large, so no variable holds them
        while the connection has no room."""
        updates = next(written, None)
        for raw in updates or ():
            self._send(raw)
        return updates is not None

    async def _follow(self, attachment: Attachment, begin: Callable[[], Awaitable[None]]) -> None:
        try:
            await self._follow_feeds(attachment, begin)
        except (StoreError, SessionUnknown):
            self._fail(NOT_KEPT)
        except LinkLost:
            raise
        except Exception:
            # What cannot be written for this client concerns it alone.
            logger.exception("attachment failed: session %s", self._feed.session_id)
            try:
                self._fail(UNSENT, DETACHED)
            except Exception:  # it may be its writer that fails
                logger.exception("detached client was not notified: session %s", self._feed.session_id)
            finally:
                self._on_failed()

    async def _follow_feeds(self, attachment: Attachment, begin: Callable[[], Awaitable[None]]) -> None:
        """Follow the feed, and then each one that the attachment is moved to."""
        loop = asyncio.get_running_loop()
        failed_at, until = -1, 0.0
        while True:
            self._moved.clear()
            self._switch(attachment)
            try:
                await attachment.follow(begin=None if self._begun else begin)
            except StoreError:
                if attachment.cursor != failed_at:
                    failed_at, until = attachment.cursor, loop.time() + MOVE_WAIT
                if not self._moves or not await self._can_go_on(attachment, until - loop.time()):
                    raise

    def _switch(self, attachment: Attachment) -> None:
        """Go on with the feed that the attachment was moved to, while nothing is being read."""
        feed, before = self._feed, attachment.feed
        if feed is before:
            return
        if self._replay is not None and self._replay.seq > before.journal.last:
            # It contains events that may never be committed, so nothing of it was sent.
            self._replay = self._unsent = None
            if self._after is None:
                attachment.cursor = 0
        attachment.feed = self._events.feed = feed

    async def _can_go_on(self, attachment: Attachment, seconds: float) -> bool:
        """Wait until it is worth another try to follow the session after the store has failed."""
        failed = attachment.feed.failed
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds if failed else min(seconds, AGAIN)):
                await self._moved.wait()
        return self._moved.is_set() or (seconds > 0 and not failed)

    def _fail(self, error: v2.Error, *notices: v2.Notice) -> None:
        """Send notices, end the open turn and answer every prompt: the client gets nothing more. One that
        opens the session again gets every event that was committed."""
        try:
            for notice in notices:
                for raw in self.writer.write(notice, encode(notice)):
                    self._send(raw)
            if self._events.turns.current is not None:
                ended = v2.SessionStateUpdate(state=v2.State.IDLE, stop_reason=StopReason.ERROR, error=error)
                for sent in (*self.writer.write(ended, encode(ended)), *self.pending.ended(ended)):
                    if isinstance(sent, bytes):
                        self._send(sent)
                    else:
                        sent()
        finally:
            self.pending.fail(ErrorObject(int(error.code), error.message, error.data))

    async def take_over(self, other: AttachmentWriter, *, after: int | None = None) -> None:
        """Replace an attachment of the same client, whose pending answers move here. With `after`, go on
        from that event as the same client."""
        prompts = other._feed.fold.prompts

        def accepted_again(message_id: str) -> bool:
            entry = prompts.get(message_id)
            return after is not None and entry is not None and entry.settled > after

        presence = other._feed.presence
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
        """Leave the session, which is not closed by that."""
        self._feed.presence.leave(self)
        self._questions.retract_all()
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    def part(self, *, closed: bool = False) -> None:
        """Answer the prompts of this client, which leaves. The prompts stay in the session, unless that is
        `closed`."""
        if closed:
            self.pending.cancel()
        self.pending.fail(ErrorObject(AntiphonError.code, "The session was left", {"reason": "detached"}))

    @property
    def cursor(self) -> int:
        """The last event that was written to this client."""
        assert self._attachment is not None
        return self._attachment.cursor

    async def caught_up(self) -> None:
        """Wait until everything emitted so far has been written to this client."""
        await self.reached(self._feed.fold.last_seq)

    async def reached(self, seq: int) -> None:
        """Wait until everything up to an event has been written to this client, or it has left."""
        assert self._attachment is not None
        assert self._following is not None
        reached = asyncio.ensure_future(self._attachment.reached(seq))
        try:
            await asyncio.wait((reached, self._following), return_when=asyncio.FIRST_COMPLETED)
        finally:
            reached.cancel()

    async def ended_or(self, event: asyncio.Future[None]) -> None:
        """Wait for an event that `start` brings about, or until the client has left."""
        assert self._following is not None
        await asyncio.wait((event, self._following), return_when=asyncio.FIRST_COMPLETED)

    # --- outside the journal -----------------------------------------------------------------------

    def _presence_update(self) -> bytes:
        return self._feed.presence.update(self.who)

    def show_presence(self) -> None:
        """Send the list of clients, which has changed."""
        if self._presence_feed is not None and self._begun:
            self._presence_feed.show_presence()

    def send_update(self, update: bytes) -> None:
        """Send one update to this client alone."""
        self._send(update)

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification that is not part of the session, unless the client is gone."""
        with contextlib.suppress(LinkLost):
            await self._connection.notify(method, params)

    def notify_at(self, seq: int, method: str, params: Any) -> None:
        """Send a notification after the event `seq`, and before every later one."""
        frame = encode_notification(method, b"{}" if params is None else encode(params))
        self.send_at(seq, len(frame), lambda: self._connection.send(frame))

    def send_at(self, seq: int, size: int, send: Callable[[], None]) -> None:
        """Call `send` once the event `seq` is written to this client, and before any later one is. For a
        client that is behind, a bounded number of bytes waits."""
        assert self._attachment is not None
        waiting = self._events.notifications
        reached = self._begun and self._attachment.cursor >= seq and not waiting
        if reached and not self._connection.congested:
            send()
            return
        if reached:
            self._connection.start_soon(self._flush_notifications())
        waiting.put(seq, size, send)

    async def _flush_notifications(self) -> None:
        with contextlib.suppress(LinkLost):
            await self._connection.drain()
            if self._attachment is not None:
                self._events.notifications.flush(self._attachment.cursor)

    # --- prompts and questions ---------------------------------------------------------------------

    def prompted(self, message_id: str, inbound: Inbound) -> asyncio.Future[None]:
        """Answer a prompt of this client where the journal says so; the future is done then."""
        entry = self._feed.fold.prompts.get(message_id)
        assert self._attachment is not None
        taken = entry is not None and 0 < entry.settled <= self._attachment.cursor
        return self.pending.add(message_id, inbound, taken=taken)

    def ask(self, questions: Sequence[Question]) -> None:
        """Ask this client those of the questions that it is to answer and was not asked yet."""
        for question in questions:
            self._questions.ask(question)

    def asks(self, question_id: str) -> bool:
        """Whether this client was asked and has not answered."""
        return question_id in self._questions

    def _answered(self, question_id: str, answer: Any) -> None:
        """Hand an answer on, after what is being written now."""
        asyncio.get_running_loop().call_soon(lambda: self._on_answer(question_id, answer, self))
