"""RequestCounts: how many requests a server answered, by method and status."""

from __future__ import annotations

from collections import Counter

METHODS = frozenset({"DELETE", "GET", "HEAD", "POST"})
OTHER = "other"
"""Any other method, or a request that was refused before its method was read. Clients cannot add labels."""
REFUSALS = frozenset({401, 403, 408, 413, 429, 431, 503})
"""Statuses of clients that are not admitted, send too much, or take too long."""


class RequestCounts:
    """Counts each request once, whatever its response contains."""

    def __init__(self) -> None:
        self._answers: Counter[tuple[str, int]] = Counter()

    def add(self, method: str, status: int) -> None:
        self._answers[method if method in METHODS else OTHER, status] += 1

    @property
    def requests(self) -> Counter[tuple[str, str]]:
        """Requests by method and class of status, such as `2xx`. An opened WebSocket counts as `1xx`."""
        found: Counter[tuple[str, str]] = Counter()
        for (method, status), count in self._answers.items():
            found[method, f"{status // 100}xx"] += count
        return found

    @property
    def refused(self) -> Counter[int]:
        """Refused requests by status."""
        found: Counter[int] = Counter()
        for (_, status), count in self._answers.items():
            if status in REFUSALS:
                found[status] += count
        return found
