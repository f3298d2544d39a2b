"""EventWriter: writes the committed events of a session to one client, in its dialect and in order.

Updates are written as they are, the responses to the client's own prompts where they become true, and
questions where they were asked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from antiphon.bridge.dialects import Writer
from antiphon.connection import Connection
from antiphon.engine import events as e
from antiphon.engine.events import Event, Translated, Updated
from antiphon.engine.questions import QuestionState, read_permission
from antiphon.engine.turn import Effect, Turns
from antiphon.errors import RequestCancelled
from antiphon.live.asked_questions import AskedQuestions
from antiphon.live.feed import SessionFeed
from antiphon.live.pending_answers import PendingAnswers
from antiphon.live.pending_notifications import PendingNotifications
from antiphon.live.presence_feed import PresenceFeed
from antiphon.live.queue_feed import QueueFeed
from antiphon.live.tail import Stretch
from antiphon.live.update_sender import UpdateSender
from antiphon.schema import v2
from antiphon.schema.repair import Malformed


class EventWriter:
    """`write` is called for every commit and client, so it looks up once what does not change."""

    def __init__(
        self,
        feed: SessionFeed,
        connection: Connection,
        writer: Writer,
        sender: UpdateSender,
        *,
        pending: PendingAnswers,
        questions: AskedQuestions,
        presence_feed: PresenceFeed | None,
    ) -> None:
        self.feed = feed
        self._connection = connection
        self._writer = writer
        self._sender = sender
        self._envelope = sender.envelope()
        self._pending = pending
        self._questions = questions
        self._presence_feed = presence_feed
        self.queue_feed: QueueFeed | None = None
        """Set once the client has its replay, if it asked for the queue."""
        self.turns = Turns()
        """As of the events that were written to this client."""
        self.notifications = PendingNotifications()

    def write(self, stretch: Stretch) -> None:
        if self.notifications:
            self.notifications.write(stretch, self._write_runs)
        else:
            self._write_runs(stretch)

    def _write_runs(self, stretch: Stretch) -> None:
        envelope, passes = self._envelope, self._writer.passes
        for run in stretch.runs:
            update = run.update
            if envelope is not None and update is not None and passes(update):
                self._connection.send_framed(run.framed(envelope))
            else:
                self._write_events(run.events)
        if self.queue_feed is not None:
            self.queue_feed.flush(stretch.last)

    def _write_events(self, events: Sequence[Event]) -> None:
        write, sender = self._writer.write, self._sender
        send, start, end = self._connection.send, sender.start, sender.end
        numbered, send_numbered = sender.numbered, sender.send_numbered
        for event in events:
            body = event.body
            if type(body) is Updated:
                try:
                    update = body.update
                except Malformed:
                    continue
                updates = write(update, bytes(body.raw))
                if type(update) is v2.SessionStateUpdate:
                    self._write_state(update, updates, event)
                elif numbered:
                    send_numbered(updates, event.seq)
                else:
                    for raw in updates:
                        send(start + raw + end)
                continue
            if isinstance(body, Translated):
                self._write_translated(body, event.seq)
            elif isinstance(body, e.PromptAccepted):
                self._pending.accepted(body)
            elif isinstance(body, e.PromptRejected):
                self._pending.refused(body.message_id, body.error)
            elif isinstance(body, e.PromptWithdrawn):
                self._pending.refused(body.message_id, RequestCancelled().to_wire(), withdrawn=True)
            elif isinstance(body, e.QuestionOpened):
                self._write_opened(body, event.seq)
            elif isinstance(body, e.QuestionClosed):
                self._write_closed(body, event.seq)
            if self.queue_feed is not None:
                self.queue_feed.apply(body, event.seq)

    def _write_state(self, update: v2.SessionStateUpdate, updates: Sequence[bytes], event: Event) -> None:
        ended = self.turns.apply(update, seq=event.seq, at=event.at) is Effect.ENDED
        self._sender.send_all([*updates, *self._pending.ended(update)] if ended else updates, event.seq)

    def _write_translated(self, body: Translated, seq: int) -> None:
        with contextlib.suppress(Malformed):
            raw, origin, meta = bytes(body.raw), e.present(body.origin), e.present(body.meta)
            if origin is None:
                updates = self._writer.write(body.update, raw)
            else:
                updates = self._writer.write_translated(body.update, raw, origin)
            if meta is not None:
                self._sender.send_with_meta(updates, meta, seq)
            else:
                self._sender.send_numbered(updates, seq)

    def _write_opened(self, body: e.QuestionOpened, seq: int) -> None:
        if self._presence_feed is not None:
            self._presence_feed.question_opened(body, seq)
        question = self.feed.fold.questions.get(body.question_id)
        if question is not None and question.state is QuestionState.OPEN:
            self._questions.ask(question)
        if body.question_id not in self._questions:
            asked = read_permission(body)
            if asked is not None:
                self._sender.send_numbered(self._writer.overheard(asked), seq)

    def _write_closed(self, body: e.QuestionClosed, seq: int) -> None:
        if self._presence_feed is not None:  # a client that stops showing the question learns why
            self._presence_feed.question_closed(body, seq)
        self._questions.retract(body.question_id)
