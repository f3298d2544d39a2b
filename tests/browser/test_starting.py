"""`make run`, and the link that it prints: what somebody does who has never heard of any of this."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tools.session_page import DEADLINE

from tests.hub.test_starting import SCRIPT, in_front, recipe

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(not SCRIPT.exists(), reason="antiphon is not installed beside this Python"),
]


async def test_the_link_that_make_run_prints_leads_to_the_tour_and_lets_nobody_in_twice(
    browser: Browser, tmp_path: Path
) -> None:
    from playwright.async_api import expect

    _, *rest = shlex.split(recipe("run"))
    with in_front([str(SCRIPT), *rest], tmp_path) as hub:
        link = hub.wait_for(r"\n +(http://\S+#login=\S+)\r?\n")[1]
        async with await browser.new_context() as mine, await browser.new_context() as theirs:
            for context in (mine, theirs):
                context.set_default_timeout(DEADLINE * 1000)
            page = await mine.new_page()
            await page.goto(link)
            await page.get_by_role("button", name="Take the tour").click()
            await expect(page.get_by_text("1 of 14")).to_be_visible(timeout=DEADLINE * 1000)
            assert "login" not in page.url
            late = await theirs.new_page()
            await late.goto(link)
            await expect(late.get_by_text("antiphon link")).to_be_visible(timeout=DEADLINE * 1000)
