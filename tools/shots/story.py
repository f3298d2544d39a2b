"""The story of the pictures: Ann works with the agent, Bob follows on a phone, Carol in a terminal."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.async_api import Browser, ViewportSize, expect

from tools.shots.staging import Stage, chat_command
from tools.shots.terminal import shoot as shoot_terminal
from tools.shots.terminal import terminal
from tools.shots.visitor import Visitor
from tools.tmux import Terminal

PROMPT = 'order("Tenor") fails. Accept any spelling, and test it.'
DIALOG = ViewportSize(width=1000, height=860)
DESK = ViewportSize(width=1280, height=840)
PHONE = ViewportSize(width=390, height=844)
EARLIER = ("How many voices are there?", "What does verse() return?", "Which voice begins a verse?")


async def play(browser: Browser, stage: Stage, shots: Path) -> None:
    """Take every picture, and write it to `shots`."""
    ann = await Visitor.arrive(browser, stage, "Ann", viewport=DESK, permissions=["notifications"])
    await earlier(ann, stage)
    bob = await Visitor.arrive(browser, stage, "Bob", viewport=PHONE, has_touch=True, is_mobile=True)
    await landing(ann, bob, shots)
    await ann.begin(str(stage.folder))
    await bob.open(ann.session_id)
    async with terminal(*chat_command(stage, ann.session_id)) as carol:
        await carol.shows("with Ann, Bob")
        await question(ann, bob, carol, browser, shots)
        await changes(ann, shots)
        await queue(ann, bob, stage, shots)
    await ann.sessions.get_by_role("button", name="New session").click()
    await ann.page.set_viewport_size(DIALOG)
    await search(ann, shots)
    await notifications(ann, shots)


async def themed(visitor: Visitor, path: Path) -> None:
    """Take a picture in both colour schemes: `page.png` becomes `page-dark.png` and `page-light.png`."""
    for theme in ("dark", "light"):
        await visitor.page.emulate_media(color_scheme=theme)
        await visitor.shoot(path.with_stem(f"{path.stem}-{theme}"))


async def earlier(ann: Visitor, stage: Stage) -> None:
    """Sessions that were there already; one of them waits for an answer."""
    for text in EARLIER:
        await ann.begin(str(stage.folder))
        await ann.turn(text)
    await ann.begin(str(stage.folder))
    await ann.say("Run the tests")
    await ann.questions.get_by_role("button", name="Allow").first.wait_for()


async def landing(ann: Visitor, bob: Visitor, shots: Path) -> None:
    """The page without a session, with a prompt that is not sent yet."""
    await ann.sessions.get_by_role("button", name="New session").click()
    for visitor in (ann, bob):
        await (
            visitor.page.get_by_role("region", name="Recent sessions").get_by_role("button").nth(3).wait_for()
        )
        await visitor.page.get_by_role("combobox", name="Folder").fill("~/songs/evensong")
    await ann.prompt.fill(PROMPT)
    await themed(ann, shots / "landing.png")
    await ann.prompt.fill("")
    await themed(bob, shots / "phone-landing.png")


async def question(ann: Visitor, bob: Visitor, carol: Terminal, browser: Browser, shots: Path) -> None:
    """An edit that somebody has to allow, on the page, a phone and a terminal."""
    await ann.say(PROMPT)
    await ann.questions.get_by_role("button", name="Allow").first.wait_for()
    await carol.shows("waiting for your answer")
    await ann.page.locator(".pulse").wait_for(state="detached")  # the agent waits, and the page has drawn it
    await ann.tab("Plan")
    await themed(ann, shots / "page.png")
    await themed(bob, shots / "phone.png")
    await ann.shoot(shots / "question.png", ann.questions.get_by_role("region").first)
    screen = await carol.screen(colours=True, whole=True)
    await shoot_terminal(browser, shots / "terminal.png", screen, title="antiphon chat")
    await bob.allow()
    await ann.ready()
    edit = ann.transcript.get_by_role("article", name="Tool call").filter(has_text="Edit score.py")
    await edit.scroll_into_view_if_needed()
    await ann.shoot(shots / "diff.png", edit, margin=4)


async def changes(ann: Visitor, shots: Path) -> None:
    """All changes of the session, by file."""
    await ann.turn("Write it into the README, too.")
    await ann.page.keyboard.press("Escape")
    await ann.page.keyboard.press("d")
    view = ann.page.get_by_role("region", name="All changes")
    await view.get_by_role("article").nth(2).wait_for()
    await ann.questions.wait_for(state="hidden")  # the note of Bob's answer goes by itself
    await ann.tab("Files")
    await themed(ann, shots / "changes.png")
    await view.get_by_role("button", name="Back to the transcript").click()


async def queue(ann: Visitor, bob: Visitor, stage: Stage, shots: Path) -> None:
    """Prompts of two people that wait; and when everything was."""
    await ann.say("Begin the rehearsal")
    await ann.allow()
    await ann.say("Run the tests again")
    await bob.say("Write down what has changed")
    await ann.say("Which voice begins a verse?")
    await ann.queued().nth(2).wait_for()
    await ann.tab("Timeline")
    await ann.side.get_by_role("listitem").nth(8).wait_for()
    composer = ann.page.get_by_role("region", name="Composer")
    await ann.shoot(shots / "queue.png", ann.queue, composer, margin=0)
    await ann.shoot(shots / "timeline.png", ann.side, margin=0)
    (stage.folder / "done").touch()


async def search(ann: Visitor, shots: Path) -> None:
    """The words of one message, found in several sessions."""
    await ann.page.keyboard.press("Escape")
    await ann.page.keyboard.press("s")
    dialog = ann.page.get_by_role("dialog", name="Search all sessions")
    await dialog.get_by_role("searchbox").fill("tenor")
    await dialog.locator(".search-match").nth(3).wait_for()
    await themed(ann, shots / "search.png")
    await ann.page.keyboard.press("Escape")


async def notifications(ann: Visitor, shots: Path) -> None:
    """What the page may tell while it is hidden."""
    await ann.bar.get_by_role("button", name="Notifications").click()
    dialog = ann.page.get_by_role("dialog", name="Notifications")
    await dialog.get_by_role("checkbox", name=re.compile("Show notifications")).check()
    await dialog.get_by_role("checkbox", name=re.compile("Play a sound")).check()
    await expect(dialog.get_by_role("checkbox", name=re.compile("Play a sound"))).to_be_checked()
    await themed(ann, shots / "notifications.png")
    await ann.page.keyboard.press("Escape")
