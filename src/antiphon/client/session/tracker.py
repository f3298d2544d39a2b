"""SessionTracker: applies the updates of a session, assigns them to turns and publishes events.

Nothing here waits. It runs in the lane, so that everything that came before an event has been applied when a
watcher wakes by it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, Protocol
from weakref import WeakSet

from msgspec import Raw

from antiphon.bridge.prompts import Repeat
from antiphon.client.protocol.dialect import STREAMED, USER_UPDATES
from antiphon.client.protocol.tracked_session import is_background
from antiphon.client.protocol.turn_end import TurnEnd
from antiphon.client.protocol.turn_tracker import TurnTracker
from antiphon.client.session.event_log import EventQueue
from antiphon.client.session.presence import PRESENCE, QUESTION, OtherClients
from antiphon.client.session.turn import ClientTurn, SessionEvent, known_events
from antiphon.engine.annotations import ANNOTATION_UPDATES
from antiphon.engine.events import AnyBody, Event, QuestionClosed, QuestionOpened, Updated
from antiphon.engine.fold import is_state
from antiphon.engine.questions import Question
from antiphon.engine.session import Session
from antiphon.engine.subagents import SubagentInfo
from antiphon.engine.transcript import TYPE_OF
from antiphon.engine.turn import Effect
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.wire import Unknown

QUEUE = "_antiphon_queue"
OUTSIDE_TURNS = frozenset([QUEUE, PRESENCE, QUESTION]) | ANNOTATION_UPDATES
"""Our extension updates that belong to no turn."""
NOTICES = 100
"""How many notices are kept."""
CONCLUDE_AFTER = 1.0
"""Seconds after which a prompt counts as ended that was answered after the end of a turn. An agent that
worked by itself when the prompt came begins the prompt's turn before that."""
WORK = frozenset(
    [
        *TYPE_OF,
        v2.TerminalOutputChunk,
        v2.CompactionSummaryChunk,
        v2.SessionMessageChunk,
        v2.SessionToolCallUpdate,
    ]
).difference(USER_UPDATES)
"""Updates that an agent sends while it works on a prompt."""

RUNNING = v2.SessionStateUpdate(state=v2.State.RUNNING)
_NOT_ENCODED = Raw(b"")


class TrackerListener(Protocol):
    """Is called when something happens that other parts of the session act on."""

    def user_message_shown(self, message_id: str) -> None:
        """A user message comes; it is not assigned to a turn yet."""

    def turn_ending(self) -> None:
        """The open turn is about to end."""

    def turn_changed(self) -> None:
        """The open turn may be another one."""

    def subagent_announced(self, info: SubagentInfo) -> None: ...

    def prompt_sent(self, turn: ClientTurn, request_id: int) -> None: ...

    def prompt_too_late(self, turn: ClientTurn) -> None:
        """The agent accepted a prompt before it could be withdrawn."""


