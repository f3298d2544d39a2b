"""Records windows side by side: what each shows is taken again and again, and put into one animated PNG."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from time import monotonic

from msgspec import Struct
from playwright.async_api import Page

from tools.apng import Frame
from tools.png import Picture, read

SLOWNESS = 2.0
"""The story is played slower than it is shown, so that a busy machine records enough of it."""
INTERVAL = 0.08
"""Seconds between two frames, as they are shown."""
LONGEST_STILL = 1.2
"""Seconds that an unchanged picture is shown at most: what the machine takes longer is cut."""
LAST_STILL = 3.5

Take = Callable[[], Awaitable[bytes]]
"""Returns what a window shows, as a PNG."""


class Window(Struct, frozen=True):
    left: int
    top: int
    take: Take


class Recorder:
    def __init__(self, desktop: bytes, *windows: Window) -> None:
        """desktop: the PNG that the windows are drawn on"""
        self._desktop = read(desktop)
        self._windows = windows
        self._shots: list[tuple[float, tuple[bytes, ...]]] = []

    @asynccontextmanager
    async def recording(self) -> AsyncIterator[None]:
        running = asyncio.create_task(self._record())
        try:
            yield
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        await self._take()

    async def _record(self) -> None:
        while True:
            await self._take()
            await asyncio.sleep(INTERVAL * SLOWNESS)

    async def _take(self) -> None:
        shots = tuple([await window.take() for window in self._windows])
        if not self._shots or self._shots[-1][1] != shots:
            self._shots.append((monotonic(), shots))

    def frames(self) -> list[Frame]:
        times = [time for time, _ in self._shots]
        stills = [(then - time) / SLOWNESS for time, then in pairwise(times)]
        stills = [*(min(still, LONGEST_STILL) for still in stills), LAST_STILL]
        pictures = self._pictures()
        return [Frame(picture, round(1000 * still)) for picture, still in zip(pictures, stills, strict=True)]

    def _pictures(self) -> list[Picture]:
        canvas = bytearray(self._desktop.pixels)
        drawn: list[bytes | None] = [None] * len(self._windows)
        pictures = []
        for _, shots in self._shots:
            for at, (window, shot) in enumerate(zip(self._windows, shots, strict=True)):
                if drawn[at] != shot:
                    paste(canvas, self._desktop.width, read(shot), window)
                    drawn[at] = shot
            pictures.append(Picture(self._desktop.width, self._desktop.height, bytes(canvas)))
        return pictures


def paste(canvas: bytearray, width: int, picture: Picture, window: Window) -> None:
    length = 4 * picture.width
    for row in range(picture.height):
        at = 4 * ((window.top + row) * width + window.left)
        canvas[at : at + length] = picture.pixels[row * length : (row + 1) * length]


async def taker(page: Page, *, scale: float) -> Take:
    """Return what takes a page, without a flicker and without waiting for it to be still."""
    devtools = await page.context.new_cdp_session(page)
    size = page.viewport_size
    assert size is not None
    await devtools.send(
        "Emulation.setDeviceMetricsOverride", {**size, "deviceScaleFactor": scale, "mobile": False}
    )

    async def take() -> bytes:
        shot = await devtools.send("Page.captureScreenshot", {"format": "png", "optimizeForSpeed": True})
        return base64.b64decode(shot["data"])

    return take


async def pause(seconds: float) -> None:
    """Give people time to read: so many seconds of the recording."""
    await asyncio.sleep(seconds * SLOWNESS)
