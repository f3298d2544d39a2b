"""Tasks: the tasks and timers of one owner, a session or a server. All of them end with it.
ServerTasks: those of a server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar

from antiphon.errors import AntiphonError, RequestCancelled, RequestError

logger = logging.getLogger("antiphon.server")

T = TypeVar("T")


class _Shared:
    """A task that several callers wait for."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.task = task
        self.waiting = 0
        self.abandoned = False


class Tasks:
    """Once the owner has ended, nothing is begun any more: a task is cancelled before its first step."""

    def __init__(self, owner: str, *, grace: float) -> None:
        """`owner` is for the log. `grace`: seconds that tasks get to end in when they are cancelled."""
        self._owner = owner
        self._grace = grace
        self._running: set[asyncio.Task[Any]] = set()
        self._shared: dict[Hashable, _Shared] = {}
        self._timers: set[asyncio.TimerHandle] = set()
        self._closed = False

    def start_soon(self, work: Coroutine[Any, Any, None], *, name: str | None = None) -> asyncio.Task[None]:
        """Start a task. An exception in it is logged."""

        async def logged() -> None:
            try:
                await work
            except Exception:
                logger.exception("task of %s failed", self._owner)

        task = self._start(logged(), name)
        task.add_done_callback(lambda _: work.close())  # where it was cancelled before its first step
        return task

    async def share(self, key: Hashable, begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of work that is done once for all callers that ask for it meanwhile. It
        continues if a caller is gone; a failure that no caller waits for is logged, unless it is a refusal
        that was meant for the caller."""
        shared = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = _Shared(self._start(begin(), None))
            shared.task.add_done_callback(lambda _: self._shared_ended(key))
        shared.waiting += 1
        try:
            result: T = await asyncio.shield(shared.task)
            return result
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if shared.abandoned and caller is not None and not caller.cancelling():
                raise RequestCancelled from None
            raise
        finally:
            shared.waiting -= 1

    async def abandon_shared(self, key: Hashable) -> None:
        """Cancel the work of this key, if it is under way, and wait until it has ended. Callers that wait for
        it get `RequestCancelled`."""
        shared = self._shared.get(key)
        if shared is not None:
            shared.abandoned = True
            shared.task.cancel()
            await asyncio.wait([shared.task])

    def is_shared(self, key: Hashable) -> bool:
        """Return whether the work of this key is under way."""
        return key in self._shared

    def call_later(self, seconds: float, act: Callable[[], None]) -> asyncio.TimerHandle:
        """Call `act` after some seconds, unless the owner ends before. Cancel it by the handle."""

        def due() -> None:
            self._timers.discard(timer)
            act()

        timer = asyncio.get_running_loop().call_later(seconds, due)
        self._timers = {each for each in self._timers if not each.cancelled()}
        self._timers.add(timer)
        if self._closed:
            timer.cancel()
        return timer

    def abandon(self, task: asyncio.Task[Any]) -> None:
        """Give up on a task that was cancelled and does not end: it is not waited for."""
        if task in self._running:
            self._running.discard(task)
            logger.error("task of %s does not end after a cancel; it is not waited for", self._owner)

    async def drain(self) -> None:
        """Wait until every task has ended. Nothing is cancelled."""
        while self._running:
            await asyncio.wait(self._running)

    async def aclose(self) -> None:
        """Cancel every timer and task, and wait for the tasks, but not longer than the grace."""
        self._closed = True
        while self._timers:
            self._timers.pop().cancel()
        tasks = tuple(self._running)
        for task in tasks:
            task.cancel()
        if tasks:
            _, stubborn = await asyncio.wait(tasks, timeout=self._grace)
            for task in stubborn:
                self.abandon(task)

    def _start(self, work: Coroutine[Any, Any, T], name: str | None) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        if self._closed:
            task.cancel()
        return task

    def _shared_ended(self, key: Hashable) -> None:
        shared = self._shared.pop(key)
        failure = None if shared.task.cancelled() else shared.task.exception()
        if failure is None or shared.waiting or isinstance(failure, RequestError):
            return
        if isinstance(failure, AntiphonError):  # such as a session that moved meanwhile
            logger.warning("task of %s failed after its callers were gone: %s", self._owner, failure)
        else:
            logger.error("task of %s failed", self._owner, exc_info=failure)


class ServerTasks:
    """The tasks of a server, which may be used again after it has ended."""

    def __init__(self, *, grace: float) -> None:
        self._grace = grace
        self.begin()

    def begin(self) -> None:
        """Begin a life of the server, without tasks."""
        self.starts = Tasks("the server", grace=self._grace)
        """What makes and opens sessions. It is cancelled with the server."""
        self.ends = Tasks("the server", grace=self._grace)
        """What closes sessions and puts them away. It is waited for."""
