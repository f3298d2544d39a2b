"""A session as a visitor sees it: everything is found by what it is called, as a screen reader finds it."""

from __future__ import annotations

import re

from playwright.async_api import Locator, Page, expect

DEADLINE = 60.0
SHOWN = "(id) => globalThis.antiphon?.session?.id === id && !globalThis.antiphon.session.loading"

OVER = """(before) => antiphon.session.state === "idle"
  && antiphon.session.items.findLastIndex((item) => item.kind === "end") >= before"""

expect.set_options(timeout=DEADLINE * 1000)


class SessionPage:
    def __init__(self, page: Page) -> None:
        self.page = page
        self.bar = page.get_by_role("banner")
        self.sessions = page.get_by_role("navigation", name="Sessions")
        self.transcript = page.get_by_role("region", name="Transcript")
        self.messages = self.transcript.get_by_role("log", name="Messages")
        self.questions = page.get_by_role("region", name="Questions")
        self.queue = page.get_by_role("region", name="Queue")
        self.side = page.get_by_role("complementary", name="About this session")
        self.prompt = page.get_by_role("textbox", name="Prompt", exact=True)
        self.stop = page.get_by_role("button", name="Stop", exact=True)
        self.title = page.get_by_role("heading", level=1)

    @property
    def session_id(self) -> str:
        found = re.search(r"#/s/(.+)$", self.page.url)
        assert found, self.page.url
        return found[1]

    async def come_in(self) -> None:
        """Until the hub has let the page in, and its sessions are there."""
        await expect(self.page.locator("#notice")).to_be_hidden()
        await expect(self.bar.get_by_role("button", name="Sessions")).to_be_visible()

    async def begin(self, folder: str) -> None:
        """A new session, in a folder of the hub's machine."""
        await self.sessions.get_by_role("button", name="New session").click()
        await self.page.get_by_role("combobox", name="Folder").fill(folder)
        await self.page.get_by_role("button", name="Start without a prompt").click()
        await self.page.wait_for_url(lambda url: "#/s/" in url)
        await self.shown()
        await self.ready()

    async def open(self, session_id: str) -> None:
        await self.page.goto(f"{self.page.url.partition('#')[0]}#/s/{session_id}")
        await self.shown()

    async def shown(self) -> None:
        """Until the session that the address names is the one that is seen, as far as it has been told."""
        await self.page.wait_for_function(SHOWN, arg=self.session_id)

    async def say(self, text: str) -> None:
        await self.prompt.fill(text)
        await self.prompt.press("Enter")
        await expect(self.prompt).to_have_value("")

    async def turn(self, text: str) -> None:
        """Say it, and wait until its turn is over."""
        before = await self.page.evaluate("() => antiphon.session.items.length")
        await self.say(text)
        await self.page.wait_for_function(OVER, arg=before, timeout=3 * DEADLINE * 1000)

    async def state(self, word: str) -> None:
        await expect(self.bar.get_by_text(word, exact=True)).to_be_visible()

    async def ready(self) -> None:
        await self.state("Ready")

    async def working(self) -> None:
        await self.state("Working")

    async def reads(self, text: str | re.Pattern[str]) -> None:
        """Somewhere in what of the transcript is drawn."""
        await expect(self.transcript.get_by_text(text).last).to_be_visible()

    def question(self, name: str | re.Pattern[str]) -> Locator:
        return self.questions.get_by_role("region", name=name)

    def queued(self) -> Locator:
        return self.queue.get_by_role("listitem")

    async def queued_texts(self, *texts: str) -> None:
        """What waits, in order."""
        await expect(self.queued()).to_have_count(
            len(texts),
        )
        for index, text in enumerate(texts):
            await expect(self.queued().nth(index)).to_contain_text(text)
