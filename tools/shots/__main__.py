"""Makes docs/shots anew: `python -m tools.shots [pictures | recording]`, both if neither is named."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from playwright.async_api import Browser

from tools.chromium import chromium, missing
from tools.shots.recorder import SLOWNESS
from tools.shots.recording import WORD, record
from tools.shots.staging import staged
from tools.shots.story import play

SHOTS = Path(__file__).parents[2] / "docs" / "shots"
RECORDING = SHOTS / "recording.png"


async def take_pictures(browser: Browser) -> None:
    async with staged() as stage:
        await play(browser, stage, SHOTS)


async def make_recording(browser: Browser) -> None:
    async with staged(pace=WORD * SLOWNESS) as stage:
        recording = await record(browser, stage)
    await asyncio.to_thread(RECORDING.write_bytes, recording)


MAKERS = {"pictures": take_pictures, "recording": make_recording}


async def main(names: list[str]) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    async with chromium() as browser:
        for name in names:
            await MAKERS[name](browser)
    for path in sorted(SHOTS.glob("*.png")):
        print(f"{path.relative_to(SHOTS.parents[1])}  {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    if why := missing():
        sys.exit(f"No pictures: it {why}.")
    asyncio.run(main(sys.argv[1:] or list(MAKERS)))
