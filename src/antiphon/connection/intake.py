"""Intake: handles a bounded number of frames per turn of the event loop, so that other peers are served.

One read of a pipe or socket may return thousands of small frames. While some of them wait for the next turn,
nothing more is read from the peer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from antiphon.jsonrpc.lines import Received

MOST = 512
"""Frames that are handled in one turn of the event loop."""
SECONDS = 0.005
"""Seconds of one turn after which the remaining frames wait for the next turn."""

Handle = Callable[[list[Received], Callable[[], bool]], list[Received]]
"""Handles frames until the second argument returns true. Returns the remaining frames."""


class ReadingPause:
    """Pauses a transport while at least one object holds it."""

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause = pause
        self._resume = resume
        self._held: set[object] = set()

    def hold(self, by: object) -> None:
        if not self._held:
            self._pause()
        self._held.add(by)

    def release(self, by: object) -> None:
        if by in self._held:
            self._held.discard(by)
            if not self._held:
                self._resume()


class Intake:
    def __init__(self, handle: Handle, reading: ReadingPause) -> None:
        self._handle = handle
        self._reading = reading
        self._waiting: list[Received] = []
        self._next: asyncio.Handle | None = None

    def receive(self, frames: list[Received]) -> None:
        if self._waiting:
            self._waiting += frames
        else:
            self._take(frames)

    def finish(self) -> None:
        """Handle all waiting frames now, because another link replaces the one that they came from."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._handle(waiting, lambda: False)
        self._release()

    def drop(self) -> None:
        """Drop the waiting frames."""
        self._waiting = []
        self._release()

    def _take(self, frames: list[Received]) -> None:
        until = time.perf_counter() + SECONDS
        left = self._handle(frames[:MOST], lambda: time.perf_counter() > until)
        if len(frames) > MOST:
            left = left + frames[MOST:]
        self._waiting = left + self._waiting
        if self._waiting:
            self._next = asyncio.get_running_loop().call_soon(self._continue)
            self._reading.hold(self)
        else:
            self._release()

    def _continue(self) -> None:
        self._next = None
        waiting, self._waiting = self._waiting, []
        self._take(waiting)

    def _release(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None
        self._reading.release(self)
