"""Lanes: what belongs to one session is handled one at a time, in the order it was received.

A lane holds updates, session-scoped requests, and the responses that must not overtake them. It is
bounded by bytes: a lane over its bound stops the reading of the whole connection until it has caught up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from antiphon.errors import LaneOverflow

LANE_BOUND = 1024 * 1024
HARD_FACTOR = 16
"""How far over its bound a lane may grow while its own handler waits for an answer we must read."""

Act = Callable[[Any], Awaitable[None] | None]
"""One step in a lane: done when it returns, or when what it returned has been awaited."""


class Lane:
    """The ordered work of one session. `key` is the session's id; None is the connection itself."""

    __slots__ = ("_lanes", "_queue", "busy", "gate", "key", "serial", "size", "waiting", "worker")

    def __init__(self, key: str | None, lanes: Lanes) -> None:
        self.key = key
        self.size = 0
        self.busy = False
        self.serial = 0
        self.waiting: set[asyncio.Future[Any]] = set()
        """What the handler at work in this lane waits to be read."""
        self.worker: asyncio.Task[None] | None = None
        self.gate: asyncio.Future[None] | None = None
        """Set while a step was begun without a worker: whatever comes next waits for it."""
        self._lanes = lanes
        self._queue: deque[tuple[int, Act, Sequence[Any]]] = deque()

    @property
    def idle(self) -> bool:
        return not self.busy and not self._queue and self.gate is None

    @property
    def full(self) -> bool:
        """Whether reading must stop: not while this lane itself waits for something to be read."""
        return self.size > self._lanes.bound and not self.waiting

    def put(self, size: int, act: Act, arguments: Sequence[Any]) -> None:
        """Queue the same step for each of `arguments`: what is read together is queued together."""
        self._queue.append((size, act, arguments))
        self.size += size
        if self.size > self._lanes.bound:
            self._lanes.over_bound(self)
        if self.worker is None:
            self.worker = self._lanes.start(self._work())

    async def _work(self) -> None:
        queue, enter = self._queue, _inside.set
        try:
            if self.gate is not None:
                await self.gate
            while queue:
                size, act, arguments = queue.popleft()
                self.busy = True
                for argument in arguments:
                    self.serial = serial = self.serial + 1
                    enter((self, serial))
                    try:
                        result = act(argument)
                        if result is not None:
                            await result
                    except asyncio.CancelledError as error:
                        task = asyncio.current_task()
                        if task is None or task.cancelling():
                            raise
                        self._lanes.report(error)  # a handler awaited something that was cancelled
                    except Exception as error:
                        self._lanes.report(error)
                self.busy = False
                self.size -= size
                if self._lanes.choked:
                    self._lanes.relieved(self)
        finally:
            self.busy = False
            self.worker = None
            self._lanes.emptied(self)

    def drop(self, still: Act) -> None:
        for _, act, arguments in self._queue:
            if act is still:
                for argument in arguments:
                    act(argument)
        self._queue.clear()

    @contextmanager
    def waits_for(self, future: asyncio.Future[Any]) -> Iterator[None]:
        """While this lane's handler waits for `future`, a full lane does not stop the reading."""
        self.waiting.add(future)
        self._lanes.relieved(self)
        try:
            yield
        finally:
            self.waiting.discard(future)


class Lanes:
    """The lanes of one connection, and whether it may read on."""

    def __init__(
        self,
        *,
        bound: int,
        start: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        report: Callable[[BaseException], None],
    ) -> None:
        self.bound = bound
        self.start = start
        self.report = report
        self._lanes: dict[str | None, Lane] = {}
        self._over: set[Lane] = set()
        self._room = asyncio.Event()

    def get(self, key: str | None) -> Lane:
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(key, self)
        return lane

    def find(self, key: str) -> Lane | None:
        return self._lanes.get(key)

    @property
    def choked(self) -> bool:
        return bool(self._over)

    async def room(self) -> None:
        """Wait until every lane has room."""
        while any(lane.full for lane in self._over):
            self._room.clear()
            await self._room.wait()

    def over_bound(self, lane: Lane) -> None:
        self._over.add(lane)
        if lane.waiting and lane.size > self.bound * HARD_FACTOR:
            for future in lane.waiting:
                if not future.done():
                    future.set_exception(
                        LaneOverflow(
                            f"more than {lane.size} bytes piled up while a handler waited for a call"
                        )
                    )

    def relieved(self, lane: Lane) -> None:
        if lane.size <= self.bound // 2:
            self._over.discard(lane)
        self._room.set()

    def emptied(self, lane: Lane) -> None:
        """A lane with nothing to do costs nothing: it is made again when something comes."""
        self._over.discard(lane)
        self._room.set()
        if self._lanes.get(lane.key) is lane and lane.idle:
            del self._lanes[lane.key]

    def workers(self) -> list[asyncio.Task[None]]:
        return [lane.worker for lane in self._lanes.values() if lane.worker is not None]

    def stop(self, *, still: Act) -> None:
        """Cancel what is at work and drop what is queued, but do every `still` step of it."""
        for lane in tuple(self._lanes.values()):
            if lane.worker is not None:
                lane.worker.cancel()
            lane.drop(still)


_inside: ContextVar[tuple[Lane, int] | None] = ContextVar("antiphon_lane", default=None)


def inside() -> Lane | None:
    """The lane whose handler runs here, or started what runs here, and has not returned yet."""
    place = _inside.get()
    if place is None:
        return None
    lane, serial = place
    return lane if lane.busy and lane.serial == serial else None
