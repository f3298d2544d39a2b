"""Spans: which turn an event belongs to. No I/O: it is told what happened, in the order of the lane.

A span is one turn of the session, from `running` to `idle`. A prompt belongs to the span in which its message
appears; several may share one, and a span may have none. Peers tell these things in different orders: the
answer may come before the message or after it, before `running`, after it, or even after `idle`
(PROMPT-V2-05, PROMPT-V2-18).

v1 tells no states: a session works from the first open prompt to the answer of the last. What comes then
belongs to the prompt that has waited longest, whatever the agent does with the others: it may queue, refuse
or cancel them (PROMPT-V1-19), and in each case they come after it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

E = TypeVar("E")


class Turn(Protocol):
    """A client's handle of a turn."""

    message_id: str | None

    def hear(self, event: Any, /) -> None: ...

    def __hash__(self) -> int: ...


T = TypeVar("T", bound=Turn)


class Span(Generic[T, E]):
    """One turn of the session, and the client's handles of it."""

    def __init__(self, own: T) -> None:
        self.own = own
        """The handle that stands for it where no prompt of ours does."""
        self.turns: list[T] = []
        self.events: list[E] = []
        self.messages: set[str] = set()
        """The user messages that were shown in it."""
        self.cancelled = False
        """Whether we have asked for its end."""
        self.cancelled_by: str | None = None
        """The operation by which we did, to be asked for again."""
        self.end: Any = None


class _Shown(Generic[T, E]):
    """A user message that may turn out to be one of ours."""

    def __init__(self, span: Span[T, E] | None) -> None:
        self.span = span
        self.before: list[E] = []
        """Its events that came before the span began."""


