"""Limits: how much of a hub its clients may use."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from msgspec import Struct

from antiphon.errors import RequestError
from antiphon.jsonrpc.lines import DEFAULT_BOUND

LIMITED = -32004
REMEMBERED = 4096
"""Keys that a `Rate` remembers. It forgets a key that has its full burst again."""


def limited(limit: str, why: str) -> RequestError:
    """Return the error for a request that exceeds the limit of a name."""
    return RequestError(LIMITED, why, data={"reason": "limit", "limit": limit})


def limit_of(error: Exception) -> str | None:
    """Return the name of the limit in an error that `limited` made."""
    if not isinstance(error, RequestError) or error.to_wire().code != LIMITED:
        return None
    data = error.to_wire().data
    found = data.get("limit") if isinstance(data, dict) else None
    return found if isinstance(found, str) else None


class HubLimits(Struct, frozen=True, kw_only=True):
    """The limits of one hub. Exceeding one fails the request and is in the audit log."""

    frame: int = DEFAULT_BOUND
    """Bytes of one client frame; over HTTP, of one body."""
    connections: int = 4096
    connections_per_token: int = 1024
    sessions: int = 1000
    """Sessions that are open at a time."""
    prompts_per_minute: int = 600
    """Prompts of all clients with one token, including edits of queued prompts."""
    searches_per_minute: int = 600
    """Searches of all clients with one token. A page searches while its user types."""
    queued_prompts: int = 1000
    """Queued prompts of one session."""
    queued_bytes: int = DEFAULT_BOUND
    """Bytes of the queued prompts of one session. A single queued prompt may have more."""
    queued_bytes_per_token: int = 4 * DEFAULT_BOUND
    """Bytes of the queued prompts of all sessions, by the token that wrote them last."""
    bytes_per_minute: int = 4 * DEFAULT_BOUND
    """Bytes of all stored requests with one token: prompts, edits, answers, annotations, titles. Each counts
    as 1 KiB at least. Cancels and closes are free."""
    bytes_in_progress: int = 2 * DEFAULT_BOUND
    """Bytes of all requests with one token that are being handled, such as those that an agent has not
    answered."""
    head_seconds: float = 10.0
    """Seconds from the first byte of a request to the end of its head."""
    body_seconds: float = 30.0


class Spent:
    """What was counted against the limits per minute, for other hubs to count it too."""

    def __init__(self) -> None:
        self.prompts: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        """By the names of tokens."""

    def take(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return prompts and bytes since the last time."""
        taken = dict(self.prompts), dict(self.bytes)
        self.prompts.clear()
        self.bytes.clear()
        return taken


class Rate:
    """A token bucket per key: a burst at once, refilled at `per_minute`."""

    def __init__(
        self, per_minute: float, *, burst: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`burst` is `per_minute` by default."""
        self._per_second = per_minute / 60
        self._burst = float(per_minute if burst is None else burst)
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}
        """The rest of each key, and the time at which it was that."""

    def take(self, key: str, amount: int = 1) -> bool:
        """Return whether one more is allowed, and count it as `amount`. A large amount may leave a debt: it
        is allowed if anything is left, and later ones wait until the debt is paid."""
        allowed = self._now(key) >= 1
        if allowed:
            self.charge(key, amount)
        return allowed

    def charge(self, key: str, amount: int) -> None:
        """Count an amount that was allowed elsewhere. It may leave a debt."""
        now = self._clock()
        self._left[key] = self._now(key) - amount, now
        if len(self._left) > REMEMBERED:
            self._left = {
                key: (left, at)
                for key, (left, at) in self._left.items()
                if left + (now - at) * self._per_second < self._burst
            }

    def _now(self, key: str) -> float:
        now = self._clock()
        left, at = self._left.get(key, (self._burst, now))
        return min(self._burst, left + (now - at) * self._per_second)
