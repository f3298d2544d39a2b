"""EarlyUpdates: keeps updates of sessions that are not known yet.

An agent may name sessions that never become known. So the number and the bytes of kept updates are bounded,
and each update costs the same, however many sessions are named.
"""

from __future__ import annotations

import logging
from typing import Any, Generic, TypeVar

import msgspec

from antiphon.connection.fault_log import FaultLog

logger = logging.getLogger("antiphon.client")

T = TypeVar("T")
_encode = msgspec.json.Encoder().encode


def encoded_size(params: Any) -> int:
    """The size in bytes of the params of a notification."""
    return len(_encode(params))


class EarlyUpdates(Generic[T]):
    """Above its bounds it drops all updates of the session that was named first."""

    def __init__(self, *, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: dict[str, list[tuple[T, int]]] = {}
        """The updates of each session, with their sizes."""
        self._count = 0
        self._bytes = 0
        self._dropped = FaultLog(logger, "updates of an unknown session were dropped")

    def __len__(self) -> int:
        return self._count

    @property
    def sessions(self) -> list[str]:
        return list(self._kept)

    def put(self, session_id: str, update: T, size: int) -> None:
        self._kept.setdefault(session_id, []).append((update, size))
        self._count += 1
        self._bytes += size
        while self._count > self._most or self._bytes > self._most_bytes:
            oldest = next(iter(self._kept))
            self._dropped.note(f"{len(self.take(oldest))} of session {oldest[:100]!r}")

    def take(self, session_id: str) -> list[T]:
        """Remove and return all updates of a session."""
        taken = self._kept.pop(session_id, [])
        self._count -= len(taken)
        self._bytes -= sum(size for _, size in taken)
        return [update for update, _ in taken]

    def clear(self) -> None:
        self._kept.clear()
        self._count = self._bytes = 0
