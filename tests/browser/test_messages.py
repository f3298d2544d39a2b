"""Messages in the page: a deleted one leaves a mark, and reactions are shown with who gave them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.visiting import Visit, arrive
from tests.hub.running import Served, served

pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENT = [sys.executable, str(Path(__file__).parent / "editing_agent.py")]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("hub"), agent=AGENT) as running:
        yield running


async def test_a_deleted_message_leaves_a_mark_that_an_undo_takes_away(visit: Visit, tmp_path: Path) -> None:
    _, ann = await arrive(visit, name="Ann")
    await ann.begin(str(tmp_path))
    await ann.say("say The answer is 41.")
    answer = ann.transcript.get_by_role("article", name="Answer").first
    await expect(answer).to_contain_text("The answer is 41.")
    await ann.ready()
    await ann.say("delete")
    await expect(answer).to_contain_text("Message deleted")
    await expect(answer).not_to_contain_text("41")
    await ann.ready()
    await ann.page.reload()
    await expect(answer).to_contain_text("Message deleted")
    await ann.say("undo")
    await expect(answer).to_contain_text("The answer is 41.")
    await expect(answer.get_by_text("Message deleted")).to_be_hidden()


async def test_reactions_are_shown_with_who_gave_them(visit: Visit, tmp_path: Path) -> None:
    _, ann = await arrive(visit, name="Ann")
    await ann.begin(str(tmp_path))
    await ann.say("say Done.")
    _, bob = await arrive(visit, name="Bob")
    await bob.open(ann.session_id)
    answers = [page.transcript.get_by_role("article", name="Answer").first for page in (ann, bob)]
    for answer in answers:
        await expect(answer).to_contain_text("Done.")
    await answers[0].hover()
    await answers[0].get_by_role("button", name="React", exact=True).click()
    await answers[0].get_by_role("button", name="React with 🎉").click()
    await expect(answers[0].get_by_role("button", name="🎉 by you")).to_have_attribute("aria-pressed", "true")
    given = answers[1].get_by_role("button", name="🎉 by Ann")
    await expect(given).to_have_attribute("aria-pressed", "false")
    await given.click()
    await expect(answers[0].get_by_role("button", name="🎉 by you, Bob")).to_be_visible()
    await ann.page.reload()
    mine = answers[0].get_by_role("button", name="🎉 by you, Bob")
    await mine.click()
    await expect(answers[1].get_by_role("button", name="🎉 by you")).to_have_attribute("aria-pressed", "true")
    await answers[1].hover()
    await answers[1].get_by_role("button", name="React", exact=True).click()
    await answers[1].get_by_role("button", name="Note").click()
    await bob.page.get_by_role("textbox", name="Note").fill("Which one?")
    await bob.page.get_by_role("button", name="Add", exact=True).click()
    await expect(answers[0].locator(".noted")).to_have_text("BobWhich one?")
    await answers[1].get_by_role("button", name="Remove the note").click()
    await expect(answers[0].locator(".noted")).to_have_count(0)
