"""Exit codes. The help text is made from this table."""

from __future__ import annotations

from enum import IntEnum

_MEANINGS = {
    0: "the agent finished its turn",
    1: "an error of the agent, its start, its connection or its protocol version",
    2: "the command line is wrong",
    3: "the agent refused (refusal)",
    4: "the agent reached its token limit (max_tokens)",
    5: "the agent reached its request limit (max_turn_requests)",
    6: "the agent requires a login",
    124: "--timeout elapsed",
    126: "the agent cannot be executed",
    127: "the agent is not installed",
    130: "cancelled by Ctrl-C, confirmed by the agent",
    137: "killed by a second Ctrl-C",
    143: "terminated by SIGTERM or SIGHUP, together with the agent",
}


class Exit(IntEnum):
    DONE = 0
    ERROR = 1
    USAGE = 2
    REFUSAL = 3
    MAX_TOKENS = 4
    MAX_TURN_REQUESTS = 5
    LOGIN = 6
    TIMEOUT = 124
    NOT_EXECUTABLE = 126
    NOT_FOUND = 127
    CANCELLED = 130
    KILLED = 137
    TERMINATED = 143

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]

    @classmethod
    def of_stop_reason(cls, reason: str | None) -> Exit:
        """Return the code for a stop reason. A missing or unknown reason is not a failure."""
        return _OF_REASON.get(reason or "", cls.DONE)


_OF_REASON = {
    "refusal": Exit.REFUSAL,
    "max_tokens": Exit.MAX_TOKENS,
    "max_turn_requests": Exit.MAX_TURN_REQUESTS,
    "cancelled": Exit.CANCELLED,
    "error": Exit.ERROR,
}


class Failure(Exception):
    """Ends the command with one line on stderr and an exit code."""

    def __init__(self, line: str, code: Exit = Exit.ERROR) -> None:
        super().__init__(line)
        self.code = code
