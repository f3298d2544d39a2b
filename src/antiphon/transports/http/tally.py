"""Tally: how many requests were answered how. Each is counted once, whatever its answer holds."""

from __future__ import annotations

from collections import Counter

METHODS = frozenset({"DELETE", "GET", "HEAD", "POST"})
OTHER = "other"
"""Any other method, and what was refused before it was known: whoever comes cannot make up more of them."""
REFUSALS = frozenset({401, 403, 408, 413, 429, 431, 503})
"""Of those who are not let in, or take too much, or too long."""


class Tally:
    def __init__(self) -> None:
        self._answers: Counter[tuple[str, int]] = Counter()

    def add(self, method: str, status: int) -> None:
        self._answers[method if method in METHODS else OTHER, status] += 1

    @property
    def requests(self) -> Counter[tuple[str, str]]:
        """By method and class of status, such as `2xx`; a WebSocket that was opened is `1xx`."""
        found: Counter[tuple[str, str]] = Counter()
        for (method, status), count in self._answers.items():
            found[method, f"{status // 100}xx"] += count
        return found

    @property
    def refused(self) -> Counter[int]:
        """By status."""
        found: Counter[int] = Counter()
        for (_, status), count in self._answers.items():
            if status in REFUSALS:
                found[status] += count
        return found
