"""The page for those who see little, hear it read, or have only a keyboard (issue 8): in light and in dark,
wide and narrow, empty, at work, and with a question."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, ViewportSize, expect
from tools.session_page import SessionPage

from tests.browser import accessibility
from tests.browser.visiting import Visitor
from tests.hub.running import Served

pytestmark = pytest.mark.asyncio(loop_scope="session")

PHONE: ViewportSize = {"width": 360, "height": 740}
DESK: ViewportSize = {"width": 1280, "height": 800}
INSIDE = "() => [document.body, ...document.querySelectorAll('dialog *')].includes(document.activeElement)"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def page(
    browser: Browser, hub: Served, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[SessionPage]:
    """One visitor in one session, in which much was said already."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "notes.md").write_text(f"one\n{'two ' * 60}\nthree\n")
    visitor = await Visitor.of(browser, hub, viewport=DESK)
    page = SessionPage(await visitor.page())
    await page.come_in()
    await page.begin(str(folder))
    yield page
    await visitor.context.close()
    assert visitor.complaints == []


async def told(page: SessionPage) -> None:
    """Something of every kind: prose, thoughts, a picture, a plan, a diff, a terminal, and a refusal."""
    for prompt in ("/mode auto", "/think", "/image", "/plan", "/edit", "/run", "/refuse", "/mode ask"):
        await page.turn(prompt)


async def looked_at(page: SessionPage, *checks: str) -> dict[str, dict[str, list[str]]]:
    """All complaints, in both sizes and both themes."""
    found = {}
    for size in (DESK, PHONE):
        await page.page.set_viewport_size(size)
        for theme, asked in (("light", checks), ("dark", ("contrast",))):
            await page.page.emulate_media(color_scheme=theme)
            wrong = await accessibility.complaints(page.page, *asked)
            # Bars of an overview are as long as they lasted; each is a button in the list below it, too.
            wrong["targets"] = [
                told for told in wrong.get("targets", []) if not told.startswith("<button.bar.")
            ]
            if any(wrong.values()):
                found[f"{theme} {size['width']}"] = wrong
    await page.page.set_viewport_size(DESK)
    return found


async def test_an_empty_session(page: SessionPage) -> None:
    assert await looked_at(page) == {}
    assert await accessibility.focus(page.page) == []


async def test_a_session_in_which_much_was_said(page: SessionPage) -> None:
    await told(page)
    assert await looked_at(page) == {}
    await page.messages.press("Home")
    assert await looked_at(page) == {}
    assert await accessibility.focus(page.page) == []


@pytest.mark.parametrize("tab", ["Plan", "Files", "Timeline", "People"])
async def test_what_stands_beside_it(page: SessionPage, tab: str) -> None:
    await page.side.get_by_role("tab", name=re.compile(tab)).click()
    await expect(page.side.get_by_role("tabpanel")).to_be_visible()
    assert await looked_at(page) == {}


@pytest.mark.parametrize("name", ["Sessions", "About this session"])
async def test_what_covers_a_narrow_page(page: SessionPage, name: str) -> None:
    panel = {"Sessions": page.sessions, "About this session": page.side}[name]
    opener = page.bar.get_by_role("button", name=name)
    await page.page.set_viewport_size(PHONE)
    try:
        await opener.click()
        await expect(panel).to_be_visible()
        assert await accessibility.complaints(page.page, *accessibility.COVERED) == {}
        await page.page.keyboard.press("Escape")
        await expect(panel).to_be_hidden()
        await expect(opener).to_be_focused()
    finally:
        await page.page.set_viewport_size(DESK)


@pytest.mark.parametrize("prompt", ["/edit notes.md one => uno", "/form", "/visit"])
async def test_a_question(page: SessionPage, prompt: str) -> None:
    await page.say(prompt)
    await expect(page.questions.get_by_role("button").first).to_be_visible()
    try:
        assert await looked_at(page) == {}
        assert await accessibility.focus(page.page) == []
    finally:
        await page.page.keyboard.press("Escape")
        await page.page.keyboard.press("ControlOrMeta+.")
        await page.ready()


async def test_prompts_that_wait(page: SessionPage) -> None:
    await page.say("/slow 600")
    await page.working()
    for text in ("one", "two"):
        await page.say(text)
    await page.queued_texts("one", "two")
    await page.queued().nth(0).get_by_role("button", name="Edit").click()
    try:
        assert await looked_at(page) == {}
    finally:
        await page.page.keyboard.press("Escape")
        for _ in range(2):
            await page.queued().first.get_by_role("button", name="Withdraw").click()
        await page.stop.click()
        await page.ready()


@pytest.mark.parametrize("key", ["ControlOrMeta+k", "?"])
async def test_a_dialog_has_the_focus_and_gives_it_back(page: SessionPage, key: str) -> None:
    tab = page.side.get_by_role("tab", selected=True)
    await page.page.keyboard.press("Escape")  # from here on a letter is a command
    await tab.focus()
    await page.page.keyboard.press(key)
    await expect(page.page.get_by_role("dialog")).to_be_visible()
    assert await looked_at(page, *accessibility.COVERED) == {}
    assert await page.page.evaluate("() => document.querySelector('dialog').contains(document.activeElement)")
    for _ in range(12):
        await page.page.keyboard.press("Tab")
        inside = (
            "() => document.activeElement === document.body || !!document.activeElement.closest('dialog')"
        )
        assert await page.page.evaluate(inside)
    await page.page.keyboard.press("Escape")
    await expect(page.page.get_by_role("dialog")).to_have_count(0)
    await expect(tab).to_be_focused()


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
async def test_a_menu_has_the_focus_and_gives_it_back(page: SessionPage, size: ViewportSize) -> None:
    opener = page.bar.get_by_role("button", name="Session", exact=True)
    await page.page.set_viewport_size(size)
    try:
        await opener.click()
        menu = page.page.get_by_role("menu", name="Session")
        await expect(menu.locator(":focus")).to_have_count(1)
        assert await accessibility.complaints(page.page) == {}
        await page.page.keyboard.press("Escape")
        await expect(menu).to_be_hidden()
        await expect(opener).to_be_focused()
    finally:
        await page.page.set_viewport_size(DESK)
