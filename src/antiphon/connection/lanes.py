"""Lanes: the frames of one session are handled one at a time, in the order they were received.

A lane has updates, session-scoped requests, and the responses that must not overtake them. A lane over its
bound, in bytes, stops the reading of the whole connection until it has caught up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Any

from antiphon.errors import LaneOverflow

LANE_BOUND = 1024 * 1024
HARD_FACTOR = 16
"""Multiples of its bound that a lane may have while its handler waits for a response that must be read."""

Act = Callable[[Any], Awaitable[None] | None]
"""One step in a lane. It is done when it returns, or when the returned awaitable is done."""


class Lane:
    """The ordered work of one session. `key` is the session's id, or `None` for the connection."""

    __slots__ = ("_lanes", "_queue", "busy", "key", "serial", "size", "waiting", "worker")

    def __init__(self, key: str | None, lanes: Lanes) -> None:
        self.key = key
        self.size = 0
        self.busy = False
        self.serial = 0
        self.waiting: tuple[asyncio.Future[Any], ...] = ()
        """Responses that the running handler of this lane waits for."""
        self.worker: asyncio.Task[None] | None = None
        self._lanes = lanes
        self._queue: deque[tuple[int, Act, Sequence[Any]]] = deque()

    @property
    def idle(self) -> bool:
        return not self.busy and not self._queue

    @property
    def full(self) -> bool:
        """Whether reading must stop. It must not while this lane's handler waits for a response."""
        return self.size > self._lanes.bound and not self.waiting

    def put(self, size: int, act: Act, arguments: Sequence[Any]) -> None:
        """Queue the same step for each of `arguments`, which were read together."""
        self._queue.append((size, act, arguments))
        self.size += size
        if self.size > self._lanes.bound:
            self._lanes.over_bound(self)
        if self.worker is None:
            self.worker = self._lanes.start(self._work())

    def do(self, size: int, act: Act, argument: Any) -> None:
        """Do a step at once if the connection has no earlier step, else queue it. The worker awaits the
        awaitable that it returns, before any later step."""
        if self.worker is not None or self.busy or self._queue or not self._lanes.has_only(self):
            self.put(size, act, (argument,))
            return
        self.busy = True
        try:
            result = self._lanes.context().run(self._begin, act, argument)
        except Exception as error:
            result = None
            self._lanes.report(error)
        self.busy = False
        if result is not None:
            self.put(size, lambda work: work, (result,))
        elif self._queue and self.worker is None:  # the step has queued another one
            self.worker = self._lanes.start(self._work())
        elif not self._queue:
            self._lanes.emptied(self)

    def _begin(self, act: Act, argument: Any) -> Awaitable[None] | None:
        self.serial += 1
        _inside.set((self, self.serial))
        return act(argument)

    async def _work(self) -> None:
        queue, enter = self._queue, _inside.set
        try:
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
                        self._lanes.report(error)  # the handler awaited a task that was cancelled
                    except Exception as error:
                        self._lanes.report(error)
                self.busy = False
                self.size -= size
                if self._lanes.over:
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
        """Keep reading inside the block even if the lane is full, because its handler waits for `future`."""
        self.waiting = (*self.waiting, future)
        self._lanes.relieved(self)
        try:
            yield
        finally:
            self.waiting = tuple(other for other in self.waiting if other is not future)


class Lanes:
    """The lanes of one connection. `pause` and `resume` stop and start its reading; `context` returns a
    context outside every lane."""

    def __init__(
        self,
        *,
        bound: int,
        start: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        pause: Callable[[], None],
        resume: Callable[[], None],
        report: Callable[[BaseException], None],
        context: Callable[[], Context] = copy_context,
    ) -> None:
        self.bound = bound
        self.start = start
        self.report = report
        self.context = context
        self.over: set[Lane] = set()
        """Lanes that exceeded their bound and are not below half of it again."""
        self._lanes: dict[str | None, Lane] = {}
        self._pause = pause
        self._resume = resume
        self._paused = False

    def get(self, key: str | None) -> Lane:
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(key, self)
        return lane

    def idle(self, key: str | None) -> bool:
        """Whether a lane has no running or queued step."""
        lane = self._lanes.get(key)
        return lane is None or lane.idle

    def has_only(self, lane: Lane) -> bool:
        """Whether no other lane has a step, which might belong before the next one of this lane."""
        return len(self._lanes) == 1 and self._lanes.get(lane.key) is lane

    def put_behind_all(self, size: int, act: Act, argument: Any) -> None:
        """Queue a step behind all present steps of every lane. The last lane to reach it does it."""
        busy = [lane for lane in self._lanes.values() if not lane.idle] or [self.get(None)]
        left = len(busy)

        def passed(_: Any) -> Awaitable[None] | None:
            nonlocal left
            left -= 1
            return None if left else act(argument)

        for lane in busy:
            lane.put(size, passed, (None,))

    def over_bound(self, lane: Lane) -> None:
        self.over.add(lane)
        if lane.waiting and lane.size > self.bound * HARD_FACTOR:
            for future in lane.waiting:
                if not future.done():
                    reason = f"{lane.size} bytes were received while a handler waited for a call"
                    future.set_exception(LaneOverflow(reason))
        self._throttle()

    def relieved(self, lane: Lane) -> None:
        if lane.size <= self.bound // 2:
            self.over.discard(lane)
        self._throttle()

    def emptied(self, lane: Lane) -> None:
        """Delete an idle lane. `get` makes it again."""
        if self.over:
            self.relieved(lane)
        if lane.idle and self._lanes.get(lane.key) is lane:
            del self._lanes[lane.key]

    def _throttle(self) -> None:
        full = any(lane.full for lane in self.over)
        if full != self._paused:
            self._paused = full
            if full:
                self._pause()
            else:
                self._resume()

    def workers(self) -> list[asyncio.Task[None]]:
        return [lane.worker for lane in self._lanes.values() if lane.worker is not None]

    def stop(self, *, still: Act) -> None:
        """Cancel running steps and drop queued ones, except the queued `still` steps, which are done now."""
        for lane in tuple(self._lanes.values()):
            if lane.worker is not None:
                lane.worker.cancel()
            lane.drop(still)


_inside: ContextVar[tuple[Lane, int] | None] = ContextVar("antiphon_lane", default=None)


def current_lane() -> Lane | None:
    """Return the lane whose handler runs in this context, or started this task and has not returned."""
    place = _inside.get()
    if place is None:
        return None
    lane, serial = place
    return lane if lane.busy and lane.serial == serial else None
