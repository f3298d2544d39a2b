"""Limits: how much somebody who was let in may take of a hub."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct

from antiphon.jsonrpc.lines import DEFAULT_BOUND


class HubLimits(Struct, frozen=True, kw_only=True):
    frame: int = DEFAULT_BOUND
    """Bytes of one message of a client; over HTTP, of one body."""
    connections: int = 4096
    connections_per_token: int = 1024
    sessions: int = 1000
    """That are open at a time."""
    prompts_per_minute: int = 600
    """Of all clients with one token."""
    head_seconds: float = 10.0
    """Until the head of a request that has begun is there."""
    body_seconds: float = 30.0


class Rate:
    """So many in a minute, for each key; they may come at once, if none came before."""

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = per_minute
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}
        """What each may still do, and as of when."""

    def take(self, key: str) -> bool:
        """Whether one more is allowed, which then counts."""
        now = self._clock()
        left, at = self._left.get(key, (float(self._most), now))
        left = min(float(self._most), left + (now - at) * self._most / 60)
        allowed = left >= 1
        self._left[key] = (left - 1 if allowed else left), now
        return allowed
