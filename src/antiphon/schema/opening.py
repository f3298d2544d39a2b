"""Opening: what an agent lets through before, while and after `initialize` is under way.

One total table, (state, input) -> (next state, verdict): INIT-24 to INIT-27.
"""

from __future__ import annotations

from enum import IntEnum, auto


class State(IntEnum):
    NEW = auto()
    """Nothing agreed yet."""
    OPENING = auto()
    """The first `initialize` is being answered."""
    OPEN = auto()
    """Agreed, and nothing else asked yet: `initialize` may still be repeated."""
    REOPENING = auto()
    """A repeat is being answered; what was agreed before holds until it succeeds."""
    IN_USE = auto()
    """Agreed for good."""


class Input(IntEnum):
    INITIALIZE = auto()
    REQUEST = auto()
    NOTIFICATION = auto()
    SUCCEEDED = auto()
    FAILED = auto()


class Verdict(IntEnum):
    SERVE = auto()
    REFUSE = auto()
    """Answered with `-32600`; the connection stays open."""
    IGNORE = auto()
    IMPOSSIBLE = auto()
    """Only our own mistake leads here."""


_S, _I, _V = State, Input, Verdict

TABLE: dict[tuple[State, Input], tuple[State, Verdict]] = {
    (_S.NEW, _I.INITIALIZE): (_S.OPENING, _V.SERVE),
    (_S.NEW, _I.REQUEST): (_S.NEW, _V.REFUSE),  # INIT-24
    (_S.NEW, _I.NOTIFICATION): (_S.NEW, _V.IGNORE),  # INIT-25
    (_S.NEW, _I.SUCCEEDED): (_S.NEW, _V.IMPOSSIBLE),
    (_S.NEW, _I.FAILED): (_S.NEW, _V.IMPOSSIBLE),
    (_S.OPENING, _I.INITIALIZE): (_S.OPENING, _V.REFUSE),  # INIT-26
    (_S.OPENING, _I.REQUEST): (_S.OPENING, _V.REFUSE),  # INIT-24: also while it is in flight
    (_S.OPENING, _I.NOTIFICATION): (_S.OPENING, _V.IGNORE),
    (_S.OPENING, _I.SUCCEEDED): (_S.OPEN, _V.SERVE),
    (_S.OPENING, _I.FAILED): (_S.NEW, _V.SERVE),  # INIT-26: still retryable
    (_S.OPEN, _I.INITIALIZE): (_S.REOPENING, _V.SERVE),
    (_S.OPEN, _I.REQUEST): (_S.IN_USE, _V.SERVE),
    (_S.OPEN, _I.NOTIFICATION): (_S.OPEN, _V.SERVE),
    (_S.OPEN, _I.SUCCEEDED): (_S.OPEN, _V.IMPOSSIBLE),
    (_S.OPEN, _I.FAILED): (_S.OPEN, _V.IMPOSSIBLE),
    (_S.REOPENING, _I.INITIALIZE): (_S.REOPENING, _V.REFUSE),
    (_S.REOPENING, _I.REQUEST): (_S.REOPENING, _V.REFUSE),
    (_S.REOPENING, _I.NOTIFICATION): (_S.REOPENING, _V.SERVE),
    (_S.REOPENING, _I.SUCCEEDED): (_S.OPEN, _V.SERVE),  # INIT-27: the latest one counts
    (_S.REOPENING, _I.FAILED): (_S.OPEN, _V.SERVE),  # INIT-26: the earlier one stays in force
    (_S.IN_USE, _I.INITIALIZE): (_S.IN_USE, _V.REFUSE),  # INIT-26
    (_S.IN_USE, _I.REQUEST): (_S.IN_USE, _V.SERVE),
    (_S.IN_USE, _I.NOTIFICATION): (_S.IN_USE, _V.SERVE),
    (_S.IN_USE, _I.SUCCEEDED): (_S.IN_USE, _V.IMPOSSIBLE),
    (_S.IN_USE, _I.FAILED): (_S.IN_USE, _V.IMPOSSIBLE),
}


class Opening:
    """Where one connection stands."""

    def __init__(self) -> None:
        self.state = State.NEW

    def step(self, input: Input) -> Verdict:
        self.state, verdict = TABLE[self.state, input]
        return verdict
