"""A terminal as a picture: what tmux shows, in its colours, drawn by rich, and taken by a browser."""

from __future__ import annotations

import asyncio
import io
import re
import shlex
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tools.shots.staging import DEADLINE

COLUMNS, ROWS = 112, 34
PAPER = TerminalTheme(
    (21, 24, 28),
    (222, 225, 229),
    [(118, 125, 136), (240, 133, 123), (126, 203, 151), (224, 180, 101), (130, 177, 240), (211, 155, 224),
     (110, 201, 186), (213, 218, 224)],
)  # fmt: skip


class Terminal:
    def __init__(self) -> None:
        self._tmux = ("tmux", "-L", f"antiphon-{uuid.uuid4().hex[:12]}", "-f", "/dev/null")

    async def run(self, *words: str) -> str:
        process = await asyncio.create_subprocess_exec(*self._tmux, *words, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        return out.decode()

    async def shows(self, text: str) -> None:
        async with asyncio.timeout(DEADLINE):
            while text not in await self.run("capture-pane", "-p"):  # noqa: ASYNC110  (tmux tells nobody)
                await asyncio.sleep(0.05)

    async def shot(self, browser: Browser, path: Path, title: str) -> None:
        await asyncio.sleep(0.5)  # what it shows may come in several steps
        screen = await self.run("capture-pane", "-p", "-e", "-N")
        console = Console(
            record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor"
        )
        console.print(Text.from_ansi(screen.rstrip("\n"), no_wrap=True), crop=True, no_wrap=True, end="")
        drawn = re.sub(r"@font-face\s*{[^}]*}", "", console.export_svg(title=title, theme=PAPER))
        page = await browser.new_page(device_scale_factor=1.5, viewport={"width": 1400, "height": 900})
        await page.set_content(
            f"<style>body {{ margin: 0 }} svg {{ width: 1200px; display: block }}</style>{drawn}"
        )
        await page.locator("svg").screenshot(path=path, omit_background=True)
        await page.close()


@asynccontextmanager
async def terminal(*command: str) -> AsyncIterator[Terminal]:
    made = Terminal()
    environment = (
        "env",
        "-u",
        "COLUMNS",
        "-u",
        "LINES",
        "-u",
        "NO_COLOR",
        "COLORTERM=truecolor",
        "LC_ALL=C.UTF-8",
    )
    size = ("-x", str(COLUMNS), "-y", str(ROWS))
    await made.run("new-session", "-d", *size, shlex.join([*environment, *command]))
    try:
        yield made
    finally:
        await made.run("kill-server")
