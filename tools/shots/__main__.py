"""Ann works with the agent, Bob looks on from another browser, Carol from a terminal; and pictures are taken."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from playwright.async_api import Browser, Locator

from tools.chromium import chromium, missing
from tools.shots.staging import ANTIPHON, Stage, staged
from tools.shots.terminal import Terminal, terminal
from tools.shots.visitor import Visitor

SHOTS = Path(__file__).parents[2] / "docs" / "shots"
DESK = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
HOLD = "run sh -c 'until [ -e done ]; do sleep 0.05; done'"


async def shoot(visitor: Visitor, name: str, *, part: Locator | None = None) -> None:
    await visitor.settle()
    path = SHOTS / f"{name}.png"
    if part is None:
        await visitor.page.screenshot(path=path)
    else:
        await part.screenshot(path=path)
    print(f"{path.relative_to(SHOTS.parents[1])}  {path.stat().st_size // 1024} KB")


async def themed(visitor: Visitor, name: str) -> None:
    for theme in ("light", "dark"):
        await visitor.page.emulate_media(color_scheme=theme)
        await shoot(visitor, f"{name}-{theme}")
    await visitor.page.emulate_media(color_scheme="light")


async def story(browser: Browser, stage: Stage) -> None:
    ann = await Visitor.arrive(browser, stage, "Ann", viewport=DESK)
    await before(ann, stage)
    await ann.begin(stage.folder)
    bob = await Visitor.arrive(browser, stage, "Bob", viewport=PHONE)
    await bob.follow(ann)
    chat = (*ANTIPHON, "chat", ann.session_id, "--data", str(stage.data), "--name", "Carol")
    async with terminal(*chat) as carol:
        await carol.shows("with Ann, Bob")
        await told(ann, bob, carol, browser)
        await waiting(ann, bob, stage)


async def before(ann: Visitor, stage: Stage) -> None:
    """Sessions that were there already."""
    for text, title in (("/look", "Read the score"), ("/plan", "Take stock of the folder")):
        await ann.begin(stage.folder)
        await ann.turn(text)
        await rename(ann, title)


async def rename(ann: Visitor, title: str) -> None:
    await ann.page.get_by_role("heading", level=1).get_by_role("button").click()
    await ann.page.get_by_role("textbox", name="Title of the session").fill(title)
    await ann.page.keyboard.press("Enter")


async def told(ann: Visitor, bob: Visitor, carol: Terminal, browser: Browser) -> None:
    """A search, a plan, and an edit that somebody has to allow."""
    await ann.page.get_by_role("switch", name="Explain").click()
    await ann.turn("/find voices")
    await rename(ann, "Voices by any spelling")
    await ann.turn("/plan")
    await bob.turn("/run python3 -m unittest -v", allow=True)
    await ann.say("/edit score.py VOICES.index(first) => VOICES.index(first.lower())")
    await ann.questions.get_by_role("button", name="Allow").first.wait_for()
    await carol.shows("waits for your answer")
    await ann.tab("Plan")
    await themed(ann, "page")
    await themed(bob, "phone")
    await shoot(ann, "question", part=ann.questions.get_by_role("region").first)
    await carol.shot(browser, SHOTS / "terminal.png", "antiphon chat")
    await bob.answer("Allow")


async def waiting(ann: Visitor, bob: Visitor, stage: Stage) -> None:
    """Prompts that wait, of two people; and when everything was."""
    await ann.say(HOLD)
    await ann.answer("Allow")
    await ann.say("/run python3 -m unittest")
    await bob.say("Write down what has changed")
    await ann.say("/undo")
    await ann.queue.get_by_role("listitem").nth(2).wait_for()
    await shoot(ann, "queue", part=ann.queue)
    await ann.tab("Timeline")
    await ann.side.get_by_role("listitem").nth(8).wait_for()
    await shoot(ann, "timeline")
    (stage.folder / "done").touch()


async def main() -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    async with chromium() as browser, staged() as stage:
        await story(browser, stage)


if __name__ == "__main__":
    if why := missing():
        sys.exit(f"No pictures: it {why}.")
    asyncio.run(main())