class SessionTracker:
    """Implements `TrackedSession`."""

    def __init__(
        self, listener: TrackerListener, make: Callable[[], ClientTurn], *, serial: bool, shows: bool = False
    ) -> None:
        """`make` creates the handle of a turn that no prompt of this client opened. `serial`: the agent works
        on one prompt at a time. `shows`: the agent is known to show every prompt as a message, and to report
        when each turn begins."""
        self._listener = listener
        self.fold = Session()
        self._serial = serial
        self._new_turns = partial(
            TurnTracker[ClientTurn, SessionEvent], make, ClientTurn._receive, serial=serial
        )
        self.turns = self._new_turns(shows=shows and not serial)
        self.replaying = False
        """Whether the updates that come were published before."""
        self.queue: list[dict[str, Any]] = []
        self.others = OtherClients()
        self._opener: str | None = None
        """The last user message since the session is idle: the next turn may be about it."""
        self.last_activity = time.monotonic()
        """When the agent last sent something, or this client last had to act."""
        self.left: TurnEnd | None = None
        """How everything ended that was open when the session was left; None before that."""
        self._worked = False
        """Whether the agent has sent work since it accepted the last prompt."""
        self._reports_running = shows
        """Whether the agent has ever reported the beginning of a turn. Then it does so for every turn."""
        self._unclaimed: TurnEnd | None = None
        """The last end of a turn that came while a prompt was not answered: it may be the prompt's."""
        self._concluding: set[asyncio.TimerHandle] = set()
        self._watchers: WeakSet[EventQueue[SessionEvent]] = WeakSet()
        self._unwatched: EventQueue[SessionEvent] | None = None
        """For the first watcher: all events since the session began to be opened (`keep_replay`)."""
        self.notices: deque[SessionEvent] = deque(maxlen=NOTICES)

    def events(self) -> AsyncIterator[SessionEvent]:
        """All events from this call on; the first call after `keep_replay` begins with the replayed ones. A
        watcher that nobody holds is forgotten."""
        queue, self._unwatched = self._unwatched or EventQueue(), None
        if self.left is not None:
            queue.end()
        self._watchers.add(queue)
        return queue.watch()

    def note_activity(self) -> None:
        self.last_activity = time.monotonic()

    # --- updates -----------------------------------------------------------------------------------

    def apply(self, update: v2.SessionUpdate, *, cut: TurnEnd | None = None) -> None:
        """Apply an update and publish it. `cut`: how a turn ends by it, if the agent did not report that."""
        kind = type(update)
        self._worked = self._worked or kind in WORK
        if kind in STREAMED:
            self._add_to_open_turn(self._fold(Updated.of(update, raw=_NOT_ENCODED)), update=update)
            return
        shown = update.message_id if isinstance(update, USER_UPDATES) else None
        if shown is not None:
            self._listener.user_message_shown(shown)
        before = self._before_end(update)
        if before is not None and is_state(update) and self.fold.turns.effect_of(update) is Effect.ENDED:
            self._listener.turn_ending()
        seq = self._fold_update(update)
        after = self.fold.turn
        if before is None and after is not None:
            self._reports_running = self._reports_running or update is not RUNNING
            self.turns.turn_opened()
            if self.turns.open is not None:
                self.turns.open.handle._opener, self._opener = self._opener, None
        elif shown is not None and after is None:
            self._opener = shown
        if self._is_outside_turns(update):
            read = self.others.read(update) if type(update) is Unknown else {}
            self._publish(SessionEvent(seq=seq, turn=None, update=update, **read))
            return
        event = SessionEvent(seq=seq, turn=self.turns.place(shown), update=update)
        self.turns.add(event, shown)
        self._publish(event)
        if before is not None and after is None:
            end = cut or TurnEnd.from_state(update)
            for over in self.turns.turn_ended(end):
                over._finish(end)
        elif before is not after or shown is not None:
            self._listener.turn_changed()

    def _before_end(self, update: v2.SessionUpdate) -> Any:
        """The open turn before `update`. Opens one for an agent that only reports ends."""
        before = self.fold.turn
        if not _reports_end(update):
            return before
        if before is None and self.turns.has_pending_prompt and not self._reports_whole_turns:
            if self._worked or (self.turns.has_shown_prompt and not self._reports_running):
                self.apply(RUNNING)
                before = self.fold.turn
            else:  # PROMPT-V2-20: the agent may report the end of a turn again that is over
                self._conclude_later(TurnEnd.from_state(update))
        if self.turns.has_unanswered_prompt:
            self._unclaimed = TurnEnd.from_state(update)
        return before

    @property
    def _reports_whole_turns(self) -> bool:
        """Whether the agent reports the beginning of every turn and shows every prompt. Then an end belongs
        to the turn that is open: a prompt whose turn has not begun cannot have ended (PROMPT-V2-19, -20)."""
        return self._reports_running and self.turns.shows

    def _fold_update(self, update: v2.SessionUpdate) -> int:
        announced = update.session_id if type(update) is v2.SubagentUpdate else None
        is_new = announced is not None and self.fold.subagents.get(announced) is None
        seq = self._fold(Updated.of(update, raw=_NOT_ENCODED))
        info = None if announced is None or not is_new else self.fold.subagents.get(announced)
        if info is not None:
            self._listener.subagent_announced(info)
        if isinstance(update, v2.Notice):
            self.notices.append(SessionEvent(seq=seq, turn=None, update=update))
        return seq

    def apply_question(self, body: QuestionOpened | QuestionClosed, *, background: bool) -> None:
        """A question was asked or has ended; `background` if it is about background work."""
        seq = self._fold(body)
        question = self.fold.questions.get(body.question_id)
        if background:
            self._publish(SessionEvent(seq=seq, turn=None, question=question))
        else:
            self._add_to_open_turn(seq, question=question)

    def _add_to_open_turn(
        self, seq: int, *, update: v2.SessionUpdate | None = None, question: Question | None = None
    ) -> None:
        event = SessionEvent(seq=seq, turn=self.turns.turn, update=update, question=question)
        self.turns.add(event, None)
        self._publish(event)

    def _is_outside_turns(self, update: v2.SessionUpdate) -> bool:
        """Whether an update belongs to no turn, whatever is open."""
        if type(update) is Unknown and update.get("sessionUpdate") in OUTSIDE_TURNS:
            if update["sessionUpdate"] == QUEUE:
                entries = update.get("entries")
                self.queue = entries if isinstance(entries, list) else []
            return True
        return is_background(
            self.fold, getattr(update, "tool_call_id", None), getattr(update, "terminal_id", None)
        )

    def answer_elsewhere(self, question_id: str | None) -> tuple[Raw, Who] | None:
        return self.others.take_answer(question_id)

    def _fold(self, body: AnyBody) -> int:
        seq = self.fold.last_seq + 1
        self.fold.apply(Event(seq, time.time_ns() // 1_000_000, body))
        return seq

    def keep_replay(self) -> None:
        """Keep the replay for the first watcher. Called before the session is opened."""
        self._unwatched = EventQueue()

    def _publish(self, event: SessionEvent) -> None:
        if self._unwatched is not None:
            self._unwatched.add(event)
        if self._watchers and not self.replaying:
            for queue in self._watchers:
                queue.add(event)

    # --- prompts -----------------------------------------------------------------------------------

    def prompt_sent(self, prompt: ClientTurn, request_id: int) -> None:
        self._listener.prompt_sent(prompt, request_id)
        if not self.turns.has_unanswered_prompt:
            self._unclaimed = None
        self.turns.prompt_sent()
        self.note_activity()

    def prompt_accepted(self, prompt: ClientTurn, *, joins: bool, repeat: Repeat | None = None) -> None:
        self.accept(prompt, joins=joins, repeat=repeat)
        if self._serial:
            return
        end, self._unclaimed = self._unclaimed, None
        if end is not None and self.turns.is_waiting(prompt):
            self._conclude_later(end)

    def accept(self, turn: ClientTurn, *, joins: bool = False, repeat: Repeat | None = None) -> None:
        """The agent has accepted a prompt; with `repeat`, it had before."""
        end, self._worked = self.left, False
        if end is None and repeat is None:
            end = self.turns.prompt_accepted(turn, joins=joins)
        elif end is None and repeat is not None:
            ended = None if repeat.ended is None else TurnEnd.from_state(repeat.ended)
            known = list(known_events(self.fold, turn, turn.message_id, over=ended is not None))
            end = self.turns.prompt_repeated(turn, known, end=ended)
        if end is not None:
            turn._finish(end)
            return
        over = self.turns.start_next()  # no turn of this client was open
        if over is not None:
            over._finish(TurnEnd())
        self._listener.turn_changed()

    def prompt_repeated(self, prompt: ClientTurn, message_id: str | None) -> None:
        for event in known_events(self.fold, prompt, message_id, over=True):
            prompt._receive(event)

    def prompt_ended(self, prompt: ClientTurn, end: TurnEnd) -> None:
        """A turn ends, whatever else the session works on."""
        over = self.turns.remove(prompt)
        prompt._finish(end)
        if over is not None:
            over._finish(end)
            self._listener.turn_changed()

    def prompt_refused(self, prompt: ClientTurn, end: TurnEnd) -> None:
        prompt._finish(end)

    def prompt_too_late(self, prompt: ClientTurn) -> None:
        self._listener.prompt_too_late(prompt)

    def _conclude_later(self, end: TurnEnd) -> None:
        """A turn has ended that may be the turn of a prompt that waits for its turn to begin. This is a
        guess, made only for an agent that has never shown a prompt as a message."""
        if self.turns.shows:
            return
        loop = asyncio.get_running_loop()
        for turn in self.turns.waiting:
            self._concluding.add(loop.call_later(CONCLUDE_AFTER, self._conclude, turn, end))

    def _conclude(self, turn: ClientTurn, end: TurnEnd) -> None:
        """The agent answered a prompt after the end of a turn and began no other: it was the prompt's."""
        now = asyncio.get_running_loop().time()
        self._concluding = {timer for timer in self._concluding if timer.when() > now}
        if not turn.ended and self.turns.is_waiting(turn):
            self.prompt_ended(turn, end)

    # --- the end -----------------------------------------------------------------------------------

    def expire_questions(self) -> None:
        """Expire the open questions: nobody waits for their answers, or gives them."""
        questions = self.fold.questions
        for question in questions.open:
            background = is_background(self.fold, question.tool_call_id, question.terminal_id)
            for body in questions.expire(question.question_id).events:
                self.apply_question(body, background=background)

    def interrupt(self, cut: TurnEnd) -> None:
        """End everything that is open, without a report of the agent."""
        self.expire_questions()
        cancelled = self.turns.open is not None and self.turns.open.cancelled
        for body in self.fold.interrupt(cancelled=cancelled):
            if isinstance(body, Updated):
                self.apply(body.update, cut=cut)
        for turn in self.turns.unfinished():
            turn._finish(cut)

    def restart(self) -> None:
        """The agent is about to replay the session from its beginning. Watchers get nothing twice."""
        self.fold = Session()
        self.turns = self._new_turns(shows=self.turns.shows and not self._serial)
        self.queue = []
        self.replaying = True

    def leave(self, cut: TurnEnd) -> None:
        """Nothing comes any more: end what is open, and every watcher."""
        if self.left is not None:
            return
        self.interrupt(cut)
        self.left = cut
        for timer in self._concluding:
            timer.cancel()
        self._concluding.clear()
        for queue in self._watchers:
            queue.end()


def _reports_end(update: v2.SessionUpdate) -> bool:
    """Whether an update reports that a turn has ended, and how."""
    if type(update) is not v2.SessionStateUpdate:
        return False
    return update.state is v2.State.IDLE and update.stop_reason is not None
