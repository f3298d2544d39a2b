"""Paced writing: large data goes to a socket in slices, as fast as the other side reads.

An asyncio transport copies what the operating system does not take at once. For a large frame and many slow
clients that is a copy each. Here a link holds a reference and an offset instead, and links that are about to
write the same large data hold the same bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from weakref import WeakValueDictionary

SLICE = 128 * 1024
"""Bytes that are handed to a transport at once."""
LARGE = 2 * SLICE
"""From this size on, links that hold the same data share it."""


class SharedBytes:
    """Large data that is on its way over one link or several."""

    __slots__ = ("__weakref__", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data


_on_their_way: WeakValueDictionary[bytes, SharedBytes] = WeakValueDictionary()


def share(data: bytes) -> SharedBytes:
    """The same data, as the one object that all links hold which have it on its way."""
    found = _on_their_way.get(data)
    if found is None:
        found = _on_their_way[data] = SharedBytes(data)
    return found


class PacedWriter:
    """Writes in order. `write` hands bytes to the transport; `pause` and `resume` say when that has enough,
    and when it takes more."""

    def __init__(self, write: Callable[[bytes | memoryview], None]) -> None:
        self._write = write
        self._paused = False
        self._waiting: deque[tuple[SharedBytes | None, memoryview]] = deque()

    @property
    def size(self) -> int:
        """Bytes that the transport has not been handed yet."""
        return sum([len(view) for _, view in self._waiting])

    def write(self, data: bytes) -> None:
        if len(data) <= SLICE and not self._waiting:
            self._write(data)
            return
        shared = share(data) if len(data) >= LARGE else None
        self._waiting.append((shared, memoryview(data if shared is None else shared.data)))
        self._go_on()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> bool:
        """Go on writing; whether the transport takes more than what waits here."""
        self._paused = False
        self._go_on()
        return not self._paused and not self._waiting

    def drop(self) -> None:
        """Nothing more can be written."""
        self._waiting.clear()

    def _go_on(self) -> None:
        waiting = self._waiting
        while waiting and not self._paused:
            shared, view = waiting.popleft()
            if len(view) > SLICE:
                waiting.appendleft((shared, view[SLICE:]))
            self._write(view[:SLICE])  # may pause
