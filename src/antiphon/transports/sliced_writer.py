"""SlicedWriter: writes large data to a socket in slices, as fast as the peer reads.

An asyncio transport copies data that the operating system does not accept at once: for a large frame and many
slow clients, one copy per client. A `SlicedWriter` keeps a reference and an offset instead, and links that
write the same large data share the same bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from weakref import WeakValueDictionary

SLICE = 128 * 1024
"""Bytes that the transport gets at once."""
LARGE = 2 * SLICE
"""The size from which links share equal data."""


class SharedBytes:
    """Large data that one or more links are writing."""

    __slots__ = ("__weakref__", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data


_shared: WeakValueDictionary[bytes, SharedBytes] = WeakValueDictionary()


def share(data: bytes) -> SharedBytes:
    """Return the object that all links share which are writing this data."""
    found = _shared.get(data)
    if found is None:
        found = _shared[data] = SharedBytes(data)
    return found


class SlicedWriter:
    """Writes in order. `write` hands bytes to the transport; its owner calls `pause` and `resume` as the
    transport does."""

    def __init__(self, write: Callable[[bytes | memoryview], None]) -> None:
        self._write = write
        self._paused = False
        self._waiting: deque[tuple[SharedBytes | None, memoryview]] = deque()

    @property
    def size(self) -> int:
        """Bytes that the transport has not got yet."""
        return sum([len(view) for _, view in self._waiting])

    def write(self, data: bytes) -> None:
        if len(data) <= SLICE and not self._waiting:
            self._write(data)
            return
        shared = share(data) if len(data) >= LARGE else None
        self._waiting.append((shared, memoryview(data if shared is None else shared.data)))
        self._write_slices()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> bool:
        """Continue to write. Return whether the transport accepts more than the waiting data."""
        self._paused = False
        self._write_slices()
        return not self._paused and not self._waiting

    def drop(self) -> None:
        """Drop the waiting data."""
        self._waiting.clear()

    def _write_slices(self) -> None:
        waiting = self._waiting
        while waiting and not self._paused:
            shared, view = waiting.popleft()
            if len(view) > SLICE:
                waiting.appendleft((shared, view[SLICE:]))
            self._write(view[:SLICE])  # may call `pause`
