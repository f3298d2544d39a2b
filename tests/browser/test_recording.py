"""Chromium's own decoder shows the frames of a recording, and the recording of the README is one."""

from __future__ import annotations

import base64
import math
from typing import Any

import pytest
from playwright.async_api import Browser
from tools.apng import Frame, encode
from tools.png import Picture

from tests.hub.running import ROOT

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE = "https://recording.test/"
"""A secure context: the decoder is there in no other."""
LARGEST = 1_500_000
LONGEST = 25.0
DECODED = """async ({ data, pixels }) => {
  const bytes = Uint8Array.from(atob(data), (each) => each.charCodeAt(0));
  const decoder = new ImageDecoder({ data: bytes, type: "image/png" });
  await decoder.tracks.ready;
  await decoder.completed;
  const frames = [];
  for (let frameIndex = 0; frameIndex < decoder.tracks.selectedTrack.frameCount; frameIndex += 1) {
    const { image } = await decoder.decode({ frameIndex });
    const canvas = new OffscreenCanvas(image.displayWidth, image.displayHeight);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const shown = pixels ? Array.from(context.getImageData(0, 0, canvas.width, canvas.height).data) : [];
    frames.push([image.duration, shown]);
    image.close();
  }
  return { repeats: decoder.tracks.selectedTrack.repetitionCount, frames };
}"""


async def decoded(browser: Browser, data: bytes, *, pixels: bool) -> dict[str, Any]:
    page = await browser.new_page()
    await page.route(PAGE, lambda route: route.fulfill(body="", content_type="text/html"))
    await page.goto(PAGE)
    found: dict[str, Any] = await page.evaluate(
        DECODED, {"data": base64.b64encode(data).decode(), "pixels": pixels}
    )
    await page.close()
    return found


def square(*colours: bytes) -> Picture:
    """Return a picture of two by two pixels."""
    return Picture(2, 2, b"".join(colours))


async def test_chromium_shows_each_frame_for_its_time(browser: Browser) -> None:
    white, red, blue = b"\xff\xff\xff\xff", b"\xff\x00\x00\xff", b"\x00\x00\xff\xff"
    frames = [
        Frame(square(white, white, white, white), 500),
        Frame(square(white, red, white, white), 80),
        Frame(square(white, red, blue, blue), 1300),
        Frame(square(white, white, white, blue), 90),
    ]
    found = await decoded(browser, encode(frames), pixels=True)
    assert [(duration // 1000, bytes(pixels)) for duration, pixels in found["frames"]] == [
        (frame.milliseconds, frame.picture.pixels) for frame in frames
    ]


async def test_the_recording_of_the_readme_is_short_small_and_plays_for_ever(browser: Browser) -> None:
    data = (ROOT / "docs" / "shots" / "recording.png").read_bytes()
    assert len(data) <= LARGEST
    found = await decoded(browser, data, pixels=False)
    durations = [duration / 1e6 for duration, _ in found["frames"]]
    assert len(durations) > 20
    assert 10 < sum(durations) < LONGEST
    assert found["repeats"] == math.inf
