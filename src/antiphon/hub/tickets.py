"""Tickets: secrets of few seconds or minutes that are good for one use, kept in memory alone."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from antiphon.hub.tokens import hashed

T = TypeVar("T")

MANY = 1000
"""How many may be out at a time; of more, the oldest are void."""


class Tickets(Generic[T]):
    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._out: dict[str, tuple[float, T]] = {}
        """By hash: to look one up takes no time that would tell of its letters."""

    def issue(self, value: T) -> str:
        now = self._clock()
        for old in [key for key, (until, _) in self._out.items() if until <= now]:
            del self._out[old]
        while len(self._out) >= MANY:
            del self._out[next(iter(self._out))]
        secret = secrets.token_urlsafe(32)
        self._out[hashed(secret)] = now + self.seconds, value
        return secret

    def redeem(self, secret: str) -> T | None:
        """What it was issued for; the second time, or too late, nothing."""
        return self._valid(self._out.pop(hashed(secret), None))

    def see(self, secret: str) -> T | None:
        """The same, of one that is shown many times, as a cookie is."""
        return self._valid(self._out.get(hashed(secret)))

    def _valid(self, found: tuple[float, T] | None) -> T | None:
        return found[1] if found is not None and self._clock() < found[0] else None
