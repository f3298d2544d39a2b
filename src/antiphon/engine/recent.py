"""Recent: a dict that keeps the keys that were set last, so that it does not grow forever."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(dict[K, V]):
    """A dict of so many keys at most: those that were set last. Fill it by `recent[key] = value` alone."""

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)  # it counts as the latest again
        super().__setitem__(key, value)
        if len(self) > self._most:
            del self[next(iter(self))]
