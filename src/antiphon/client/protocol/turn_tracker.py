"""TurnTracker: finds the turn that each event of a session belongs to. No I/O: it is called in lane order.

A `TurnSpan` is one turn of the session, from `running` to `idle`. A prompt belongs to the span in which its
message appears; several prompts may share a span, and a span may have none. Agents report this in different
orders: the answer to a prompt may come before its message or after it, before `running`, after it, or even
after `idle` (PROMPT-V2-05, PROMPT-V2-18).

A v1 agent reports no states: the session works from the first open prompt to the answer of the last one. An
event then belongs to the prompt that has waited longest, whatever the agent does with the others: it may
queue, refuse or cancel them (PROMPT-V1-19), and in each case they come after it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

E = TypeVar("E")


class Turn(Protocol):
    """A client's handle of a turn."""

    message_id: str | None

    def __hash__(self) -> int: ...


T = TypeVar("T", bound=Turn)


class TurnSpan(Struct, Generic[T, E], eq=False):
    """One turn of the session, and the client's handles of it."""

    handle: T
    """The handle of this turn if no prompt of this client opened it."""
    turns: list[T] = []
    """The handles of this client's prompts in it."""
    events: list[E] = []
    messages: set[str] = set()
    """The user messages that were shown in it."""
    cancelled: bool = False
    """Whether this client has cancelled it."""
    cancelled_by: str | None = None
    """The operation id of that cancel, to send it again."""
    end: Any = None


class _ShownMessage(Struct, Generic[T, E], eq=False):
    """A user message that may turn out to be a prompt of this client."""

    span: TurnSpan[T, E] | None
    before: list[E] = []
    """Its events that came before the span began."""


