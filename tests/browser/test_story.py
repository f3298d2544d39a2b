"""The story of a visitor (issue 8): two browsers and a terminal in one session, and what one does there."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect
from tools.session_page import SessionPage
from tools.tmux import Terminal

from tests.browser.conftest import keep_pictures
from tests.browser.visiting import Visit, Visitor, arrive
from tests.hub.running import ANTIPHON, Served

pytestmark = pytest.mark.asyncio(loop_scope="session")

Both = tuple[SessionPage, SessionPage]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes.txt").write_text("one\ntwo\nthree\n")
    return tmp_path


def until(file: str) -> str:
    """A prompt whose command ends when there is such a file in the session's folder."""
    return f"run sh -c 'until [ -e {file} ]; do sleep 0.02; done; echo went on'"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def couple(browser: Browser, hub: Served) -> AsyncIterator[list[Visitor]]:
    """Two browsers of two people, who stay for all tests."""
    visitors = [await Visitor.of(browser, hub, name=name) for name in ("Ann", "Bob")]
    for visitor in visitors:
        await SessionPage(await visitor.page()).come_in()
    yield visitors
    for visitor in visitors:
        await visitor.context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def both(
    browser: Browser, couple: list[Visitor], folder: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Both]:
    """Ann, who has begun a session, and Bob, who has come to it."""
    ann, bob = (SessionPage(visitor.context.pages[0]) for visitor in couple)
    await ann.begin(str(folder))
    await bob.open(ann.session_id)
    await bob.ready()
    yield ann, bob
    await keep_pictures(browser, request)
    assert [told for visitor in couple for told in visitor.complaints] == []


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
async def test_one_approves_while_the_others_see_it_withdrawn(hub: Served, both: Both) -> None:
    ann, bob = both
    chat = (*ANTIPHON, "chat", ann.session_id, "--data", str(hub.folder), "--name", "Carol")
    async with Terminal.of("env", "-u", "COLUMNS", "-u", "LINES", *chat) as terminal:
        await terminal.shows("with Ann, Bob")
        await terminal.keys("stream 30")
        await terminal.shows("stream 30")
        await terminal.keys("Enter")
        for page in (ann, bob):
            await page.reads("Sentence 30 of 30")
            await expect(page.transcript.get_by_role("article").first).to_contain_text("Carol")
            await page.ready()
        await terminal.shows("Sentence 30 of 30")
        await bob.say("run echo allowed")
        for page in (ann, bob):
            await expect(page.question("Permission: echo allowed")).to_be_visible()
            await page.state("Waiting for an answer")
        await terminal.shows("waiting for your answer")
        await ann.questions.get_by_role("button", name="Allow").first.click()
        await expect(bob.questions).to_contain_text("Answered by Ann")
        await terminal.shows("Ann answered")
        for page in (ann, bob):
            await page.reads("It ended with code 0.")
            await page.ready()
            await expect(page.questions).to_be_hidden()  # after it has said who
        await terminal.shows("It ended with code 0.")


async def test_prompts_are_queued_changed_moved_and_withdrawn(both: Both, folder: Path) -> None:
    ann, bob = both
    await ann.say(until("go"))
    await ann.questions.get_by_role("button", name="Allow").first.click()
    await ann.working()
    for text in ("stream 1", "stream 2", "stream 3"):
        await ann.say(text)
    for page in (ann, bob):
        await page.queued_texts("stream 1", "stream 2", "stream 3")
    await bob.queued().nth(0).get_by_role("button", name="Edit").click()
    field = bob.queue.get_by_role("textbox", name="Queued prompt")
    await field.fill("stream 4")
    await field.press("Enter")
    await ann.queued_texts("stream 4", "stream 2", "stream 3")
    await ann.queued().nth(2).get_by_role("button", name="Move up").click()
    await bob.queued_texts("stream 4", "stream 3", "stream 2")
    await bob.queued().nth(1).get_by_role("button", name="Withdraw").click()
    await ann.queued_texts("stream 4", "stream 2")
    (folder / "go").touch()
    for page in (ann, bob):
        await page.reads("Sentence 4 of 4")
        await page.reads("Sentence 2 of 2")
        await page.ready()
        await expect(page.queue).to_be_hidden()
        await expect(page.transcript.get_by_text("stream 3")).to_have_count(0)


