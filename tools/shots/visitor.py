"""A visitor who does what the story says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.async_api import Browser, FloatRect, Locator

from tools.session_page import SessionPage
from tools.shots.staging import Stage

SETTLED = """async () => {
  document.activeElement.blur();
  await document.fonts.ready;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
NAMED = """if (location.protocol.startsWith("http")) localStorage["antiphon.name"] ??= "%s";"""


class Visitor(SessionPage):
    @classmethod
    async def arrive(cls, browser: Browser, stage: Stage, name: str, **options: Any) -> Visitor:
        context = await browser.new_context(
            locale="en-GB",
            timezone_id="UTC",
            reduced_motion="reduce",
            **{"device_scale_factor": 2, **options},
        )
        await context.add_init_script(NAMED % name)
        visitor = cls(await context.new_page())
        await visitor.page.goto(await stage.link())
        await visitor.come_in()
        return visitor

    async def allow(self) -> None:
        await self.questions.get_by_role("button", name="Allow").first.click()

    async def rename(self, title: str) -> None:
        await self.title.get_by_role("button").click()
        await self.page.get_by_role("textbox", name="Title of the session").fill(title)
        await self.page.keyboard.press("Enter")

    async def tab(self, name: str) -> None:
        await self.side.get_by_role("tab", name=name).click()

    async def shoot(self, path: Path, *parts: Locator, margin: int = 12) -> None:
        """The page, or from one of its parts to another; with nothing in the focus or pointed at."""
        await self.page.mouse.move(0, 0)
        await self.page.evaluate(SETTLED)
        boxes = [box for part in parts if (box := await part.bounding_box()) is not None]
        if not boxes:
            await self.page.screenshot(path=path)
            return
        clip: FloatRect = {
            "x": boxes[0]["x"] - margin,
            "y": boxes[0]["y"] - margin,
            "width": boxes[0]["width"] + 2 * margin,
            "height": boxes[-1]["y"] + boxes[-1]["height"] - boxes[0]["y"] + 2 * margin,
        }
        await self.page.screenshot(path=path, clip=clip)
