"""A long session stays as smooth as a short one (issue 8): of 100,000 events, what one looks at is drawn."""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect
from tools.session_page import DEADLINE, SessionPage

from tests.browser.visiting import Visit, arrive
from tests.hub.running import Served, served

pytestmark = pytest.mark.asyncio(loop_scope="session")

SHORT, LIVE, LONG = 1_000, 5_000, 100_000
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


async def told(hub: Served, count: int) -> str:
    """A session in which so much happened, while nobody looked on."""
    async with asyncio.timeout(4 * DEADLINE), hub.talk() as talk:
        id: str = (await talk.call("n", "session/new", cwd="/tmp", mcpServers=[]))["sessionId"]
        prompt = [{"type": "text", "text": f"tell {count}"}]
        await talk.call("p", "session/prompt", sessionId=id, prompt=prompt)
        await talk.call("d", "_antiphon/detach", sessionId=id)
        for number in itertools.count():
            [entry] = (await talk.call(f"l{number}", "session/list"))["sessions"][:1]
            if entry["_meta"]["antiphon"].get("state") == "idle":
                return id
            await asyncio.sleep(0.1)  # nobody follows it, so nobody is told
    raise AssertionError


async def opened(page: SessionPage, session: str, text: str) -> float:
    began = time.monotonic()
    await page.open(session)
    await page.reads(f"Told {text}.")
    return time.monotonic() - began


async def lived(page: SessionPage, text: str) -> float:
    """A turn, while one looks on; in how many seconds."""
    began = time.monotonic()
    await page.turn(text)
    await page.reads(f"Told {text}.")
    return time.monotonic() - began


async def scrolled(page: SessionPage) -> float:
    """Milliseconds of a slow step, of two frames."""
    return float(await page.messages.evaluate(FRAMES))


async def nodes(page: SessionPage) -> int:
    return int(await page.page.evaluate("() => document.querySelectorAll('*').length"))


async def test_a_hundred_thousand_events_are_as_smooth_as_a_thousand(hub: Served, visit: Visit) -> None:
    _, page = await arrive(visit)
    short = await told(hub, SHORT)
    opening = await opened(page, short, f"tell {SHORT}")
    few, step = await nodes(page), await scrolled(page)
    turn = await lived(page, f"tell {LIVE}")
    long = await told(hub, LONG)
    assert await opened(page, long, f"tell {LONG}") < LONG / SHORT * opening + 5
    assert await nodes(page) < 1.5 * few
    assert await scrolled(page) < 3 * step + 30
    assert await nodes(page) < 1.5 * few
    assert await lived(page, f"tell {LIVE}") < 3 * turn + 1
    await page.messages.press("Home")
    await expect(page.transcript.get_by_text("Part 0 of what there is").first).to_be_visible()
    await page.messages.press("End")
    await page.reads(f"Told tell {LIVE}.")