async def test_a_turn_is_stopped_by_whoever_wants_to(both: Both) -> None:
    ann, bob = both
    await ann.say(until("never"))
    await ann.questions.get_by_role("button", name="Allow").first.click()
    await bob.working()
    await ann.say("stream 2")
    await bob.stop.click()
    for page in (ann, bob):
        await page.ready()
        await page.queued_texts("stream 2")  # it waits until somebody lets it go on
        await expect(page.queue).to_contain_text("paused")
    await ann.queue.get_by_role("button", name="Resume").click()
    for page in (ann, bob):
        await page.reads("Sentence 2 of 2")
        await page.ready()


async def test_a_session_is_forked_after_a_message(both: Both) -> None:
    ann, _ = both
    await ann.turn("stream 3")
    await ann.reads("Sentence 3 of 3")
    await ann.turn("stream 5")
    await ann.reads("Sentence 5 of 5")
    source = ann.session_id
    message = ann.transcript.get_by_role("article").filter(has_text="Sentence 3 of 3")
    await message.hover()
    await message.get_by_role("button", name=re.compile("Fork")).click()
    await ann.page.wait_for_function("(id) => !location.hash.endsWith(id)", arg=source)
    await ann.reads("Sentence 3 of 3")
    await expect(ann.transcript.get_by_text("Sentence 5 of 5")).to_have_count(0)
    await ann.turn("stream 7")
    await ann.reads("Sentence 7 of 7")
    await ann.page.go_back()
    await ann.reads("Sentence 5 of 5")
    await expect(ann.transcript.get_by_text("Sentence 7 of 7")).to_have_count(0)


async def test_a_reload_in_the_middle_of_a_turn_loses_nothing(both: Both, folder: Path) -> None:
    ann, _ = both
    await ann.turn("stream 3")
    await ann.reads("Sentence 3 of 3")
    await ann.say(until("go"))
    await expect(ann.questions.get_by_role("group", name="Your answer")).to_be_visible()
    await ann.page.reload()  # with a question open
    await ann.questions.get_by_role("button", name="Allow").first.click()
    await ann.working()
    await ann.prompt.fill("not sent yet")
    await ann.say("stream 2")
    await ann.queued_texts("stream 2")
    await ann.prompt.fill("a draft")
    await ann.page.reload()  # with a command running and a prompt waiting
    await ann.working()
    await ann.queued_texts("stream 2")
    await ann.reads("Sentence 3 of 3")
    await expect(ann.prompt).to_have_value("a draft")
    (folder / "go").touch()
    await ann.reads("went on")
    await ann.reads("Sentence 2 of 2")
    await ann.ready()


async def test_a_session_is_renamed_for_all(both: Both) -> None:
    ann, bob = both
    await ann.title.get_by_role("button").click()
    field = ann.page.get_by_role("textbox", name="Title of the session")
    await field.fill("A better name")
    await field.press("Enter")
    for page in (ann, bob):
        await expect(page.title).to_contain_text(
            "A better name",
        )
        await expect(page.sessions.get_by_role("button", name=re.compile("^A better name"))).to_be_visible()


@pytest.mark.parametrize(("item", "ending"), [("As Markdown", ".md"), ("As HTML", ".html")])
async def test_a_transcript_is_downloaded(visit: Visit, folder: Path, item: str, ending: str) -> None:
    _, ann = await arrive(visit)
    await ann.begin(str(folder))
    await ann.turn("stream 3")
    await ann.bar.get_by_role("button", name="Session", exact=True).click()
    async with ann.page.expect_download() as coming:
        await ann.page.get_by_role("menuitem", name=item).click()
    download = await coming.value
    assert download.suggested_filename.endswith(ending)
    saved = await asyncio.to_thread(Path(await download.path()).read_text)
    assert "Sentence 3 of 3" in saved
    assert "stream 3" in saved


async def test_the_theme_is_chosen_and_kept(visit: Visit) -> None:
    _, ann = await arrive(visit, color_scheme="light")
    shown = "() => getComputedStyle(document.body).backgroundColor"
    light = await ann.page.evaluate(shown)
    await ann.bar.get_by_role("button", name="Theme: system").click()
    await ann.page.get_by_role("menuitemradio", name="Dark").click()
    dark = await ann.page.evaluate(shown)
    assert dark != light
    await ann.page.reload()
    await ann.come_in()
    assert await ann.page.evaluate(shown) == dark
    await ann.bar.get_by_role("button", name="Theme: dark").click()
    await ann.page.get_by_role("menuitemradio", name="As the system").click()
    assert await ann.page.evaluate(shown) == light
    await ann.page.emulate_media(color_scheme="dark")
    assert await ann.page.evaluate(shown) == dark


