"""Limits: how much somebody who was let in may take of a hub."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct

from antiphon.errors import RequestError
from antiphon.jsonrpc.lines import DEFAULT_BOUND

LIMITED = -32004
REMEMBERED = 4096
"""Keys of a `Rate` that are remembered."""


def limited(limit: str, why: str) -> RequestError:
    """Return the error of a request that is over a limit, by the name of that."""
    return RequestError(LIMITED, why, data={"reason": "limit", "limit": limit})


def limit_of(error: Exception) -> str | None:
    """Return the name of the limit that a request was over, where that is why it failed."""
    if not isinstance(error, RequestError) or error.to_wire().code != LIMITED:
        return None
    data = error.to_wire().data
    found = data.get("limit") if isinstance(data, dict) else None
    return found if isinstance(found, str) else None


class HubLimits(Struct, frozen=True, kw_only=True):
    frame: int = DEFAULT_BOUND
    """Bytes of one message of a client; over HTTP, of one body."""
    connections: int = 4096
    connections_per_token: int = 1024
    sessions: int = 1000
    """That are open at a time."""
    prompts_per_minute: int = 600
    """Of all clients with one token; edits of prompts that wait included."""
    queued_prompts: int = 1000
    """That wait in one session."""
    queued_bytes: int = DEFAULT_BOUND
    """Of the prompts that wait in one session. One that waits alone may have more."""
    queued_bytes_per_token: int = 4 * DEFAULT_BOUND
    """Of the prompts that wait in all sessions, by the token that wrote them last."""
    bytes_per_minute: int = 4 * DEFAULT_BOUND
    """Of all requests with one token that are kept: prompts, edits, answers, annotations, titles. Each counts
    as 1 KiB at least. Cancels and closes are free."""
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

    def take(self, key: str, amount: int = 1) -> bool:
        """Return whether one more is allowed, which then counts as `amount`. A large one may leave a debt: it
        is allowed where anything is, and the next ones wait."""
        now = self._clock()
        left, at = self._left.get(key, (float(self._most), now))
        left = min(float(self._most), left + (now - at) * self._most / 60)
        allowed = left >= 1
        self._left[key] = (left - amount if allowed else left), now
        if len(self._left) > REMEMBERED:
            self._left = {
                key: (left, at)
                for key, (left, at) in self._left.items()
                if left + (now - at) * self._most / 60 < self._most  # one that is full again says nothing
            }
        return allowed
