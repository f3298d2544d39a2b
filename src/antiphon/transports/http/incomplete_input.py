"""IncompleteInput: bytes of requests and messages that no handler has taken yet, counted per token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager


class IncompleteInput:
    """Bounds the input that the server keeps for one token, over any number of sockets."""

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

    @contextmanager
    def counting(self, who: Hashable) -> Iterator[Callable[[int], bool]]:
        """Count one input of `who` inside the block. Yield a function that sets its size, and returns whether
        all of them are within the bound."""
        before = 0

        def resize(size: int) -> bool:
            nonlocal before
            changed, before = size - before, size
            return self.change(who, 0, changed)

        try:
            yield resize
        finally:
            resize(0)

    def of(self, who: Hashable) -> int:
        """Return the bytes that are kept for `who` now."""
        return self._sizes[who]