class TurnTracker(Generic[T, E]):
    def __init__(
        self,
        make: Callable[[], T],
        deliver: Callable[[T, E], None],
        *,
        serial: bool = False,
        shows: bool = False,
    ) -> None:
        """`make`: creates the handle of a turn that no prompt of this client opened.
        `deliver`: gives a turn one of its events, however late the turn is identified.
        `serial`: the agent works on one prompt at a time.
        `shows`: the agent is known to show every prompt as a message. Otherwise that is learned."""
        self._make = make
        self._deliver = deliver
        self._serial = serial
        self.open: TurnSpan[T, E] | None = None
        self._waiting: list[T] = []
        """Accepted prompts that are in no span yet."""
        self._unanswered = 0
        """Prompts that were sent and not answered: a message that is shown meanwhile may be one of them."""
        self._shown: dict[str, _ShownMessage[T, E]] = {}
        self._placed: set[T] = set()
        """The turns whose message was shown."""
        self.shows = shows
        """Whether this agent shows prompts as messages, as it should (PROMPT-V2-04). Then a prompt that is
        answered while the agent works may be for later: it gets no events until its message is shown."""

    # --- prompts -----------------------------------------------------------------------------------

    def prompt_sent(self) -> None:
        self._unanswered += 1

    def prompt_answered(self) -> None:
        """A prompt that was sent is accepted, refused or withdrawn."""
        self._unanswered -= 1
        if not self._unanswered:
            self._shown.clear()  # no prompt is left that these messages could be

    def prompt_accepted(self, turn: T, *, joins: bool = False) -> Any:
        """The agent has accepted a prompt. With `joins` it was sent to join the open turn. Returns the end of
        its span, if that is over already."""
        shown = None if turn.message_id is None else self._shown.pop(turn.message_id, None)
        if shown is not None:
            return self._place_shown(turn, shown)
        if self.open is None or (self._serial and not joins):
            self._waiting.append(turn)
        else:
            self.open.turns.append(turn)
            self.open.cancelled = False
            if not self.shows:
                self._replay(self.open.events, turn)
        return None

    def prompt_repeated(self, turn: T, known: list[E], *, end: Any) -> Any:
        """The agent had accepted the prompt before: `known` are its events since, and `end` the end of its
        turn, if it is over. Returns the end, if so."""
        shown = None if turn.message_id is None else self._shown.pop(turn.message_id, None)
        if shown is not None:
            found = self._place_shown(turn, shown)
            if found is None and end is not None:
                self.remove(turn)
            return found or end
        if end is None and not known:
            return self.prompt_accepted(turn)  # its message is still to come
        span = self.open if end is None else None
        whole = span is not None and turn.message_id in span.messages
        self._replay(span.events if span is not None and whole else known, turn)
        if end is None:
            self._placed.add(turn)
            self.shows = True
            (self._waiting if span is None else span.turns).append(turn)
        return end

    def _place_shown(self, turn: T, shown: _ShownMessage[T, E]) -> Any:
        self._placed.add(turn)
        self.shows = True
        self._replay(shown.before, turn)
        if shown.span is None:
            self._waiting.append(turn)
            return None
        self._replay(shown.span.events, turn)
        if shown.span.end is None:
            shown.span.turns.append(turn)
        else:
            self._placed.discard(turn)
        return shown.span.end

    # --- turns -------------------------------------------------------------------------------------

    @property
    def has_pending_prompt(self) -> bool:
        """Whether a prompt was accepted, or shown as a message, whose span has not begun."""
        return bool(self._waiting) or self._has_early_message()

    @property
    def has_shown_prompt(self) -> bool:
        """Whether a prompt whose span has not begun was shown as a message."""
        return self._has_early_message() or any(turn in self._placed for turn in self._waiting)

    def _has_early_message(self) -> bool:
        return any(shown.span is None for shown in self._shown.values())

    @property
    def waiting(self) -> list[T]:
        """The accepted prompts that are in no span yet."""
        return list(self._waiting)

    def is_waiting(self, turn: T) -> bool:
        """Whether a turn is in no span yet, and none is open."""
        return self.open is None and turn in self._waiting

    @property
    def has_unanswered_prompt(self) -> bool:
        return bool(self._unanswered)

    def turn_opened(self) -> None:
        """The session begins to work: on all prompts that wait."""
        self.open = TurnSpan(self._make())
        self.open.turns, self._waiting = self._waiting, []
        for shown in self._shown.values():
            if shown.span is None:
                shown.span = self.open

    def turn_ended(self, end: Any) -> list[T]:
        """The session is idle. Returns the turns that ended, the handle of the span too.

        A prompt whose message was not shown in the span is not over if this agent shows messages: it was
        answered early, and its turn is still to come (PROMPT-V2-19).
        """
        span, self.open = self.open, None
        if span is None:
            return []
        span.end = end
        if self._serial:  # idle means that every prompt is answered
            over, self._waiting = [*span.turns, *self._waiting], []
        else:
            over = [turn for turn in span.turns if self._receives(turn)]
            self._waiting = [turn for turn in span.turns if turn not in over]
        self._placed.difference_update(over)
        return [span.handle, *over]

    def remove(self, turn: T) -> T | None:
        """A turn ended by itself. Returns the handle of its span, if that ended with it."""
        self._placed.discard(turn)
        if turn in self._waiting:
            self._waiting.remove(turn)
        if self.open is not None and turn in self.open.turns:
            self.open.turns.remove(turn)
        return self.start_next()

    def start_next(self) -> T | None:
        """If the agent works on one prompt at a time and those of the open span are over, begin the span of
        the next one. Returns the handle of the span that ended."""
        if not self._serial or self.open is None or self.open.turns or not self._waiting:
            return None
        over, self.open = self.open.handle, TurnSpan(self._make())
        self.open.turns.append(self._waiting.pop(0))
        return over

    def unfinished(self) -> list[T]:
        """Every turn that has not ended."""
        return [*self._waiting, *([] if self.open is None else [self.open.handle, *self.open.turns])]

    # --- events ------------------------------------------------------------------------------------

    @property
    def turn(self) -> T | None:
        """The turn that is open."""
        if self.open is None:
            return None
        return next((turn for turn in self.open.turns if self._receives(turn)), self.open.handle)

    def is_working_on(self, turn: T) -> bool:
        """Whether the open span belongs to this turn."""
        return self.open is not None and turn in (self.open.handle, *filter(self._receives, self.open.turns))

    def place(self, message_id: str | None) -> T | None:
        """The turn of an event that comes now; `message_id` if the event shows a user message."""
        for turn in self._named(message_id):
            waits = turn in self._waiting
            if turn not in self._placed:
                if self.open is not None and not waits and not self._receives(turn):
                    self._replay(self.open.events, turn)
                self._placed.add(turn)
                self.shows = True
            if waits:
                return turn
        return self.turn

    def add(self, event: E, message_id: str | None) -> None:
        """Add an event of the open span, or one that shows a user message, or both."""
        named = self._named(message_id)
        if message_id is not None and not named and self._unanswered:
            shown = self._shown.setdefault(message_id, _ShownMessage(self.open))
            if shown.span is None:
                shown.before.append(event)
        ahead = [turn for turn in named if turn in self._waiting]
        for turn in ahead:
            self._deliver(turn, event)
        if self.open is None or ahead:
            return
        if message_id is not None:
            self.open.messages.add(message_id)
        self.open.events.append(event)
        self._deliver(self.open.handle, event)
        for turn in self.open.turns:
            if self._receives(turn):
                self._deliver(turn, event)

    def _receives(self, turn: T) -> bool:
        return turn in self._placed or not self.shows

    def _named(self, message_id: str | None) -> list[T]:
        if message_id is None:
            return []
        turns = [*self._waiting, *(() if self.open is None else self.open.turns)]
        return [turn for turn in turns if turn.message_id == message_id]

    def _replay(self, events: list[E], turn: T) -> None:
        for event in events:
            self._deliver(turn, event)
