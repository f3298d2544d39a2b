"""A visitor who does what the story says, by the names of what stands on the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, expect

from tools.shots.staging import DEADLINE, Stage

OVER = """(before) => antiphon.session.state === "idle"
  && antiphon.session.items.findLastIndex((item) => item.kind === "end") >= before"""

expect.set_options(timeout=DEADLINE * 1000)


class Visitor:
    def __init__(self, page: Page) -> None:
        self.page = page
        self.questions = page.get_by_role("region", name="Questions")
        self.queue = page.get_by_role("region", name="Queue")
        self.side = page.get_by_role("complementary", name="About this session")

    @classmethod
    async def arrive(cls, browser: Browser, stage: Stage, name: str, **options: Any) -> Visitor:
        context = await browser.new_context(
            locale="en-GB", timezone_id="UTC", reduced_motion="reduce", device_scale_factor=2, **options
        )
        await context.add_init_script(
            f'if (location.protocol.startsWith("http")) localStorage["antiphon.name"] ??= "{name}";'
        )
        visitor = cls(await context.new_page())
        await visitor.page.goto(await stage.link())
        await expect(visitor.page.locator("#notice")).to_be_hidden()
        return visitor

    async def begin(self, folder: Path) -> None:
        before = self.page.url
        await self.page.keyboard.press("n")
        await self.page.get_by_label("Folder").fill(str(folder))
        await self.page.get_by_role("button", name="Begin").click()
        await self.page.wait_for_url(lambda url: url != before and "#/s/" in url)
        await self.shown()

    async def follow(self, other: Visitor) -> None:
        await self.page.goto(other.page.url)
        await self.shown()

    async def shown(self) -> None:
        where = "() => antiphon.session && location.hash.endsWith(antiphon.session.id) && !antiphon.session.loading"
        await self.page.wait_for_function(where)

    @property
    def session_id(self) -> str:
        return self.page.url.rpartition("/")[2]

    async def say(self, text: str) -> None:
        await self.page.get_by_role("textbox", name="Prompt", exact=True).fill(text)
        await self.page.keyboard.press("Enter")

    async def turn(self, text: str, *, allow: bool = False) -> None:
        """Said, allowed if that is asked for, and waited for."""
        before = await self.page.evaluate("() => antiphon.session.items.length")
        await self.say(text)
        if allow:
            await self.answer("Allow")
        await self.page.wait_for_function(OVER, arg=before)

    async def answer(self, name: str) -> None:
        await self.questions.get_by_role("button", name=name).first.click()

    async def tab(self, name: str) -> None:
        await self.side.get_by_role("tab", name=name).click()

    async def settle(self) -> None:
        """Nothing has the focus, nothing is under the pointer, and everything is drawn."""
        await self.page.mouse.move(0, 0)
        await self.page.evaluate(
            "async () => { document.activeElement.blur(); await document.fonts.ready;"
            " await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))); }"
        )
