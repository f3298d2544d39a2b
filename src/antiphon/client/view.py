"""View: what a session has told so far, folded, and who hears of it. Nothing here waits: it runs in the lane,
so that whoever wakes by it finds everything applied that came before."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol
from weakref import WeakSet

from msgspec import Raw

from antiphon.bridge.repeats import Repeat
from antiphon.client.others import PRESENCE, QUESTION, Others
from antiphon.client.repeating import told_before
from antiphon.client.spans import Spans
from antiphon.client.spoken import STREAMED
from antiphon.client.turn import ClientTurn, SessionEvent, TurnEnd
from antiphon.client.watching import Feed
from antiphon.engine.annotations import ANNOTATION_UPDATES
from antiphon.engine.events import AnyBody, Event, QuestionClosed, QuestionOpened, Updated
from antiphon.engine.folding import is_state
from antiphon.engine.questions import Question
from antiphon.engine.session import Session
from antiphon.engine.transcript import TYPE_OF, MessageChunk
from antiphon.engine.turn import Effect
from antiphon.errors import LinkLost
from antiphon.schema import v2
from antiphon.schema.updates import TextChunk
from antiphon.schema.wire import Unknown

QUEUE = "_antiphon_queue"
BESIDE = frozenset([QUEUE, PRESENCE, QUESTION]) | ANNOTATION_UPDATES
"""Updates of our own, which belong to no turn."""
_KEPT_BY_THE_AGENT = Raw(b"")
NOTICES = 100
_USER = (v2.UserMessage, v2.UserMessageChunk)
PASSED_ON = frozenset([*TYPE_OF, v2.TerminalOutputChunk, v2.CompactionSummaryChunk, v2.SessionMessageChunk])
"""What says nothing of turns: where there is a follower, it is not kept twice."""
WORK = PASSED_ON.union([v2.SessionToolCallUpdate]).difference(_USER)
"""What an agent sends while it works on a prompt."""

BEGUN = v2.SessionStateUpdate(state=v2.State.RUNNING)


class Follows(Protocol):
    """Hears of everything in the lane, at once: what comes behind it has not happened yet."""

    def opened(self) -> None:
        """What the answer that opened the session says has happened; what the agent sent beside it comes
        now."""

    def taken(self, turn: ClientTurn) -> None:
        """The agent has taken a prompt, which has its message id."""

    def happened(self, event: SessionEvent) -> None: ...

    def streamed(self, chunk: MessageChunk) -> None:
        """The same for most of what comes, without the rest of an event."""

    def streamed_text(self, chunks: Sequence[TextChunk]) -> None:
        """The same for plain texts that came together; each has its message's id."""

    def left(self, reason: LinkLost | str) -> None:
        """Nothing of the session comes any more."""

    def pace(self) -> Awaitable[None] | None:
        """What the agent has to wait for before more of it is read."""


