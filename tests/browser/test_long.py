"""A long session stays as smooth as a short one (issue 8): of 100,000 events, what one looks at is drawn."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect
from tools.session_page import SessionPage

from tests.browser.visiting import Visit, arrive
from tests.hub.running import Served, served

pytestmark = pytest.mark.asyncio(loop_scope="session")

SHORT, LONG = 1_000, 100_000
NODES = "() => document.querySelectorAll('*').length"
FRAMES = """async (area) => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const spent = [];
  area.scrollTop = area.scrollHeight / 2;
  await frame();
  for (let step = 0; step < 40; step += 1) {
    const before = performance.now();
    area.scrollTop -= area.clientHeight / 2;
    await frame();
    await frame();
    spent.push(performance.now() - before);
  }
  return spent.sort((one, two) => one - two)[Math.floor(spent.length * 0.9)];
}"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    agent = [sys.executable, str(Path(__file__).with_name("long_agent.py"))]
    with served(tmp_path_factory.mktemp("hub"), agent=agent) as running:
        yield running


async def lived(page: SessionPage, count: int) -> float:
    """A session in which so much happens, while one looks on; in how many seconds."""
    await page.begin("/tmp")
    began = time.monotonic()
    await page.turn(f"tell {count}")
    await page.reads(f"Told tell {count}.")
    return time.monotonic() - began


async def seconds_to_answer(page: SessionPage, text: str) -> float:
    began = time.monotonic()
    await page.turn(text)
    await page.reads(f"Told {text}.")
    return time.monotonic() - began


async def scrolled(page: SessionPage) -> float:
    """Milliseconds of a slow step, of two frames."""
    return float(await page.messages.evaluate(FRAMES))


async def test_a_hundred_thousand_events_are_as_smooth_as_a_thousand(visit: Visit) -> None:
    _, page = await arrive(visit)
    await lived(page, SHORT)
    nodes, step = await page.page.evaluate(NODES), await scrolled(page)
    answer = await seconds_to_answer(page, "a")
    lasted = await lived(page, LONG)
    assert await page.page.evaluate(NODES) < 1.5 * nodes
    assert await scrolled(page) < 3 * step + 30
    assert await page.page.evaluate(NODES) < 1.5 * nodes
    assert await seconds_to_answer(page, "b") < 5 * answer + 1
    began = time.monotonic()
    await page.page.reload()
    await page.reads("Told b.")
    assert time.monotonic() - began < lasted + 2  # sooner than it took to live through
    assert await page.page.evaluate(NODES) < 1.5 * nodes
    await page.messages.press("Home")
    await expect(page.transcript.get_by_text("Part 0 of what there is")).to_be_visible()
