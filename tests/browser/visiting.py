"""Visitors: browsers of somebody's own before a real hub, and everything that they complained about."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from tools.session_page import DEADLINE, SessionPage

from tests.hub.running import Served

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page

VIOLATIONS = """document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));"""

NAMED = """if (location.protocol.startsWith("http")) localStorage["antiphon.name"] ??= %s;"""


async def run(*command: str) -> str:
    """What a command prints, which has to succeed."""
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(DEADLINE):
        printed, _ = await process.communicate()
    assert process.returncode == 0, printed
    return printed.decode()


async def new_link(hub: Served) -> str:
    """A link that lets one browser in, once."""
    async with hub.client() as client:
        made = await client.connection.call("_antiphon/link", {})
    return f"http://127.0.0.1:{hub.port}/#login={made.code}"


class Visitor:
    """A browser with cookies of its own. What is in `expected` it may complain about."""

    def __init__(self, hub: Served, context: BrowserContext) -> None:
        self.hub = hub
        self.context = context
        self.expected: list[str] = []
        self._complaints: list[str] = []

    @classmethod
    async def of(cls, browser: Browser, hub: Served, *, name: str | None = None, **options: Any) -> Visitor:
        """`name` is what others see; the options are those of a browser context."""
        context = await browser.new_context(**{"reduced_motion": "reduce", **options})
        context.set_default_timeout(DEADLINE * 1000)
        await context.add_init_script(VIOLATIONS)
        if name is not None:
            await context.add_init_script(NAMED % json.dumps(name))
        visitor = cls(hub, context)
        context.on("console", visitor._heard)
        context.on("weberror", lambda error: visitor._complaints.append(f"uncaught: {error.error}"))
        return visitor

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self._complaints.append(f"{message.type}: {message.text}")

    @property
    def complaints(self) -> list[str]:
        """What nobody expected."""
        return [told for told in self._complaints if not any(re.search(e, told) for e in self.expected)]

    async def page(self, *, link: str | None = None) -> Page:
        """The hub's page, come to by a link of its own."""
        page = await self.context.new_page()
        await page.goto(link or await new_link(self.hub))
        return page


Visit = Callable[..., Awaitable[Visitor]]
"""Somebody comes who was not here before; with a name, and the options of a browser context."""


async def arrive(visit: Visit, *, name: str = "Ann", **options: Any) -> tuple[Visitor, SessionPage]:
    """A visitor who has just been let in; the options are those of a browser context."""
    visitor = await visit(name=name, **options)
    page = SessionPage(await visitor.page())
    await page.come_in()
    return visitor, page
