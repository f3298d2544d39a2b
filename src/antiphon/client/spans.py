"""Spans: which turn an event belongs to. No I/O: it is told what happened, in the order of the lane.

A span is one turn of the session, from `running` to `idle`. A prompt belongs to the span in which its message
appears; several may share one, and a span may have none. Peers tell these things in different orders: the
answer may come before the message or after it, before `running` or after it (PROMPT-V2-05, PROMPT-V2-18).
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

    @property
    def turn(self) -> T:
        return self.turns[0] if self.turns else self.own


class Spans(Generic[T, E]):
    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self.open: Span[T, E] | None = None
        self._waiting: list[T] = []
        """Accepted prompts that are in no span yet."""
        self._shown: dict[str, E] = {}
        """User messages that came since a prompt was sent, and are nobody's yet."""
        self._placed: set[T] = set()
        """The turns whose message has been shown."""
        self._shows = False
        """Whether this agent shows prompts as messages, as it should (PROMPT-V2-04). Then a prompt that is
        answered while the agent works may be for later, and hears nothing until its message is shown."""

    def accepted(self, turn: T) -> None:
        """The agent has taken a prompt: into what it works on, or for what it does next."""
        shown = None if turn.message_id is None else self._claim(turn, turn.message_id)
        if self.open is not None:
            self.open.turns.append(turn)
            if turn in self._placed or not self._shows:
                self._tell(turn, self.open)
        else:
            self._waiting.append(turn)
            if shown is not None:
                turn.hear(shown)

    def named(self, turn: T, message_id: str) -> None:
        """Which message an accepted prompt became, where its answer did not say (SD-05)."""
        turn.message_id = message_id
        silent = self._shows and turn not in self._placed
        shown = self._claim(turn, message_id)
        if shown is None:
            return
        if self.open is None:
            turn.hear(shown)
        elif silent:
            self._tell(turn, self.open)

    def opened(self) -> None:
        """The session begins to work: for whoever waits."""
        self.open = Span(self._make())
        self.open.turns, self._waiting = self._waiting, []

    def place(self, message_id: str | None) -> T | None:
        """The turn that an event belongs to which comes now; `message_id` if it shows a user message."""
        for turn in self._named(message_id):
            if turn not in self._placed:
                if self.open is not None and self._shows:
                    self._tell(turn, self.open)
                self._placed.add(turn)
                self._shows = True
            if self.open is None:
                return turn
        return None if self.open is None else self.open.turn

    def add(self, event: E, message_id: str | None) -> None:
        """An event of the open span came, or one that shows a user message, or both."""
        named = self._named(message_id)
        if message_id is not None and not named:
            self._shown.setdefault(message_id, event)
        if self.open is None:
            for turn in named:
                turn.hear(event)
            return
        self.open.events.append(event)
        self.open.own.hear(event)
        for turn in self.open.turns:
            if turn in self._placed or not self._shows:
                turn.hear(event)

    def ended(self) -> list[T]:
        """The session has come to rest: the turns that ended with that, the span's own handle too.

        A prompt whose message was not shown in it is not over where this agent shows messages: it was
        answered early, and its turn is still to come (PROMPT-V2-19).
        """
        span, self.open = self.open, None
        if span is None:
            return []
        over = [turn for turn in span.turns if turn in self._placed or not self._shows]
        self._waiting += [turn for turn in span.turns if turn not in over]
        self._placed.difference_update(over)
        return [span.own, *over]

    def drop(self, turn: T) -> None:
        """A turn ended by itself."""
        self._placed.discard(turn)
        if turn in self._waiting:
            self._waiting.remove(turn)
        if self.open is not None and turn in self.open.turns:
            self.open.turns.remove(turn)

    def all(self) -> list[T]:
        """Every turn that has not ended."""
        return [*self._waiting, *([] if self.open is None else [self.open.own, *self.open.turns])]

    def settled(self) -> None:
        """No prompt of ours is on its way any more: what was shown so far is nobody's."""
        self._shown.clear()

    def _claim(self, turn: T, message_id: str) -> E | None:
        shown = self._shown.pop(message_id, None)
        if shown is not None:
            self._placed.add(turn)
            self._shows = True
        return shown

    def _named(self, message_id: str | None) -> list[T]:
        if message_id is None:
            return []
        turns = self._waiting if self.open is None else self.open.turns
        return [turn for turn in turns if turn.message_id == message_id]

    def _tell(self, turn: T, span: Span[T, E]) -> None:
        """It hears the span from its beginning."""
        for event in span.events:
            turn.hear(event)
