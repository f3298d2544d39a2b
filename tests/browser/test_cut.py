"""A turn that was cut short says by what, nothing of it seems to go on, and it can be tried again."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect
from playwright.async_api import TimeoutError as PlaywrightTimeout
from tools.session_page import DEADLINE, SessionPage

from tests.browser.test_lost import LOST
from tests.browser.visiting import Visit, arrive
from tests.hub.running import Served, kill_agents, served

pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENT = [sys.executable, str(Path(__file__).parent / "asking_agent.py")]
STOPPED = "the hub was stopped"
LOST_HUB = "the hub ended unexpectedly"
LOST_AGENT = "the agent ended"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("hub"), agent=AGENT) as running:
        yield running


async def asked(page: SessionPage) -> None:
    await expect(page.question("Permission: Publish the site")).to_be_visible()


async def shows_the_cut(page: SessionPage, why: str) -> None:
    """What the page shows of a turn that was cut short in the middle of two calls and a question."""
    await page.ready()
    calls = page.transcript.get_by_role("article", name="Tool call")
    for title in ("Build the site", "Publish the site"):
        await expect(calls.filter(has_text=title).last).to_contain_text("Failed")
    await expect(calls.filter(has_text=re.compile("Waiting|Running"))).to_have_count(0)
    end = page.transcript.locator(".end").last
    await expect(end).to_contain_text(f"The turn was interrupted: {why}")
    await expect(end).to_contain_text("Nobody answered the question “Publish the site")


async def stop(hub: Served) -> None:
    """End the hub as a service manager does, without waiting for the turn: it is told twice."""
    hub.process.send_signal(signal.SIGTERM)
    await asyncio.to_thread(hub.end, patience=0.5)


async def test_a_cut_turn_says_by_what_and_is_tried_again(hub: Served, visit: Visit, tmp_path: Path) -> None:
    visitor, ann = await arrive(visit)
    visitor.expected += (*LOST, "status of 503")
    await ann.begin(str(tmp_path))
    await ann.say("go")
    await asked(ann)
    port = hub.port
    hub.kill()
    await asyncio.to_thread(hub.restart, port=port)
    await expect(ann.questions).to_contain_text(f"Not answered: {LOST_HUB}")
    await shows_the_cut(ann, LOST_HUB)
    await ann.page.reload()
    await ann.shown()
    await shows_the_cut(ann, LOST_HUB)

    await ann.transcript.get_by_role("button", name="Retry").last.click()
    await asked(ann)
    await expect(ann.transcript.get_by_role("article", name="Prompt")).to_have_count(2)
    await stop(hub)
    await asyncio.to_thread(hub.restart, port=port)
    await expect(ann.questions).to_contain_text(f"Not answered: {STOPPED}")
    await shows_the_cut(ann, STOPPED)
    await ann.page.reload()
    await ann.shown()
    await shows_the_cut(ann, STOPPED)
    # The first cut is still told, with its own reason.
    await expect(ann.transcript.locator(".end").first).to_contain_text(LOST_HUB)

    await ann.transcript.get_by_role("button", name="Retry").last.click()
    await asked(ann)
    assert kill_agents(hub) == 1
    await expect(ann.questions).to_contain_text(f"Not answered: {LOST_AGENT}")
    await shows_the_cut(ann, LOST_AGENT)

    await ann.say("go")
    await asked(ann)
    await ann.stop.click()
    await ann.ready()
    calls = ann.transcript.get_by_role("article", name="Tool call")
    await expect(calls.filter(has_text=re.compile("Waiting|Running"))).to_have_count(0)
    await ann.say("left")
    await expect(calls.filter(has_text="Left behind")).to_contain_text("Not finished")


async def choose(prompt: Locator, name: str) -> None:
    """Click a button that a prompt shows under the pointer.

    The transcript may move the prompt away from the pointer, and the button hides: point at the prompt again.
    """
    button = prompt.get_by_role("button", name=name)
    async with asyncio.timeout(DEADLINE):
        while True:
            await prompt.hover()
            with suppress(PlaywrightTimeout):
                await button.click(timeout=2000)
                return


async def test_a_prompt_is_sent_again_as_it_was_or_changed(visit: Visit, tmp_path: Path) -> None:
    _, ann = await arrive(visit)
    await ann.begin(str(tmp_path))
    await ann.turn("say one")
    await ann.turn("say two")
    prompts = ann.transcript.get_by_role("article", name="Prompt")
    await choose(prompts.last, "Retry")
    await expect(prompts).to_have_count(3)
    await ann.ready()
    await choose(prompts.last, "Edit and resend")
    edit = prompts.last.get_by_role("button", name="Edit and resend")
    await expect(edit).to_have_attribute("title", re.compile("in a fork of the session"))
    await expect(ann.prompt).to_have_value("say two")
    notice = ann.page.locator(".resending")
    before = ann.session_id
    await expect(notice).to_contain_text("starts a fork of the session")
    await ann.say("say three")
    await ann.page.wait_for_function("(id) => !location.hash.endsWith(id)", arg=before)
    await ann.reads("say three")
    await expect(prompts).to_have_count(3)
    await ann.ready()
    await choose(prompts.last, "Edit and resend")
    await notice.get_by_role("button", name="Send it here instead").click()
    await expect(notice).to_contain_text("adds a new prompt to this session")
    count = await prompts.count()
    await ann.say("say four")
    await expect(prompts).to_have_count(count + 1)
    await expect(notice).to_be_hidden()
    await asyncio.wait_for(ann.ready(), DEADLINE)
