"""The audit log: one JSON line per act, with the token, the session, the time and the outcome.

Lines have names and ids only, no secrets and no content. The log is bounded, so a token that causes lines
without end would rotate away what others did. Each token therefore has a budget of lines. Acts over the
budget are counted, and the log gets one line with the counts per minute.
"""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from antiphon.hub.access.limits import Rate
from antiphon.live.presence import rfc3339
from antiphon.private_files import NotPrivate, open_private

logger = logging.getLogger("antiphon.hub")

SIZE = 8 * 1024 * 1024
OLD = 3
"""Full files that are kept besides the current one."""
CLIP = 200
"""Characters of one value."""
REFUSALS = frozenset({"forbidden", "refused", "limit", "failed"})
"""First words of outcomes of acts that did not happen."""
REPEATED = frozenset({"prompt", "cancel", "config", "annotate", "call", "read", "disconnect"})
"""Acts that a client repeats in normal use. They share one budget."""
COUNT_SECONDS = 60.0
"""Seconds between two lines with counts of one token."""


class Size(NamedTuple):
    burst: int
    per_minute: int


REFUSED = Size(120, 10)
BUSY = Size(600, 60)
EACH = Size(120, 20)


class Audit:
    """Writes the audit log. Without a path it writes nothing. It logs the first failed write and drops the
    whole line."""

    def __init__(
        self, path: Path | None = None, *, size: int = SIZE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._size = size
        self._budget = AuditBudget(clock=clock)
        self._fd: int | None = None
        self._written = 0
        self._failed = False

    def note(
        self, act: str, outcome: str, *, token: str | None = None, session: str | None = None, **about: Any
    ) -> bool:
        """Write a line if the token's budget has room for it, else count it. Return whether it was written.

        An act without a token is the hub's own and uses the budget of its session. Values of `None` are
        omitted.
        """
        if self._path is None:
            return True
        listed = self._budget.take(act, outcome, token=token, session=session)
        if listed:
            self._write(act, outcome, token=token, session=session, **about)
        self.write_counts()
        return listed

    def write_counts(self, *, all: bool = False) -> None:
        """Write the counts of acts that got no line: those that are due, or `all`."""
        for names, counts in self._budget.due(all=all) if self._path is not None else ():
            self._write("unlisted", "counted", **names, counts=counts)

    def close(self) -> None:
        self.write_counts(all=True)
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _write(self, act: str, outcome: str, **about: Any) -> None:
        at = rfc3339(time.time_ns() // 1_000_000)
        values = {name: _printable(value) for name, value in about.items() if value is not None}
        line = msgspec.json.encode({"at": at, "act": act, "outcome": _printable(outcome), **values}) + b"\n"
        try:
            self._append(line)
        except (OSError, NotPrivate) as error:
            if not self._failed:
                why = error.strerror if isinstance(error, OSError) else error
                logger.warning("audit log not written: %s", why)
            self._failed = True

    def _append(self, line: bytes) -> None:
        fd, written = self._open(len(line)), 0
        try:
            while written < len(line):
                written += os.write(fd, line[written:])
        except OSError:
            if written:  # a full disk takes a part of a line, to which the next line would be joined
                os.ftruncate(fd, os.fstat(fd).st_size - written)
            raise
        self._written += written

    def _open(self, more: int) -> int:
        assert self._path is not None
        if self._fd is not None and self._written + more > self._size:
            os.close(self._fd)
            self._fd = None
            _rotate(self._path)
        if self._fd is None:
            self._fd = open_private(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            self._written = os.fstat(self._fd).st_size
        return self._fd


class AuditBudget:
    """Three kinds of lines have separate budgets, so that none can hide another: refusals, repeated acts, and
    each other act."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        sizes = (REFUSED, BUSY, EACH)
        self._rates = {size: Rate(size.per_minute, burst=size.burst, clock=clock) for size in sizes}
        self._unlisted: dict[str, tuple[float, dict[str, str], Counter[str]]] = {}
        """By token or session: when the counts are due, the name to write, and the counts."""

    def take(self, act: str, outcome: str, *, token: str | None, session: str | None) -> bool:
        """Return whether there is room for one more line, and take it; otherwise count the act."""
        name, value = ("session", session) if token is None else ("token", token)
        if value is None:
            return True  # `Admission` bounds the lines of clients without a token
        key = f"{name} {value}"
        result = outcome.partition(":")[0]
        kind, size = _kind(act, result)
        if self._rates[size].take(f"{kind} {key}"):
            return True
        unlisted = (self._clock() + COUNT_SECONDS, {name: value}, Counter[str]())
        self._unlisted.setdefault(key, unlisted)[2][f"{act} {result}"] += 1
        return False

    def due(self, *, all: bool = False) -> list[tuple[dict[str, str], dict[str, int]]]:
        """Take the counts that are due, or `all`, each with the token or session to name."""
        if not self._unlisted:
            return []
        now = self._clock()
        keys = [key for key, (at, _, _) in self._unlisted.items() if all or at <= now]
        taken = [self._unlisted.pop(key) for key in keys]
        return [(names, dict(counts)) for _, names, counts in taken]


def _kind(act: str, result: str) -> tuple[str, Size]:
    if result in REFUSALS:
        return "refused", REFUSED
    return ("repeated", BUSY) if act in REPEATED else (act, EACH)


def _rotate(path: Path) -> None:
    files = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, OLD + 1))]
    for newer, older in reversed(list(itertools.pairwise(files))):
        if newer.exists():
            os.replace(newer, older)


def _printable(value: Any) -> Any:
    """Clip a value and replace its unprintable characters: clients choose some of the values."""
    if isinstance(value, int | float):
        return value
    if isinstance(value, dict):
        return {_printable(key): _printable(each) for key, each in value.items()}
    text = str(value)[:CLIP]
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
