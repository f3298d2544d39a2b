"""HeldBytes: input that was begun and is not complete, summed up by whose it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable


class HeldBytes:
    """One token cannot make a server hold more than the bound, over however many sockets."""

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self._held: Counter[Hashable] = Counter()

    def change(self, who: Hashable, before: int, after: int) -> bool:
        """One of the inputs of `who` has grown or shrunk; whether all of them are within the bound."""
        if before == after:
            return True
        self._held[who] += after - before
        if self._held[who] <= 0:
            del self._held[who]
        return self._held[who] <= self.bound

    def of(self, who: Hashable) -> int:
        return self._held[who]
