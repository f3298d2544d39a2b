"""Exit codes. The help text is made from this table."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum


class Exit(IntEnum):
    """An exit code: its number, its meaning, and the stop reason of a turn that ends with it."""

    meaning: str
    stop_reason: str

    def __new__(cls, number: int, meaning: str, stop_reason: str = "") -> Exit:
        code = int.__new__(cls, number)
        code._value_ = number
        code.meaning, code.stop_reason = meaning, stop_reason
        return code

    DONE = 0, "the agent finished its turn"
    ERROR = 1, "an error of the agent, its start, its connection or its protocol version", "error"
    USAGE = 2, "the command line is wrong"
    REFUSAL = 3, "the agent refused (refusal)", "refusal"
    MAX_TOKENS = 4, "the agent reached its token limit (max_tokens)", "max_tokens"
    MAX_TURN_REQUESTS = 5, "the agent reached its request limit (max_turn_requests)", "max_turn_requests"
    LOGIN = 6, "the agent requires a login"
    TIMEOUT = 124, "--timeout elapsed"
    NOT_EXECUTABLE = 126, "the agent cannot be executed"
    NOT_FOUND = 127, "the agent is not installed"
    CANCELLED = 130, "cancelled by Ctrl-C, confirmed by the agent", "cancelled"
    KILLED = 137, "killed by a second Ctrl-C"
    TERMINATED = 143, "terminated by SIGTERM or SIGHUP, together with the agent"

    @classmethod
    def of_stop_reason(cls, reason: str | None) -> Exit:
        """Return the code for a stop reason. A missing or unknown reason is not a failure."""
        return next((code for code in cls if reason and code.stop_reason == reason), cls.DONE)


class Failure(Exception):
    """Ends the command with a line on stderr and an exit code. `more` has further lines: what an agent wrote,
    and what to do."""

    def __init__(self, line: str, code: Exit = Exit.ERROR, *, more: Sequence[str] = ()) -> None:
        super().__init__(line)
        self.code = code
        self.more = tuple(each for each in more if each)
