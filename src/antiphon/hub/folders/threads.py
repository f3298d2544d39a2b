"""FolderThreads: the threads that read folders.

A folder may be on a network drive that hangs. So it is read in a daemon thread, of which there are few: the
client waits for a limited time, and the process does not wait when it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 3.0
"""Seconds that a client waits for a folder."""


class FolderThreads:
    def __init__(self, most: int) -> None:
        """`most`: the threads that read at a time. One that hangs stays one of them."""
        self.patience = PATIENCE
        self._free = asyncio.Semaphore(most)

    async def run(self, read: Callable[[], T]) -> T:
        """Call a function in a thread. Raises `TimeoutError` if it takes too long, or no thread is free."""
        answered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(self.patience):
            await self._free.acquire()
            self._start(read, answered)
            return await answered

    def _start(self, read: Callable[[], T], answered: asyncio.Future[T]) -> None:
        loop = asyncio.get_running_loop()

        def end(result: T | Exception) -> None:
            self._free.release()
            if answered.done():
                return
            if isinstance(result, Exception):
                answered.set_exception(result)
            else:
                answered.set_result(result)

        def run() -> None:
            result: T | Exception
            try:
                result = read()
            except Exception as error:
                result = error
            with suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(end, result)

        Thread(target=run, name="antiphon-folders", daemon=True).start()
