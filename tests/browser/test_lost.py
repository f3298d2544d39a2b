"""A page that loses the hub says so, finds it again by itself, and has missed nothing (issue 8)."""

from __future__ import annotations

import asyncio
import contextlib
import re
from pathlib import Path

import pytest
from playwright.async_api import TimeoutError, expect

from tests.browser.visiting import Visit, arrive
from tests.hub.running import Served

pytestmark = pytest.mark.asyncio(loop_scope="session")

LOST = (r"net::ERR_(CONNECTION|INTERNET|EMPTY)_\w+", "WebSocket connection to")
"""What a browser says where nobody is."""
LOST_WORDS = re.compile("^(Reconnecting|Offline)")


async def test_a_hub_that_is_killed_and_started_again_is_found_again(
    hub: Served, visit: Visit, tmp_path: Path
) -> None:
    visitor, ann = await arrive(visit)
    visitor.expected += LOST
    await ann.begin(str(tmp_path))
    await ann.turn("stream 3")
    await ann.reads("Sentence 3 of 3")
    port = hub.port
    hub.kill()
    try:
        await expect(ann.bar.get_by_text(LOST_WORDS)).to_be_visible()
        await ann.prompt.fill("stream 4")
    finally:
        await asyncio.to_thread(hub.restart, port=port)
    with contextlib.suppress(TimeoutError):  # the page may have come back by itself meanwhile
        await ann.bar.get_by_role("button", name="Retry now").click(timeout=1000)
    await expect(ann.bar.get_by_text(LOST_WORDS)).to_be_hidden()
    await ann.reads("Sentence 3 of 3")
    await ann.prompt.press("Enter")
    await ann.reads("Sentence 4 of 4")
    await ann.ready()
    assert await ann.transcript.get_by_text("Sentence 3 of 3").count() == 1


async def test_what_is_said_while_one_is_offline_is_there_afterwards(visit: Visit, tmp_path: Path) -> None:
    _, ann = await arrive(visit)
    await ann.begin(str(tmp_path))
    visitor, carol = await arrive(visit, name="Carol")
    visitor.expected += LOST
    await carol.open(ann.session_id)
    await carol.ready()
    await visitor.context.set_offline(True)
    await expect(carol.bar.get_by_text(LOST_WORDS)).to_be_visible()
    await ann.turn("stream 6")
    await expect(carol.transcript.get_by_text("Sentence 6 of 6")).to_have_count(0)
    await visitor.context.set_offline(False)
    await carol.reads("Sentence 6 of 6")
    await carol.ready()
    assert await carol.transcript.get_by_text("Sentence 6 of 6").count() == 1