class Spans(Generic[T, E]):
    def __init__(self, make: Callable[[], T], *, serial: bool = False, keeps: bool = True) -> None:
        """`make` gives a handle for a turn that is not ours; `serial`: prompts are worked on one by one;
        `keeps`: turns hear their events, however late they turn out to be theirs."""
        self._make = make
        self._keeps = keeps
        self._serial = serial
        self.open: Span[T, E] | None = None
        self._waiting: list[T] = []
        """Accepted prompts that are in no span yet."""
        self._sent = 0
        """How many prompts of ours are on their way: what is shown meanwhile may be theirs."""
        self._shown: dict[str, _Shown[T, E]] = {}
        self._placed: set[T] = set()
        """The turns whose message has been shown."""
        self._shows = False
        """Whether this agent shows prompts as messages, as it should (PROMPT-V2-04). Then a prompt that is
        answered while the agent works may be for later, and hears nothing until its message is shown."""

    # --- prompts -----------------------------------------------------------------------------------

    def sent(self) -> None:
        """A prompt of ours is on its way."""
        self._sent += 1

    def settled(self) -> None:
        """It is not any more: taken, refused or given up."""
        self._sent -= 1
        if not self._sent:
            self._shown.clear()  # what was shown so far is nobody's

    def accepted(self, turn: T, *, joins: bool = False) -> Any:
        """The agent has taken a prompt: into what it works on, or for what it does next. With `joins` it was
        meant for the former. Gives the end of its span, if that is over already."""
        shown = None if turn.message_id is None else self._shown.pop(turn.message_id, None)
        if shown is not None:
            return self._found(turn, shown)
        if self.open is None or (self._serial and not joins):
            self._waiting.append(turn)
        else:
            self.open.turns.append(turn)
            self.open.cancelled = False
            if not self._shows:
                self._tell(turn, self.open)
        return None

    def accepted_again(self, turn: T, known: list[E], *, end: Any) -> Any:
        """The agent had taken the prompt before: `known` is what was told of it since, and `end` how its turn
        ended, if it is over. Gives the end, if so."""
        shown = None if turn.message_id is None else self._shown.pop(turn.message_id, None)
        if shown is not None:
            found = self._found(turn, shown)
            if found is None and end is not None:
                self.drop(turn)
            return found or end
        if end is None and not known:
            return self.accepted(turn)  # its message is still to come
        span = self.open if end is None else None
        whole = span is not None and turn.message_id in span.messages
        for event in span.events if span is not None and whole else known:
            turn.hear(event)
        if end is None:
            self._placed.add(turn)
            self._shows = True
            (self._waiting if span is None else span.turns).append(turn)
        return end

    def _found(self, turn: T, shown: _Shown[T, E]) -> Any:
        self._placed.add(turn)
        self._shows = True
        for event in shown.before:
            turn.hear(event)
        if shown.span is None:
            self._waiting.append(turn)
            return None
        self._tell(turn, shown.span)
        if shown.span.end is None:
            shown.span.turns.append(turn)
        else:
            self._placed.discard(turn)
        return shown.span.end

    # --- turns -------------------------------------------------------------------------------------

    @property
    def due(self) -> bool:
        """Whether a prompt was taken, or shown as a message, whose span has not begun."""
        return bool(self._waiting) or any(shown.span is None for shown in self._shown.values())

    @property
    def shown(self) -> bool:
        """Whether a prompt whose span has not begun was shown as a message."""
        early = any(shown.span is None for shown in self._shown.values())
        return early or any(turn in self._placed for turn in self._waiting)

    @property
    def waiting(self) -> list[T]:
        """The prompts that were taken and are in no span yet."""
        return list(self._waiting)

    def waits(self, turn: T) -> bool:
        """Whether a turn is in no span yet, and none is open."""
        return self.open is None and turn in self._waiting

    @property
    def unanswered(self) -> bool:
        """Whether a prompt of ours is on its way."""
        return bool(self._sent)

    def opened(self) -> None:
        """The session begins to work: for whoever waits."""
        self.open = Span(self._make())
        self.open.turns, self._waiting = self._waiting, []
        for shown in self._shown.values():
            if shown.span is None:
                shown.span = self.open

    def ended(self, end: Any) -> list[T]:
        """The session has come to rest: the turns that ended with that, the span's own handle too.

        A prompt whose message was not shown in it is not over where this agent shows messages: it was
        answered early, and its turn is still to come (PROMPT-V2-19).
        """
        span, self.open = self.open, None
        if span is None:
            return []
        span.end = end
        if self._serial:  # then it rests because every prompt is answered
            over, self._waiting = [*span.turns, *self._waiting], []
        else:
            over = [turn for turn in span.turns if self._hears(turn)]
            self._waiting = [turn for turn in span.turns if turn not in over]
        self._placed.difference_update(over)
        return [span.own, *over]

    def drop(self, turn: T) -> T | None:
        """A turn ended by itself. Gives the own handle of its span, if that ended with it."""
        self._placed.discard(turn)
        if turn in self._waiting:
            self._waiting.remove(turn)
        if self.open is not None and turn in self.open.turns:
            self.open.turns.remove(turn)
        return self.pass_on()

    def pass_on(self) -> T | None:
        """Where prompts are worked on one by one and those of the open span are over: the next one has its
        turn. Gives the own handle of the span that is over by that."""
        if not self._serial or self.open is None or self.open.turns or not self._waiting:
            return None
        over, self.open = self.open.own, Span(self._make())
        self.open.turns.append(self._waiting.pop(0))
        return over

    def all(self) -> list[T]:
        """Every turn that has not ended."""
        return [*self._waiting, *([] if self.open is None else [self.open.own, *self.open.turns])]

    # --- events ------------------------------------------------------------------------------------

    @property
    def turn(self) -> T | None:
        """The turn that is open."""
        if self.open is None:
            return None
        return next((turn for turn in self.open.turns if self._hears(turn)), self.open.own)

    def works_on(self, turn: T) -> bool:
        """Whether the open span is this turn's."""
        return self.open is not None and turn in (self.open.own, *filter(self._hears, self.open.turns))

    def place(self, message_id: str | None) -> T | None:
        """The turn that an event belongs to which comes now; `message_id` if it shows a user message."""
        for turn in self._named(message_id):
            waits = turn in self._waiting
            if turn not in self._placed:
                if self.open is not None and not waits and not self._hears(turn):
                    self._tell(turn, self.open)
                self._placed.add(turn)
                self._shows = True
            if waits:
                return turn
        return self.turn

    def add(self, event: E, message_id: str | None) -> None:
        """An event of the open span came, or one that shows a user message, or both."""
        named = self._named(message_id)
        if message_id is not None and not named and self._sent:
            shown = self._shown.setdefault(message_id, _Shown(self.open))
            if shown.span is None and self._keeps:
                shown.before.append(event)
        ahead = [turn for turn in named if turn in self._waiting]
        if self._keeps:
            for turn in ahead:
                turn.hear(event)
        if self.open is None or ahead:
            return
        if message_id is not None:
            self.open.messages.add(message_id)
        if not self._keeps:
            return
        self.open.events.append(event)
        self.open.own.hear(event)
        for turn in self.open.turns:
            if self._hears(turn):
                turn.hear(event)

    def _hears(self, turn: T) -> bool:
        return turn in self._placed or not self._shows

    def _named(self, message_id: str | None) -> list[T]:
        if message_id is None:
            return []
        turns = [*self._waiting, *(() if self.open is None else self.open.turns)]
        return [turn for turn in turns if turn.message_id == message_id]

    def _tell(self, turn: T, span: Span[T, E]) -> None:
        """It hears the span from its beginning."""
        for event in span.events:
            turn.hear(event)
