"""Handshake: which frames an agent serves before, during and after `initialize`.

One total table, (state, input) -> (next state, verdict): INIT-24 to INIT-27.
"""

from __future__ import annotations

from enum import IntEnum, auto


class State(IntEnum):
    NEW = auto()
    """Not initialized."""
    INITIALIZING = auto()
    """The first `initialize` has no response yet."""
    INITIALIZED = auto()
    """Agreed, with no other request yet: `initialize` may be repeated."""
    REPEATING = auto()
    """A repeated `initialize` has no response yet. The earlier agreement holds until it succeeds."""
    IN_USE = auto()
    """Agreed. `initialize` may not be repeated."""


class Input(IntEnum):
    INITIALIZE = auto()
    REQUEST = auto()
    NOTIFICATION = auto()
    SUCCEEDED = auto()
    FAILED = auto()


class Verdict(IntEnum):
    SERVE = auto()
    REFUSE = auto()
    """Respond with `-32600`; the connection stays open."""
    IGNORE = auto()
    IMPOSSIBLE = auto()
    """Only a bug in this library leads here."""


_S, _I, _V = State, Input, Verdict

TABLE: dict[tuple[State, Input], tuple[State, Verdict]] = {
    (_S.NEW, _I.INITIALIZE): (_S.INITIALIZING, _V.SERVE),
    (_S.NEW, _I.REQUEST): (_S.NEW, _V.REFUSE),  # INIT-24
    (_S.NEW, _I.NOTIFICATION): (_S.NEW, _V.IGNORE),  # INIT-25
    (_S.NEW, _I.SUCCEEDED): (_S.NEW, _V.IMPOSSIBLE),
    (_S.NEW, _I.FAILED): (_S.NEW, _V.IMPOSSIBLE),
    (_S.INITIALIZING, _I.INITIALIZE): (_S.INITIALIZING, _V.REFUSE),  # INIT-26
    (_S.INITIALIZING, _I.REQUEST): (_S.INITIALIZING, _V.REFUSE),  # INIT-24: also while it is in flight
    (_S.INITIALIZING, _I.NOTIFICATION): (_S.INITIALIZING, _V.IGNORE),
    (_S.INITIALIZING, _I.SUCCEEDED): (_S.INITIALIZED, _V.SERVE),
    (_S.INITIALIZING, _I.FAILED): (_S.NEW, _V.SERVE),  # INIT-26: still retryable
    (_S.INITIALIZED, _I.INITIALIZE): (_S.REPEATING, _V.SERVE),
    (_S.INITIALIZED, _I.REQUEST): (_S.IN_USE, _V.SERVE),
    (_S.INITIALIZED, _I.NOTIFICATION): (_S.INITIALIZED, _V.SERVE),
    (_S.INITIALIZED, _I.SUCCEEDED): (_S.INITIALIZED, _V.IMPOSSIBLE),
    (_S.INITIALIZED, _I.FAILED): (_S.INITIALIZED, _V.IMPOSSIBLE),
    (_S.REPEATING, _I.INITIALIZE): (_S.REPEATING, _V.REFUSE),
    (_S.REPEATING, _I.REQUEST): (_S.REPEATING, _V.REFUSE),
    (_S.REPEATING, _I.NOTIFICATION): (_S.REPEATING, _V.SERVE),
    (_S.REPEATING, _I.SUCCEEDED): (_S.INITIALIZED, _V.SERVE),  # INIT-27: the latest one counts
    (_S.REPEATING, _I.FAILED): (_S.INITIALIZED, _V.SERVE),  # INIT-26: the earlier one stays in force
    (_S.IN_USE, _I.INITIALIZE): (_S.IN_USE, _V.REFUSE),  # INIT-26
    (_S.IN_USE, _I.REQUEST): (_S.IN_USE, _V.SERVE),
    (_S.IN_USE, _I.NOTIFICATION): (_S.IN_USE, _V.SERVE),
    (_S.IN_USE, _I.SUCCEEDED): (_S.IN_USE, _V.IMPOSSIBLE),
    (_S.IN_USE, _I.FAILED): (_S.IN_USE, _V.IMPOSSIBLE),
}


class Handshake:
    """The state of one connection."""

    def __init__(self) -> None:
        self.state = State.NEW

    def step(self, input: Input) -> Verdict:
        self.state, verdict = TABLE[self.state, input]
        return verdict
