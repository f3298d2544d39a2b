"""Intake: what one peer sends is handled a bounded amount at a time, so that others are served in between.

One read of a pipe or a socket may bring thousands of small frames. They are handled in turns of the event
loop; while some wait for their turn, nothing more is read from the peer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from antiphon.jsonrpc.lines import Received

MOST = 512
"""Frames that are handled in one turn of the event loop."""
SECONDS = 0.005
"""After so long in one turn the rest waits for the next one."""

Handle = Callable[[list[Received], Callable[[], bool]], list[Received]]
"""Handles frames until it is told that the time is over; returns those that are left."""


class Brake:
    """Stops the reading of a transport for as long as anybody holds it."""

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
    def __init__(self, handle: Handle, brake: Brake) -> None:
        self._handle = handle
        self._brake = brake
        self._waiting: list[Received] = []
        self._next: asyncio.Handle | None = None

    def receive(self, frames: list[Received]) -> None:
        if self._waiting:
            self._waiting += frames
        else:
            self._take(frames)

    def finish(self) -> None:
        """Handle all that waits, now: another link takes the place of the one that it came over."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._handle(waiting, lambda: False)
        self._rest()

    def drop(self) -> None:
        """Nobody wants what waits."""
        self._waiting = []
        self._rest()

    def _take(self, frames: list[Received]) -> None:
        until = time.perf_counter() + SECONDS
        left = self._handle(frames[:MOST], lambda: time.perf_counter() > until)
        if len(frames) > MOST:
            left = left + frames[MOST:]
        self._waiting = left + self._waiting
        if self._waiting:
            self._next = asyncio.get_running_loop().call_soon(self._go_on)
            self._brake.hold(self)
        else:
            self._rest()

    def _go_on(self) -> None:
        self._next = None
        waiting, self._waiting = self._waiting, []
        self._take(waiting)

    def _rest(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None
        self._brake.release(self)
