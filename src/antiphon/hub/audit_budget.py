"""AuditBudget: how many lines of the audit log a token may cause.

The log is bounded, so lines without end would rotate away what others did, and what the token itself did
before. Three kinds of lines have budgets of their own, so that none of them can hide another: refusals, acts
that are repeated in normal use, and each of the remaining acts. A budget takes a burst and refills slowly.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

REFUSALS = frozenset({"forbidden", "refused", "limit", "failed"})
"""How outcomes begin that say that nothing was done."""
REPEATED = frozenset({"prompt", "cancel", "config", "annotate", "call", "read", "disconnect"})
"""Acts that a client repeats in normal use. They share one budget."""
SECONDS = 60.0
"""Between two lines that count what was not listed, per token."""
MOST = 4096
"""Budgets that are remembered. One that is full again need not be."""


class Size(NamedTuple):
    burst: int
    per_minute: float


REFUSED = Size(120, 10)
BUSY = Size(600, 60)
EACH = Size(120, 20)


class _Left(NamedTuple):
    lines: float
    at: float
    size: Size

    def now(self, now: float) -> float:
        return min(float(self.size.burst), self.lines + (now - self.at) * self.size.per_minute / 60)


class AuditBudget:
    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: dict[tuple[str, str], _Left] = {}
        """By who causes the lines, and by their kind."""
        self._unlisted: dict[str, tuple[float, dict[str, str], Counter[str]]] = {}
        """By who caused them: when they may be told, whom to name, and how many there were of each."""

    def take(self, act: str, outcome: str, *, token: str | None, session: str | None) -> bool:
        """Return whether there is room for one more line, which then counts; otherwise count it."""
        who = {"session": session} if token is None else {"token": token}
        named = {name: value for name, value in who.items() if value is not None}
        if not named:
            return True  # strangers have the budget of the doorkeeper
        key = "".join(f"{name} {value}" for name, value in named.items())
        came = outcome.partition(":")[0]
        kind, size = _kind(act, came)
        now = self._clock()
        before = self._left.get((key, kind), _Left(size.burst, now, size)).now(now)
        allowed = before >= 1
        self._left[key, kind] = _Left(before - 1 if allowed else before, now, size)
        if not allowed:
            _, _, counts = self._unlisted.setdefault(key, (now + SECONDS, named, Counter()))
            counts[f"{act} {came}"] += 1
        if len(self._left) > MOST:
            self._left = {k: left for k, left in self._left.items() if left.now(now) < left.size.burst}
        return allowed

    def due(self, *, all: bool = False) -> list[tuple[dict[str, str], dict[str, int]]]:
        """Return whom to name, and what was not listed, of those whose counts are to be told now."""
        if not self._unlisted:
            return []
        now = self._clock()
        keys = [key for key, (at, _, _) in self._unlisted.items() if all or at <= now]
        told = [self._unlisted.pop(key) for key in keys]
        return [(named, dict(counts)) for _, named, counts in told]


def _kind(act: str, came: str) -> tuple[str, Size]:
    if came in REFUSALS:
        return "refused", REFUSED
    return ("repeated", BUSY) if act in REPEATED else (act, EACH)