ROLE = """() => {
  const { localName, role } = document.activeElement;
  return role ?? localName;
}"""


async def test_everything_works_by_keys_alone(visit: Visit, folder: Path) -> None:
    _, ann = await arrive(visit)
    keys = ann.page.keyboard
    await expect(ann.prompt).to_be_focused()
    await keys.press("Escape")
    await keys.press("n")
    await expect(ann.prompt).to_be_focused()
    for control in ("button", "button", "combobox"):  # the files, the agent, the folder
        await keys.press("Tab")
        assert await ann.page.evaluate(ROLE) == control
    await keys.press("ControlOrMeta+a")
    await keys.type(str(folder))
    await keys.press("Enter")
    await expect(ann.prompt).to_be_focused()
    await keys.type(until("go"))
    await keys.press("Enter")
    await expect(ann.questions.get_by_role("group", name="Your answer")).to_be_visible()
    await keys.press("Alt+1")
    await ann.working()
    for text in ("stream 1", "stream 2"):
        await keys.type(text)
        await keys.press("Enter")
    await ann.queued_texts("stream 1", "stream 2")
    await ann.queued().nth(1).get_by_role("button", name="Move up").focus()
    await keys.press("Alt+ArrowUp")
    await ann.queued_texts("stream 2", "stream 1")
    await keys.press("ControlOrMeta+.")
    await ann.ready()
    await keys.press("Escape")
    await keys.press("t")
    await expect(ann.side.get_by_role("tab", name="Timeline")).to_be_focused()
    await expect(ann.side.get_by_role("tabpanel", name="Timeline")).to_be_visible()
    await keys.press("ArrowRight")
    await expect(ann.side.get_by_role("tab", name="People")).to_be_focused()
    await keys.press("?")
    await expect(ann.page.get_by_role("dialog", name="Keys")).to_be_visible()
    await keys.press("Escape")
    await expect(ann.page.get_by_role("dialog")).to_have_count(0)
    await expect(ann.side.get_by_role("tab", name="People")).to_be_focused()
    await keys.press("/")
    await expect(ann.page.get_by_role("searchbox", name="Find a session")).to_be_focused()
    await keys.press("ArrowDown")
    assert await ann.sessions.locator(":focus").count() == 1
    await keys.press("Enter")
    await expect(ann.prompt).to_be_visible()


async def test_a_command_is_completed_and_an_old_prompt_brought_back(visit: Visit, folder: Path) -> None:
    _, ann = await arrive(visit)
    await ann.begin(str(folder))
    await ann.prompt.press_sequentially("/to")
    await expect(ann.page.get_by_role("option", name="/tour")).to_be_visible()
    await ann.prompt.press("Tab")
    await expect(ann.prompt).to_have_value("/tour ")
    await ann.turn("stream 2")
    await ann.prompt.press("ArrowUp")
    await expect(ann.prompt).to_have_value("stream 2")


TAIL_IS_SHOWN = """(path) => {
  path.textContent = `…/${"long".repeat(30)}/end`;
  const [box, text] = [path.parentElement, path].map((each) => each.getBoundingClientRect());
  return text.width > box.width && text.right <= box.right + 1;
}"""


async def test_it_works_on_a_phone(visit: Visit, folder: Path) -> None:
    _, ann = await arrive(visit, viewport={"width": 360, "height": 740}, has_touch=True)
    await ann.bar.get_by_role("button", name="Sessions").tap()
    await ann.begin(str(folder))
    await ann.say("run echo on a phone")
    card = ann.question("Permission: echo on a phone")
    await card.get_by_role("button", name="Allow").first.tap()
    await ann.reads("It ended with code 0.")
    await ann.ready()
    await ann.bar.get_by_role("button", name="About this session").tap()
    await ann.side.get_by_role("tab", name="Timeline").tap()
    await expect(ann.side.get_by_role("listitem").filter(has_text="echo on a phone").first).to_be_visible()
    await ann.side.get_by_role("button", name="Close").tap()
    await expect(ann.side).to_be_hidden()
    assert await ann.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    options = ann.page.get_by_role("group", name="Options of the session").last
    await expect(options.get_by_role("switch", name="Explain")).to_be_visible()
    assert await options.evaluate("(row) => row.scrollWidth <= row.clientWidth"), "an option is cut"
    # Of a long folder the end is shown.
    await ann.bar.get_by_role("button", name="Sessions").tap()
    place = ann.sessions.locator(".session-folder bdi").first
    assert await place.evaluate(TAIL_IS_SHOWN)
