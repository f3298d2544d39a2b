"""Debian's Chromium, driven by playwright: for the tests of the page, and for its pictures."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import Browser

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def missing() -> str | None:
    """What has to be there before a browser can be."""
    if shutil.which("chromium") is None:
        return "needs chromium"
    return "needs playwright" if find_spec("playwright") is None else None


@asynccontextmanager
async def chromium(*flags: str, shell: bool = False) -> AsyncIterator[Browser]:
    """Run Chromium without windows.

    `shell` asks for Debian's `chromium-headless-shell` where it is installed. It takes a third less processor
    time, and has no notifications.
    """
    from playwright.async_api import async_playwright

    program = (shell and shutil.which("chromium-headless-shell")) or shutil.which("chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=[*FLAGS, *flags])
        try:
            yield browser
        finally:
            await browser.close()
