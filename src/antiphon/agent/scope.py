"""Scope: some work of a task that can be cancelled without the task, as `asyncio.timeout` does it."""

from __future__ import annotations

import asyncio
from typing import Any


class Scope:
    def __init__(self) -> None:
        self.cancelled = False
        self._task: asyncio.Task[Any] | None = None
        self._before = 0

    def enter(self) -> None:
        """Begin, in the current task. Raises `CancelledError` if it was cancelled already."""
        if self.cancelled:
            raise asyncio.CancelledError
        self._task = asyncio.current_task()
        assert self._task is not None
        self._before = self._task.cancelling()

    def cancel(self) -> None:
        if not self.cancelled:
            self.cancelled = True
            if self._task is not None:
                self._task.cancel()

    def leave(self) -> bool:
        """End after a cancel; return whether only the scope was cancelled, and not its task."""
        if not self.cancelled or self._task is None:
            return self.cancelled
        return self._task.uncancel() <= self._before

    async def leave_unharmed(self) -> None:
        """End without a cancel. One that came too late to be raised inside is not raised behind it."""
        if not self.cancelled or self._task is None:
            return
        try:
            await asyncio.sleep(0)  # a cancel that is pending is raised here
        except asyncio.CancelledError:
            if not self.leave():
                raise  # its task is cancelled, too
        else:
            self.leave()
