"""A terminal as a picture: what tmux shows, in its colours, drawn by rich, and taken by a browser."""

from __future__ import annotations

import io
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tools.tmux import Terminal

COLUMNS, ROWS = 112, 34
CLEAN = ("env", "-u", "COLUMNS", "-u", "LINES", "-u", "NO_COLOR", "COLORTERM=truecolor", "LC_ALL=C.UTF-8")
THEME = TerminalTheme(
    (21, 24, 28),
    (222, 225, 229),
    [
        (118, 125, 136), (240, 133, 123), (126, 203, 151), (224, 180, 101),
        (130, 177, 240), (211, 155, 224), (110, 201, 186), (213, 218, 224),
    ],
)  # fmt: skip
PAGE = "<style>body { margin: 0 } svg { width: 1200px; display: block }</style>%s"


@asynccontextmanager
async def terminal(*command: str, columns: int = COLUMNS, rows: int = ROWS) -> AsyncIterator[Terminal]:
    async with Terminal.of(*CLEAN, *command, columns=columns, rows=rows) as running:
        yield running


def drawn(screen: str, title: str) -> str:
    """As SVG, without the fonts that would be fetched from elsewhere."""
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(Text.from_ansi(screen.rstrip("\n"), no_wrap=True), crop=True, no_wrap=True, end="")
    return re.sub(r"@font-face\s*{[^}]*}", "", console.export_svg(title=title, theme=THEME))


def terminal_html(screen: str) -> str:
    """Return a screen as the contents of a `pre` element."""
    console = Console(
        record=True, width=2 * COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(Text.from_ansi(screen.rstrip("\n"), no_wrap=True), no_wrap=True, end="")
    return console.export_html(theme=THEME, inline_styles=True, code_format="{code}")


async def shoot(browser: Browser, path: Path, screen: str, *, title: str) -> None:
    page = await browser.new_page(device_scale_factor=1.5, viewport={"width": 1400, "height": 900})
    await page.set_content(PAGE % drawn(screen, title))
    await page.locator("svg").screenshot(path=path, omit_background=True)
    await page.close()
