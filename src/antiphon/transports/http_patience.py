"""How much an HTTP connection may hold, and how long a client that does not read is waited for (HTTP-23)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from antiphon.transports.http_frames import ID_LENGTH


class Bounds(Struct, frozen=True, kw_only=True):
    """What one connection may hold."""

    waiting: int = 512 * 1024
    """Bytes that nobody has read yet; above that, whoever sends waits."""
    most: int = 72 * 1024 * 1024
    """Of those, where somebody does not wait: the connection ends. One frame of the largest size is less."""
    window: int = 1024 * 1024
    """Bytes of each stream that stay after they were sent."""
    kept: int = 1024 * 1024
    """And of those from before that which no journal gives again."""
    streams: int = 1024
    """Streams of sessions that nobody reads from."""
    id_length: int = ID_LENGTH
    stall: float = 60.0
    """Seconds without anything read while something waits, or without any stream."""
    keep_alive: float = 15.0
    initialize: float = 60.0


class Patience:
    """Calls `over`, with the reason, when it has been waited for so long."""

    def __init__(self, seconds: float, over: Callable[[str], None]) -> None:
        self._seconds = seconds
        self._over = over
        self._timer: asyncio.TimerHandle | None = None

    def wait(self) -> None:
        """Something was read, or nobody is there any more: it is waited from here on."""
        self.stop()
        why = f"nobody has read from it for {self._seconds:g} s"
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._over, why)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
