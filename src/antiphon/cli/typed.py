"""What is typed while something else is shown: each line goes to the question that waits for it, else on."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading


class Typed:
    """The lines of stdin, which may be anything. A thread that nobody waits for reads them."""

    def __init__(self) -> None:
        self.one_at_a_time = asyncio.Lock()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._answer: asyncio.Future[str | None] | None = None

    def start(self) -> None:
        threading.Thread(
            target=self._read, args=(asyncio.get_running_loop(),), name="typing", daemon=True
        ).start()

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is gone, and so is whoever waited
            for line in sys.stdin:
                loop.call_soon_threadsafe(self._take, line.strip())
            loop.call_soon_threadsafe(self._lines.put_nowait, None)

    def _take(self, line: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(line)
        else:
            self._lines.put_nowait(line)

    async def next(self) -> str | None:
        """The next line that answers nothing; `None` behind the last one."""
        return await self._lines.get()

    # For who asks

    def forget(self) -> None:
        """Nothing that was typed before a question answers it: that is a prompt."""

    async def line(self) -> str | None:
        """The next line, as an answer. It never ends: who leaves decides nothing for the others."""
        self._answer = asyncio.get_running_loop().create_future()
        try:
            return await self._answer
        finally:
            self._answer = None
