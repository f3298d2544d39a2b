"""Tickets: short-lived secrets for one use. They are kept in memory only."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from antiphon.hub.access.tokens import hashed

T = TypeVar("T")

MANY = 1000
"""Tickets that are valid at a time. A further one replaces the oldest."""


class Tickets(Generic[T]):
    def __init__(
        self, seconds: float, *, most: int = MANY, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds = seconds
        self._most = most
        self._clock = clock
        self._out: dict[str, tuple[float, T]] = {}
        """Keyed by hash, so that the time of a lookup reveals nothing of a secret."""

    def issue(self, value: T) -> str:
        now = self._clock()
        while self._out:  # all are valid for the same time, so the oldest expires first
            oldest = next(iter(self._out))
            if self._out[oldest][0] > now and len(self._out) < self._most:
                break
            del self._out[oldest]
        secret = secrets.token_urlsafe(32)
        self._out[hashed(secret)] = now + self.seconds, value
        return secret

    def redeem(self, secret: str) -> T | None:
        """Return the value that a ticket was issued for, or `None` if it was used before or is expired."""
        found = self._out.pop(hashed(secret), None)
        return found[1] if found is not None and self._clock() < found[0] else None
