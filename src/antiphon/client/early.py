"""EarlyUpdates: what came of sessions that are not known yet, in case they soon are.

An agent may name sessions that will never be known: what is kept for them is bounded by number and by bytes,
and costs the same for each update, however many sessions are named.
"""

from __future__ import annotations

import logging
from typing import Any, Generic, TypeVar

import msgspec

from antiphon.connection.fault_log import FaultLog

logger = logging.getLogger("antiphon.client")

T = TypeVar("T")
_encode = msgspec.json.Encoder().encode


def size_of(params: Any) -> int:
    """The bytes of the params of a notification."""
    return len(_encode(params))


class EarlyUpdates(Generic[T]):
    """Above its bounds, all that came of the session that was named first is dropped."""

    def __init__(self, *, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: dict[str, list[T]] = {}
        self._sizes: dict[str, int] = {}
        self._count = 0
        self._bytes = 0
        self._dropped = FaultLog(logger, "updates of an unknown session were dropped")

    def __len__(self) -> int:
        return self._count

    @property
    def full(self) -> bool:
        return self._count >= self._most

    @property
    def sessions(self) -> list[str]:
        return list(self._kept)

    def put(self, session_id: str, one: T, size: int) -> None:
        self._kept.setdefault(session_id, []).append(one)
        self._sizes[session_id] = self._sizes.get(session_id, 0) + size
        self._count += 1
        self._bytes += size
        while self._count > self._most or self._bytes > self._most_bytes:
            oldest = next(iter(self._kept))
            self._dropped.note(f"{len(self.take(oldest))} of session {oldest[:100]!r}")

    def take(self, session_id: str) -> list[T]:
        """All that came of a session; it is not kept any longer."""
        taken = self._kept.pop(session_id, [])
        self._count -= len(taken)
        self._bytes -= self._sizes.pop(session_id, 0)
        return taken

    def clear(self) -> None:
        self._kept.clear()
        self._sizes.clear()
        self._count = self._bytes = 0
