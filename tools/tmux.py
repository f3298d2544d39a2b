"""A terminal of its own, in tmux: what a program shows there, and keys for it."""

from __future__ import annotations

import asyncio
import shlex
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

DEADLINE = 60.0


class Terminal:
    def __init__(self, socket: str) -> None:
        self._tmux = ("tmux", "-L", socket, "-f", "/dev/null")

    @classmethod
    @asynccontextmanager
    async def of(cls, *command: str, columns: int = 120, rows: int = 36) -> AsyncIterator[Terminal]:
        """A program that runs in a terminal, until it is left."""
        terminal = cls(f"antiphon-{uuid.uuid4().hex[:12]}")
        size = ("-x", str(columns), "-y", str(rows))
        await terminal._run("new-session", "-d", *size, shlex.join(command))
        try:
            yield terminal
        finally:
            await terminal._run("kill-server")

    async def _run(self, *words: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *self._tmux, *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        return out.decode()

    async def keys(self, *keys: str) -> None:
        await self._run("send-keys", *keys)

    async def screen(self, *, colours: bool = False, whole: bool = False) -> str:
        """What it shows; `whole` lines have the spaces at their ends, too, which may be coloured."""
        return await self._run("capture-pane", "-p", *(["-e"] * colours), *(["-N"] * whole))

    async def shows(self, text: str) -> str:
        """The screen, once it has this."""
        screen = ""
        try:
            async with asyncio.timeout(DEADLINE):
                while True:  # tmux tells nobody that something changed
                    screen = await self.screen()
                    if text in screen:
                        return screen
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"no {text!r} in:\n{screen}") from None
