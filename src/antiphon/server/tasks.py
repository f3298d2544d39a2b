"""SessionTasks: the tasks and timers of one session. All of them end with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

logger = logging.getLogger("antiphon.server")


class SessionTasks:
    def __init__(self, session_id: str, *, grace: float) -> None:
        """`grace`: seconds that tasks get to end in."""
        self._session_id = session_id
        self._grace = grace
        self.running: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that ends with the session at the latest."""
        task = asyncio.get_running_loop().create_task(work)
        self.running.add(task)
        task.add_done_callback(self.running.discard)
        return task

    def start_soon(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task that nobody waits for. An exception in it is logged."""

        async def guarded() -> None:
            try:
                await work
            except Exception:
                logger.exception("task of session %s failed", self._session_id)

        task = self.start(guarded())
        task.add_done_callback(lambda _: work.close())  # where it was cancelled before its first step

    def call_later(self, seconds: float, act: Callable[[], None]) -> asyncio.TimerHandle:
        """Call `act` after some seconds, unless the session ends before. Cancel it by the handle."""

        def due() -> None:
            self._timers.discard(timer)
            act()

        timer = asyncio.get_running_loop().call_later(seconds, due)
        self._timers = {each for each in self._timers if not each.cancelled()}
        self._timers.add(timer)
        return timer

    async def end(self) -> None:
        """Cancel everything. A task that does not end within the grace is not waited for."""
        while self._timers:
            self._timers.pop().cancel()
        tasks = tuple(self.running)
        for task in tasks:
            task.cancel()
        if tasks:
            _, stubborn = await asyncio.wait(tasks, timeout=self._grace)
            if stubborn:
                logger.error("tasks of session %s do not end; they are not waited for", self._session_id)
