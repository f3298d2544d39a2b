"""Ann works with the agent, Bob follows on a phone, Carol in a terminal; and pictures are taken."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from playwright.async_api import Browser

from tools.chromium import chromium, missing
from tools.shots.staging import ANTIPHON, Stage, staged
from tools.shots.terminal import shoot as shoot_terminal
from tools.shots.terminal import terminal
from tools.shots.visitor import Visitor
from tools.tmux import Terminal

SHOTS = Path(__file__).parents[2] / "docs" / "shots"
DESK = {"width": 1280, "height": 840}
PHONE = {"width": 390, "height": 844}


async def themed(visitor: Visitor, name: str) -> None:
    for theme in ("dark", "light"):
        await visitor.page.emulate_media(color_scheme=theme)
        await visitor.shoot(SHOTS / f"{name}-{theme}.png")


async def before(ann: Visitor, stage: Stage) -> None:
    """Sessions that were there already."""
    for text, title in (("/look", "Read the score"), ("/plan", "Take stock of the folder")):
        await ann.begin(str(stage.folder))
        await ann.turn(text)
        await ann.rename(title)


async def asked(ann: Visitor, bob: Visitor, carol: Terminal, browser: Browser) -> None:
    """A search, a plan, tests that Bob lets run, and an edit that somebody has to allow."""
    await ann.page.get_by_role("switch", name="Explain").click()
    await ann.turn("/find voices")
    await ann.rename("Voices by any spelling")
    await ann.turn("/plan")
    await bob.say("/run python3 -m unittest -v")
    await ann.allow()
    await ann.reads("OK")
    await ann.ready()
    await ann.say("/edit score.py VOICES.index(first) => VOICES.index(first.lower())")
    await ann.questions.get_by_role("button", name="Allow").first.wait_for()
    await carol.shows("waiting for your answer")
    await ann.page.locator(".pulse").wait_for(state="detached")  # the agent waits, and the page has drawn it
    await ann.tab("Plan")
    await themed(ann, "page")
    await themed(bob, "phone")
    card = ann.questions.get_by_role("region").first
    await ann.shoot(SHOTS / "question.png", card)
    screen = await carol.screen(colours=True, whole=True)
    await shoot_terminal(browser, SHOTS / "terminal.png", screen, title="antiphon chat")
    await bob.allow()
    await ann.ready()
    await ann.shoot(SHOTS / "diff.png", ann.transcript.get_by_role("article", name="Tool call").last)


async def waiting(ann: Visitor, bob: Visitor, stage: Stage) -> None:
    """Prompts that wait, of two people; and when everything was."""
    await ann.say("/run sh rehearse.sh")
    await ann.allow()
    await ann.say("/run python3 -m unittest")
    await bob.say("Write down what has changed")
    await ann.say("/undo")
    await ann.queued().nth(2).wait_for()
    await ann.tab("Timeline")
    await ann.side.get_by_role("listitem").nth(8).wait_for()
    composer = ann.page.get_by_role("region", name="Composer")
    await ann.shoot(SHOTS / "queue.png", ann.queue, composer, margin=0)
    await ann.shoot(SHOTS / "timeline.png", ann.side, margin=0)
    (stage.folder / "done").touch()


async def story(browser: Browser, stage: Stage) -> None:
    ann = await Visitor.arrive(browser, stage, "Ann", viewport=DESK)
    await before(ann, stage)
    await ann.begin(str(stage.folder))
    bob = await Visitor.arrive(browser, stage, "Bob", viewport=PHONE, has_touch=True, is_mobile=True)
    await bob.open(ann.session_id)
    chat = (
        "env",
        f"HOME={stage.home}",
        *ANTIPHON,
        "chat",
        ann.session_id,
        "--data",
        str(stage.data),
        "--name",
        "Carol",
    )
    async with terminal(*chat) as carol:
        await carol.shows("with Ann, Bob")
        await asked(ann, bob, carol, browser)
        await waiting(ann, bob, stage)


async def main() -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    async with chromium() as browser, staged() as stage:
        await story(browser, stage)
    for path in sorted(SHOTS.glob("*.png")):
        print(f"{path.relative_to(SHOTS.parents[1])}  {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    if why := missing():
        sys.exit(f"No pictures: it {why}.")
    asyncio.run(main())
