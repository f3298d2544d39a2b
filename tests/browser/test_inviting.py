"""Inviting others from the page (issue 8): an owner makes a link; who opens it may do that and no more."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Locator, ViewportSize, expect
from tools.session_page import SessionPage

from tests.browser import accessibility
from tests.browser.visiting import Visit, arrive

pytestmark = pytest.mark.asyncio(loop_scope="session")

PHONE: ViewportSize = {"width": 390, "height": 844}
DESK: ViewportSize = {"width": 1440, "height": 900}


async def inviting(page: SessionPage) -> Locator:
    """The dialog, come to by the tab of those who are here."""
    await page.side.get_by_role("tab", name="People").click()
    await page.side.get_by_role("button", name="Invite…").click()
    return page.page.get_by_role("dialog", name="Invite a user")


async def link_in(dialog: Locator) -> str:
    """The link that it makes of what is chosen."""
    await dialog.get_by_role("button", name="Create link").click()
    field = dialog.get_by_role("textbox")
    await expect(field).to_be_focused()
    return await field.input_value()


async def test_somebody_is_invited_to_watch_a_session(visit: Visit, tmp_path: Path) -> None:
    _, ann = await arrive(visit, viewport=DESK, permissions=["clipboard-read", "clipboard-write"])
    await ann.begin(str(tmp_path))
    session = ann.session_id
    await ann.begin(str(tmp_path))  # which is not for everybody
    await ann.open(session)
    await ann.turn("stream 2")

    dialog = await inviting(ann)
    await expect(dialog.get_by_role("radio", name="Watch")).to_be_checked()
    await expect(dialog.get_by_role("radio", name="In this session")).to_be_checked()
    link = await link_in(dialog)
    await expect(dialog).to_contain_text("It works once, for 5 min")
    await expect(dialog).to_contain_text("works on this machine only")
    await expect(dialog).to_contain_text("--tls-cert")
    await dialog.get_by_role("button", name="Copy").click()
    await expect(dialog.get_by_role("button", name="Copied")).to_be_visible()
    assert await ann.page.evaluate("() => navigator.clipboard.readText()") == link
    await dialog.get_by_role("button", name="Done").click()
    await expect(ann.side.get_by_role("button", name="Invite…")).to_be_focused()

    bob = await visit(name="Bob", viewport=DESK)
    bobs = SessionPage(await bob.page(link=link))
    await bobs.come_in()
    await bobs.shown()
    assert bobs.session_id == session
    await bobs.reads("Sentence 2 of 2")
    await expect(bobs.prompt).to_be_disabled()
    await expect(bobs.prompt).to_have_attribute(
        "placeholder", "You are an observer: you can watch this session, but not act in it."
    )
    await expect(bobs.sessions.get_by_role("listitem")).to_have_count(1)
    await bobs.side.get_by_role("tab", name="People").click()
    await expect(bobs.side.get_by_role("button", name="Invite…")).to_be_hidden()
    await bobs.bar.get_by_role("button", name="Session", exact=True).click()
    await expect(bobs.page.get_by_role("menuitem", name="Copy link")).to_be_visible()
    await expect(bobs.page.get_by_role("menuitem", name="Invite…")).to_have_count(0)

    await expect(ann.side.get_by_role("listitem").filter(has_text="Bob")).to_be_visible()
    await ann.turn("stream 4")
    await bobs.reads("Sentence 4 of 4")

    late = await visit(name="Eve")
    late.expected.append("401")
    page = await late.page(link=link)  # it was good once
    await expect(page.get_by_role("heading", name="This link has expired or was used before")).to_be_visible()


async def test_somebody_is_invited_to_manage_all_sessions_by_keys_alone(visit: Visit, tmp_path: Path) -> None:
    _, ann = await arrive(visit)
    await ann.begin(str(tmp_path))
    opener = ann.bar.get_by_role("button", name="Session", exact=True)
    await opener.focus()
    keys = ann.page.keyboard
    await keys.press("Enter")
    await keys.press("i")
    await keys.press("Enter")
    dialog = ann.page.get_by_role("dialog", name="Invite a user")
    await expect(dialog.get_by_role("radio", name="Watch")).to_be_focused()
    await keys.press("ArrowUp")
    await expect(dialog.get_by_role("radio", name="Manage")).to_be_checked()
    await keys.press("Tab")
    await keys.press("ArrowDown")
    await expect(dialog.get_by_role("radio", name="In all sessions")).to_be_checked()
    await keys.press("Enter")
    field = dialog.get_by_role("textbox", name="A link to manage all sessions")
    await expect(field).to_be_focused()
    link = await field.input_value()
    await keys.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(opener).to_be_focused()

    bob = await visit(name="Bob")
    bobs = SessionPage(await bob.page(link=link))
    await bobs.come_in()
    await bobs.shown()
    await bobs.turn("stream 3")
    await ann.reads("Sentence 3 of 3")
    await expect(await inviting(bobs)).to_be_visible()


async def test_who_manages_one_session_begins_no_others_and_invites_nobody(
    visit: Visit, tmp_path: Path
) -> None:
    _, ann = await arrive(visit)
    await ann.begin(str(tmp_path))
    dialog = await inviting(ann)
    await dialog.get_by_role("radio", name="Manage").check()
    bob = await visit(name="Bob")
    bobs = SessionPage(await bob.page(link=await link_in(dialog)))
    await bobs.come_in()
    await bobs.shown()
    await bobs.turn("stream 1")
    await expect(bobs.sessions.get_by_role("button", name="New session")).to_be_hidden()
    await expect(bobs.transcript.get_by_role("button", name="Fork from here")).to_have_count(0)
    await bobs.side.get_by_role("tab", name="People").click()
    await expect(bobs.side.get_by_role("button", name="Invite…")).to_be_hidden()
    refused = (
        "() => antiphon.call('_antiphon/link', {sessionId: antiphon.session.id}).catch((e) => e.data.reason)"
    )
    assert await bobs.page.evaluate(refused) == "forbidden"


async def test_what_goes_wrong_is_said_where_one_looks(visit: Visit, tmp_path: Path) -> None:
    _, ann = await arrive(visit)
    await ann.begin(str(tmp_path))
    dialog = await inviting(ann)
    await ann.page.evaluate("() => { antiphon.call = async () => { throw new Error('It is too late.'); }; }")
    await dialog.get_by_role("button", name="Create link").click()
    await expect(dialog.get_by_role("alert")).to_have_text("It is too late.")
    await expect(dialog.get_by_role("button", name="Create link")).to_be_enabled()


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
async def test_the_dialog_can_be_read_and_used_by_everybody(
    visit: Visit, tmp_path: Path, size: ViewportSize
) -> None:
    _, ann = await arrive(visit, viewport=size)
    if size is PHONE:
        await ann.bar.get_by_role("button", name="Sessions").click()
    await ann.begin(str(tmp_path))
    if size is PHONE:
        await ann.bar.get_by_role("button", name="About this session").click()
    dialog = await inviting(ann)
    for step in ("chosen", "made"):
        if step == "made":
            await link_in(dialog)
        for theme in ("light", "dark"):
            await ann.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            assert await accessibility.complaints(ann.page, *accessibility.COVERED) == {}, (step, theme)
    assert await ann.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    await dialog.get_by_role("button", name="Create another").click()
    await expect(dialog.get_by_role("radio", name="Watch")).to_be_focused()
