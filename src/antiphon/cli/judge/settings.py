"""What the command lines of `antiphon check` say, and its exit codes. Light: help texts are made from it."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Judged(IntEnum):
    """An exit code of `antiphon check`, and its meaning."""

    meaning: str

    def __new__(cls, number: int, meaning: str) -> Judged:
        code = int.__new__(cls, number)
        code._value_ = number
        code.meaning = meaning
        return code

    KEPT = 0, "no requirement is broken, or only those that --expected-failures lists"
    BROKEN = 1, "a requirement is broken, or an entry of --expected-failures is stale"
    USAGE = 2, "the command line is wrong, or a file cannot be read or written"
    UNREACHABLE = 3, "the peer cannot be started or reached, or nothing about it could be judged"
    FAULT = 4, "the judge itself failed: the verdicts are incomplete"
    CANCELLED = 130, "interrupted by Ctrl-C"


class Settings(NamedTuple):
    """How to judge."""

    revision: str | None = None
    prompts: dict[str, str] = {}  # noqa: RUF012  # never changed
    only: tuple[str, ...] = ()
    list: bool = False
    explain: str | None = None
    seed: int = 0
    timeout: float = 30.0
    deadline: float = 180.0
    jobs: int = 4


class Outputs(NamedTuple):
    """Files to write; `-` is stdout."""

    json: str | None = None
    junit: str | None = None
    html: str | None = None
    badge: str | None = None
    expected_failures: str | None = None
    """A file to read."""