class View:
    def __init__(
        self, make: Callable[[], ClientTurn], *, serial: bool, follower: Follows | None = None
    ) -> None:
        """With a `follower`, everything is kept there: nothing is here but what tells turns apart."""
        self.fold = Session()
        self.follower = follower
        self._relays = follower is not None
        self._new_spans = partial(
            Spans[ClientTurn, SessionEvent], make, serial=serial, keeps=follower is None
        )
        self.spans = self._new_spans()
        self.again = False
        """Whether what comes was told before."""
        self.queue: list[dict[str, Any]] = []
        self.others = Others()
        self._opener: str | None = None
        """The last user message since the session rests: it may be what the next turn is about."""
        self.heard_at = time.monotonic()
        """When the agent last said something, or it was our turn to."""
        self.over: TurnEnd | None = None
        """How everything ended that was open when the session was left."""
        self.on_user_message: Callable[[str], None] = lambda _: None
        """Called with the id of each user message before it is placed."""
        self.on_ending: Callable[[], None] = lambda: None
        """Called when a turn is about to end."""
        self.on_turn: Callable[[], None] = lambda: None
        """Called when it may be another turn that is worked on."""
        self.on_bare_end: Callable[[TurnEnd], None] = lambda _: None
        """Called when the agent says that a turn has ended, nothing of which was heard."""
        self._spoke = False
        """Whether the agent has said something since it took the last prompt."""
        self._says_running = False
        """Whether the agent has ever reported that a turn began. Then it does so for every turn."""
        self.unclaimed: TurnEnd | None = None
        """The last end of a turn that came while a prompt of ours was not answered: it may be the
        prompt's."""
        self.original: bytes | None = None
        """What a v1 agent wrote of what is told just now, where that is kept (`originals`)."""
        self._watchers: WeakSet[Feed[SessionEvent]] = WeakSet()
        self.notices: deque[SessionEvent] = deque(maxlen=NOTICES)
        """The last notices that came; nothing else keeps them."""

    def events(self) -> AsyncIterator[SessionEvent]:
        """Everything from this call on; a watcher that is dropped is forgotten."""
        feed: Feed[SessionEvent] = Feed()
        if self.over is not None:
            feed.end()
        self._watchers.add(feed)
        return feed.watch()

    # --- what comes --------------------------------------------------------------------------------

    def hear(self) -> None:
        """The silence begins anew."""
        self.heard_at = time.monotonic()

    def tell(self, update: v2.SessionUpdate, *, cut: TurnEnd | None = None) -> None:
        """Fold an update, and let those hear of it whom it concerns. `cut`: what a turn ends with by it, if
        it is not the agent who says so."""
        self._spoke = self._spoke or type(update) in WORK
        if type(update) in STREAMED:
            if self.follower is not None and self.original is None:
                self.follower.streamed(update)  # type: ignore[arg-type]  # it is one
                return
            self._happened(self._apply(Updated.of(update, raw=_KEPT_BY_THE_AGENT)), update=update)
            return
        shown = update.message_id if isinstance(update, _USER) else None
        if shown is not None:
            self.on_user_message(shown)
        before = self.fold.turn
        if before is None and self.follower is None and _tells_end(update) and self.spans.due:
            if self._spoke or (self.spans.shown and not self._says_running):
                self.tell(BEGUN)  # an agent that only says when it is done
                before = self.fold.turn
            else:  # PROMPT-V2-20: it may be said again of a turn that is over
                self.on_bare_end(TurnEnd.of(update))
        if self.spans.unanswered and _tells_end(update):
            self.unclaimed = TurnEnd.of(update)
        if before is not None and is_state(update) and self.fold.turns.effect_of(update) is Effect.ENDED:
            self.on_ending()
        seq = self._apply(Updated.of(update, raw=_KEPT_BY_THE_AGENT))
        if isinstance(update, v2.Notice) and not self._relays:
            self.notices.append(SessionEvent(seq=seq, turn=None, update=update))
        after = self.fold.turn
        if before is None and after is not None:
            self._says_running = self._says_running or update is not BEGUN
            self.spans.opened()
            if self.spans.open is not None:
                self.spans.open.own.opener, self._opener = self._opener, None
        elif shown is not None and after is None:
            self._opener = shown
        if self._is_beside(update):
            said = self.others.read(update) if type(update) is Unknown else {}
            self._publish(SessionEvent(seq=seq, turn=None, update=update, original=self.original, **said))
            return
        event = SessionEvent(seq=seq, turn=self.spans.place(shown), update=update, original=self.original)
        self.spans.add(event, shown)
        self._publish(event)
        if before is not None and after is None:
            end = cut or TurnEnd.of(update)
            for over in self.spans.ended(end):
                over.finish(end)
        elif before is not after or shown is not None:
            self.on_turn()

    def happened(self, body: QuestionOpened | QuestionClosed, *, behind: bool) -> None:
        """A question was asked or has ended; `behind` if it is about background work."""
        seq = self._apply(body)
        question = self.fold.questions.get(body.question_id)
        if behind:
            self._publish(SessionEvent(seq=seq, turn=None, question=question))
            return
        self._happened(seq, question=question)

    def _happened(
        self, seq: int, *, update: v2.SessionUpdate | None = None, question: Question | None = None
    ) -> None:
        """To what is open, whosever it is."""
        event = SessionEvent(
            seq=seq, turn=self.spans.turn, update=update, question=question, original=self.original
        )
        self.spans.add(event, None)
        self._publish(event)

    def _is_beside(self, update: v2.SessionUpdate) -> bool:
        """Whether it belongs to no turn, whatever is open."""
        if type(update) is Unknown and update.get("sessionUpdate") in BESIDE:
            if update["sessionUpdate"] == QUEUE:
                entries = update.get("entries")
                self.queue = entries if isinstance(entries, list) else []
            return True
        return self.is_behind(getattr(update, "tool_call_id", None), getattr(update, "terminal_id", None))

    def is_behind(self, tool_call_id: str | None, terminal_id: str | None) -> bool:
        """Whether something is about background work, which belongs to no turn (PROMPT-V2-44, -45)."""
        if (tool_call_id is None and terminal_id is None) or not self.fold.background:
            return False
        for work in self.fold.background:
            if isinstance(work, v2.BackgroundToolCall) and work.tool_call_id == tool_call_id:
                return True
            if isinstance(work, v2.BackgroundTerminal) and work.terminal_id == terminal_id:
                return True
        return False

    def runs_behind(self, tool_call_id: str | None) -> bool:
        """Whether a tool call shows a terminal that goes on in the background: it is not over with the turn,
        though what it says belongs there (PROMPT-V2-39)."""
        call = None if tool_call_id is None else self.fold.tools.get(tool_call_id)
        if call is None or not self.fold.background:
            return False
        shown = [part.terminal_id for part in call.content if isinstance(part, v2.Terminal)]
        return any(self.is_behind(None, terminal_id) for terminal_id in shown)

    def _apply(self, body: AnyBody) -> int:
        if self._relays and type(body) is Updated and type(body.update) in PASSED_ON:
            return self.fold.last_seq
        seq = self.fold.last_seq + 1
        self.fold.apply(Event(seq, time.time_ns() // 1_000_000, body))
        return seq

    def _publish(self, event: SessionEvent) -> None:
        if self.follower is not None:
            self.follower.happened(event)
        if not self._watchers or self.again:
            return
        for feed in self._watchers:
            feed.add(event)

    # --- turns -------------------------------------------------------------------------------------

    def accept(self, turn: ClientTurn, *, joins: bool = False, repeat: Repeat | None = None) -> None:
        """The agent has taken a prompt; with `repeat`, it had before."""
        if self.follower is not None:
            self.follower.taken(turn)
        end, self._spoke = self.over, False
        if end is None and repeat is None:
            end = self.spans.accepted(turn, joins=joins)
        elif end is None and repeat is not None:
            ended = None if repeat.ended is None else TurnEnd.of(repeat.ended)
            known = told_before(self.fold, turn, turn.message_id, over=ended is not None)
            end = self.spans.accepted_again(turn, known, end=ended)
        if end is not None:
            turn.finish(end)
            return
        passed = self.spans.pass_on()  # nothing of ours was open
        if passed is not None:
            passed.finish(TurnEnd())
        self.on_turn()

    def end(self, turn: ClientTurn, end: TurnEnd) -> None:
        """A turn ends, whatever else the session works on."""
        over = self.spans.drop(turn)
        turn.finish(end)
        if over is not None:
            over.finish(end)
            self.on_turn()

    def expire(self) -> None:
        """Nobody waits for the answers to what is open, or gives them."""
        questions = self.fold.questions
        for question in questions.open:
            behind = self.is_behind(question.tool_call_id, question.terminal_id)
            for body in questions.expire(question.question_id).events:
                self.happened(body, behind=behind)

    def interrupt(self, cut: TurnEnd) -> None:
        """What is open ends, without the agent's word."""
        self.expire()
        cancelled = self.spans.open is not None and self.spans.open.cancelled
        for body in self.fold.interrupt(cancelled=cancelled):
            if isinstance(body, Updated):
                self.tell(body.update, cut=cut)
        for turn in self.spans.all():
            turn.finish(cut)

    def restart(self) -> None:
        """The session is about to be told from its beginning. Who watches is told nothing twice."""
        self.fold = Session()
        self.spans = self._new_spans()
        self.queue = []
        self.again = True

    def leave(self, cut: TurnEnd) -> None:
        """Nothing comes any more: what is open ends, and so does everybody's watching."""
        if self.over is not None:
            return
        self.interrupt(cut)
        self.over = cut
        for feed in self._watchers:
            feed.end()


def _tells_end(update: v2.SessionUpdate) -> bool:
    """Whether a state says that a turn has ended, and how."""
    if type(update) is not v2.SessionStateUpdate:
        return False
    return update.state is v2.State.IDLE and update.stop_reason is not None
