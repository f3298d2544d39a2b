"""What an agent or another client writes does nothing in the page, and leaves it as it was (issue 8).

The agent is a process of its own behind a real hub, and writes scripts, handlers, links that run, escape
sequences, letters that hide or turn others around, and far too much, wherever it can write.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import ViewportSize, expect
from tools.session_page import SessionPage

from tests.browser import accessibility
from tests.browser.visiting import DEADLINE, Visit
from tests.browser.watching import Watched
from tests.hub.running import Served, served
from tests.text.forbidden import forbidden
from tests.transcripts.hostile import TEXTS

pytestmark = pytest.mark.asyncio(loop_scope="session")

AGENT = Path(__file__).with_name("hostile_agent.py")
SHOWN = r"""() => {
  const texts = [];
  const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_ALL);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.nodeType === Node.TEXT_NODE) texts.push(node.data);
    else for (const name of ["title", "alt", "placeholder", "aria-label"])
      if (node.getAttribute?.(name)) texts.push(node.getAttribute(name));
  }
  return texts;
}"""
"""All that people read, but for what stands in text fields."""
TO_END = """async (area) => {
  // What is drawn lags behind what is known, and how high it is shows when it is drawn.
  for (let before = null, same = 0; same < 4; before = area.scrollHeight) {
    same = before === area.scrollHeight ? same + 1 : 0;
    area.scrollTop = area.scrollHeight;
    await new Promise((done) => setTimeout(done, 100));
  }
}"""
UP = """async (area, leap) => {
  const rows = () => [...area.querySelectorAll(".rows > *")];
  const fresh = () => rows().filter((row) => !row.seen && (row.seen = true)).length;
  const before = fresh();
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  area.scrollTop -= area.clientHeight * leap;
  await frame();
  await frame();
  const closed = "details:not([open]) > summary, .tool > [aria-expanded=false]";
  for (const each of area.querySelectorAll(closed)) each.click();
  await frame();
  return [area.scrollTop, before + fresh()];
}"""
NAME = "<img src=x onerror=alert(1)> \u202egnp.exe"
DESK: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("hub"), agent=[sys.executable, str(AGENT)]) as running:
        yield running


async def arrive(visit: Visit) -> tuple[SessionPage, Watched]:
    visitor = await visit(viewport=DESK)
    page = SessionPage(await visitor.page())
    await page.come_in()
    await page.begin("/tmp")
    return page, Watched(page.page)


async def scroll_through(page: SessionPage, *, leap: float = 2) -> None:
    """The transcript from its end to its beginning, all unfolded. What is a screen away is drawn, too. What
    was leapt over, because something above it grew meanwhile, is come to the next time."""
    seen, top = 0, 1
    async with asyncio.timeout(3 * DEADLINE):
        while True:
            await page.messages.evaluate(TO_END)
            while top > 0:
                top, drawn = await page.messages.evaluate(UP, leap)
                seen += drawn
            if leap > 2 or seen >= await page.page.evaluate("() => antiphon.session.items.length"):
                return
            top = 1


async def answers_quickly(page: SessionPage) -> None:
    """A click is followed by what it is for."""
    began = time.monotonic()
    await page.bar.get_by_role("button", name="Session", exact=True).click()
    await expect(page.page.get_by_role("menuitem", name="Rename")).to_be_visible(timeout=3000)
    await page.page.keyboard.press("Escape")
    assert time.monotonic() - began < 5


async def fits(page: SessionPage) -> None:
    for size in (PHONE, DESK):
        await page.page.set_viewport_size(size)
        assert await accessibility.complaints(page.page, "width") == {}


async def test_nothing_that_an_agent_says_runs_or_breaks_the_page(visit: Visit) -> None:
    page, watched = await arrive(visit)
    await page.turn("everywhere")
    await scroll_through(page)
    assert await watched.wrongs() == []
    await page.page.set_viewport_size(PHONE)
    await scroll_through(page, leap=20)
    assert await watched.wrongs() == []
    assert await accessibility.complaints(page.page, "width") == {}
    await page.page.set_viewport_size(DESK)
    await answers_quickly(page)
    await page.prompt.fill("/")
    await expect(page.page.get_by_role("option").first).to_be_visible()
    await page.prompt.fill("")
    for name in ("Plan", "Files", "Timeline", "People"):
        await page.side.get_by_role("tab", name=re.compile(name)).click()
        await expect(page.side.get_by_role("tabpanel", name=re.compile(name))).to_be_visible()
        assert await accessibility.complaints(page.page, "width") == {}
    assert await watched.wrongs() == []


async def test_letters_that_hide_or_turn_around_are_seen_in_names(visit: Visit) -> None:
    page, _ = await arrive(visit)
    await page.turn("everywhere")
    await scroll_through(page, leap=20)
    for shown in await page.page.evaluate(SHOWN):
        assert forbidden(shown) == []


@pytest.mark.parametrize("way", ["ask", "form", "visit"])
async def test_hidden_letters_are_seen_in_questions(visit: Visit, way: str) -> None:
    page, _ = await arrive(visit)
    texts: list[str] = []
    await page.say(way)
    await expect(page.questions.get_by_role("region").first).to_be_visible()
    async with asyncio.timeout(DEADLINE):
        while not all(any(mark in shown for shown in texts) for mark in ("⟨U+202E⟩", "⟨U+001B⟩")):
            texts = await page.page.evaluate(f"() => new Promise(requestAnimationFrame).then({SHOWN})")
    assert [wrong for shown in texts for wrong in forbidden(shown)] == []
    await page.questions.get_by_role("button", name=re.compile("Decline|onerror")).last.click()


@pytest.mark.parametrize("way", ["ask", "form", "visit"])
async def test_a_question_made_of_it_is_only_a_question(visit: Visit, way: str) -> None:
    page, watched = await arrive(visit)
    await page.say(way)
    card = page.questions.get_by_role("region").first
    await expect(card).to_be_visible()
    assert await watched.wrongs() == []
    await fits(page)
    await answers_quickly(page)
    if way == "ask":
        await card.get_by_role("group", name="Your answer").get_by_role("button").last.click()
    elif way == "form":
        await card.get_by_role("button", name="Answer").click()
        await answers_quickly(page)  # whatever its patterns take to be tried
        await expect(card).to_contain_text("This does not match the required pattern")
        await expect(card).to_contain_text("too slow to check here")
        await expect(card).to_contain_text("The value contains hidden characters")
        await card.get_by_role("button", name="Decline").click()
    else:
        await expect(card.get_by_role("link")).to_have_count(0)  # no address that runs can be gone to
        await card.get_by_role("button", name="Decline").click()
        second = page.question(re.compile("x.example|Question"))
        await expect(second.get_by_role("link", name="Open x.example")).to_be_visible()
        await second.get_by_role("button", name="Decline").click()
    await page.ready()
    assert await watched.wrongs() == []


@pytest.mark.parametrize("way", ["wide", "huge", "long"])
async def test_too_much_of_it_leaves_the_page_at_hand(visit: Visit, way: str) -> None:
    page, watched = await arrive(visit)
    await page.turn(way)
    await scroll_through(page)
    await answers_quickly(page)
    await fits(page)
    assert await page.page.evaluate("() => document.querySelectorAll('*').length") < 20_000
    assert await watched.wrongs() == []
    await page.page.reload()
    await page.shown()
    await answers_quickly(page)


async def test_markdown_that_asks_for_too_much_leaves_the_page_at_hand(visit: Visit) -> None:
    page, watched = await arrive(visit)
    await page.turn("heavy")
    await answers_quickly(page)
    assert await page.page.evaluate("() => document.querySelectorAll('*').length") < 30_000
    assert await watched.wrongs() == []


async def test_what_other_clients_say_is_as_harmless(hub: Served, visit: Visit) -> None:
    page, watched = await arrive(visit)
    title = "<script>alert(1)</script> \u202egnp.exe"
    async with hub.client(name=NAME) as client:
        session = await client.load_session(page.session_id, "/tmp")
        await session.set_title(title)
        for text in (text for text in TEXTS if text.strip()):
            await (await session.prompt(text)).drained()
    async with hub.talk(info={"name": NAME, "version": "1"}) as talk:
        await talk.call("a", "_antiphon/attach", sessionId=page.session_id)
        await page.say("ask")
        await expect(page.questions.get_by_role("button").first).to_be_visible()
        content = [{"type": "text", "text": "[click](javascript:alert(1)) <img src=x onerror=alert(1)>"}]
        await talk.call("i", "_antiphon/inject", sessionId=page.session_id, content=content, mode="queue")
        await page.queued_texts("<img src=x onerror=alert(1)>")
        await page.side.get_by_role("tab", name=re.compile("People")).click()
        await expect(page.side).to_contain_text("<img src=x onerror=alert(1)>")
        await expect(page.title).to_contain_text("<script>alert(1)</script>")
        await fits(page)
        await page.questions.get_by_role("group", name="Your answer").get_by_role("button").last.click()
        await page.reads("heard")
    await page.ready()
    await scroll_through(page)
    assert await watched.wrongs() == []
