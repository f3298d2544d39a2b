"""The search over all sessions on the page: results as one types, opening at the place, and the keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser import accessibility
from tests.browser.visiting import Visit, arrive

pytestmark = pytest.mark.asyncio(loop_scope="session")

REVEALED = "() => document.querySelector('#transcript .row.revealed')?.textContent ?? ''"


async def test_a_message_of_another_session_is_found_and_opened_at_its_place(
    visit: Visit, tmp_path: Path
) -> None:
    _, page = await arrive(visit)
    await page.begin(str(tmp_path))
    await page.turn("the Xylophone <b>concert</b> was 🎉 loud")
    for number in range(3):
        await page.turn(f"something else {number}")
    first = page.session_id
    await page.begin(str(tmp_path))
    await page.turn("nothing of it here")
    assert page.session_id != first

    # In the composer the key is a letter like any other.
    await page.prompt.focus()
    await page.page.keyboard.type("s")
    dialog = page.page.get_by_role("dialog", name="Search all sessions")
    await expect(page.prompt).to_have_value("s")
    await expect(dialog).to_have_count(0)
    await page.prompt.fill("")
    await page.page.keyboard.press("Escape")
    await page.page.keyboard.press("s")
    field = dialog.get_by_role("searchbox", name="Search the contents of all sessions")
    await expect(field).to_be_focused()
    await page.page.keyboard.type("loud xyl")
    found = dialog.locator(".search-match", has_text="User ·")  # the title of the session is found, too
    await expect(found).to_contain_text("the Xylophone <b>concert</b> was 🎉 loud")
    assert await found.locator("mark").all_inner_texts() == ["Xylophone", "loud"]
    wrong = await accessibility.complaints(page.page, *accessibility.COVERED)
    assert wrong == {}
    await page.page.keyboard.type("ophonist")
    await expect(dialog.get_by_role("status")).to_have_text("Nothing found")
    await expect(dialog.locator(".search-match")).to_have_count(0)
    await field.fill("xylophone loud")
    await expect(found).to_be_visible()
    await page.page.keyboard.press("ArrowDown")
    await expect(dialog.locator(".search-match").first).to_be_focused()
    await found.press("Enter")
    await expect(dialog).to_have_count(0)
    await page.page.wait_for_function(f"() => ({REVEALED})().includes('Xylophone')")
    assert page.session_id == first

    # The button does the same, and Escape leaves everything as it was.
    await page.sessions.get_by_role("button", name="Search all sessions").click()
    await expect(field).to_be_focused()
    await page.page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    assert page.session_id == first
