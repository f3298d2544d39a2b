"""IncompleteInput: bytes of requests and messages that are not complete yet, counted per token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable


class IncompleteInput:
    """Bounds the incomplete input that the server keeps for one token, over any number of sockets."""

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self._sizes: Counter[Hashable] = Counter()

    def change(self, who: Hashable, before: int, after: int) -> bool:
        """Change the size of one input of `who`. Return whether all of them together are within the bound."""
        if before == after:
            return True
        self._sizes[who] += after - before
        if self._sizes[who] <= 0:
            del self._sizes[who]
        return self._sizes[who] <= self.bound

    def of(self, who: Hashable) -> int:
        """Return the bytes that are kept for `who` now."""
        return self._sizes[who]
