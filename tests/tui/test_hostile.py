"""What does harm, wherever an agent or a client can write it: nothing of it runs, hides, or leaves its place.

What is on the screen is looked at cell by cell, as it is given to the terminal.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.segment import Segment
from textual.widgets import Static
from tools.terminal_stage import Stage

from antiphon.client import ClientOptions, connect
from antiphon.tui.screens.chat import ChatScreen
from antiphon.tui.screens.form import FormScreen
from antiphon.tui.story.entries import PlanEntry
from antiphon.tui.story.window import MOST
from antiphon.tui.text.markdown import Page
from antiphon.tui.text.palette import DARK
from antiphon.tui.widgets.composer import CommandsPopup
from tests.hub.running import served
from tests.tui.conftest import scene

HOSTILE = [sys.executable, str(Path(__file__).parents[1] / "browser" / "hostile_agent.py")]
WALKING = [sys.executable, str(Path(__file__).parents[1] / "text" / "walking_agent.py")]
LONG = [sys.executable, str(Path(__file__).parents[1] / "browser" / "long_agent.py")]
FORBIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u115f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
OURS = ("offset",)
"""What Textual notes beside a cell, for the mouse."""
SLOW = 2.0
"""Seconds of work that no key may cost, whatever stands there."""


def look(stage: Stage) -> None:
    """Nothing on the screen but what can be read, in its place, and with nothing that a click would do."""
    width, height = stage.app.size
    strips = stage.app.screen._compositor.render_strips()
    assert len(strips) == height
    for strip in strips:
        segments = [segment for segment in strip if not segment.control]
        assert not [segment for segment in strip if segment.control]
        text = "".join(segment.text for segment in segments)
        assert not FORBIDDEN.search(text), repr(text)
        assert cell_len(text) == width, repr(text)
        for segment in segments:
            check_style(segment)


def check_style(segment: Segment) -> None:
    if segment.style is not None:
        assert segment.style.link is None
        assert not {key for key in segment.style.meta if key.startswith("@") and "link" in key}
        clicked = segment.style.meta.get("@click")
        assert clicked is None or "press" not in segment.text, clicked


def walk(stage: Stage) -> int:
    """Check every line of the session, folded and not, narrow and wide; return how many there are."""
    story, seen = stage.chat.transcript.story, 0
    entries = [story.entry(key) for key in story.keys]
    for width in (30, 97):
        page = Page(width, DARK)
        for entry in entries:
            for folded in {entry.folds, False}:
                entry.folded = folded
                lines = entry.lines(page)
                texts = [line.text for line in lines]
                assert not FORBIDDEN.search("".join(texts)), texts
                assert max(map(cell_len, texts), default=0) <= page.width, (entry.key, texts)
                styles = {style for line in lines for _, style, _ in line if style is not None}
                assert not [style for style in styles if style.link is not None or style.meta]
                seen += len(lines)
    return seen


@asynccontextmanager
async def timed(what: str, *, most: float = SLOW) -> AsyncIterator[None]:
    before = time.process_time()  # of this process alone: others work here, too
    yield
    took = time.process_time() - before
    assert took < most, f"{what}: {took:.2f} s"


async def test_hostile_texts_are_shown_and_do_nothing_everywhere() -> None:
    async with scene(HOSTILE, size=(100, 40)) as stage:
        await stage.write("everywhere")
        await stage.rests()
        look(stage)
        stage.chat.composer.put("/")
        await stage.until(lambda: stage.chat.query_one(CommandsPopup).display)
        look(stage)
        stage.chat.composer.put("")
        assert any(isinstance(entry, PlanEntry) for entry in stage.chat.transcript.window.entries)
        assert walk(stage) > 5_000
        # A click is a click, whatever is written there.
        for y in range(2, 34, 8):
            for x in (5, 50, 95):
                await stage.pilot.click(offset=(x, y))
        assert stage.app.is_running
        assert isinstance(stage.app.screen, ChatScreen)
        await stage.pilot.press("ctrl+o")
        await stage.pilot.pause()
        look(stage)
        await stage.pilot.press("enter")
        await stage.pilot.pause()
        look(stage)
        await stage.pilot.press("escape", "escape")
        await stage.pilot.press("ctrl+f", *"[@cl")
        await stage.shows("matches")
        look(stage)
        await stage.pilot.resize_terminal(60, 20)
        await stage.pilot.pause()
        look(stage)


async def test_every_field_of_the_schema_is_shown_as_text() -> None:
    async with scene(WALKING, size=(100, 40)) as stage:
        await stage.write("tell")
        await stage.rests()
        look(stage)
        assert walk(stage) > 100
        await stage.write("ask few")
        for _ in range(3):
            await stage.until(lambda: stage.chat.card.display)
            await stage.pilot.pause()
            look(stage)
            question = stage.chat.card.pending
            await stage.pilot.press("2")
            await stage.until(lambda asked=question: stage.chat.card.pending is not asked)  # type: ignore[misc]
        await stage.rests()
        look(stage)


async def test_hostile_questions_and_forms_are_shown_whole_and_do_nothing() -> None:
    async with scene(HOSTILE, size=(100, 40)) as stage:
        await stage.write("ask")
        await stage.until(lambda: stage.chat.card.display)
        await stage.pilot.pause()
        look(stage)
        shown = [str(static.content) for static in stage.chat.card.query(Static)]
        assert any("[@click=app.quit]press[/]" in text for text in shown)
        await stage.pilot.press("2")
        await stage.rests()
        await stage.write("form")
        await stage.shows("Fill in the form")
        look(stage)
        await stage.pilot.press("1")
        await stage.until(lambda: isinstance(stage.app.screen, FormScreen))
        await stage.pilot.pause()
        for _ in range(7):
            look(stage)
            await stage.pilot.press("tab")
        async with timed("a pattern that never ends"):
            await stage.pilot.press("ctrl+s")
        look(stage)
        await stage.pilot.press("escape")
        await stage.until(lambda: isinstance(stage.app.screen, ChatScreen))
        stage.chat.card.take_focus()
        await stage.pilot.press("2")
        await stage.rests()
        await stage.write("visit")
        await stage.shows("Host: (unknown)")
        look(stage)
        await stage.pilot.press("2")
        await stage.shows("⟨U+202E⟩gnp.exe")
        look(stage)
        await stage.pilot.press("2")
        await stage.rests()


@pytest.mark.parametrize("way", ["huge", "long", "wide"])
async def test_however_much_there_is_it_stays_usable(way: str) -> None:
    async with scene(HOSTILE, size=(100, 30)) as stage:
        await stage.write(way)
        async with asyncio.timeout(60):
            while "○ ready" not in stage.text:
                await stage.pilot.pause(0.05)
        await stage.pilot.pause(0.2)
        look(stage)
        transcript = stage.chat.transcript
        transcript.focus()
        for key in ("g", "e", "pagedown", "G", "up", "up", "down"):
            async with timed(f"{way}: {key}"):
                await stage.pilot.press(key)
            look(stage)
        await stage.pilot.press("escape")
        async with timed("typing"):
            await stage.pilot.press(*"say hello", "enter")
        await stage.shows("heard")
        if way == "huge":
            await stage.pilot.press("ctrl+f")
            async with timed("searching"):
                await stage.pilot.press("s", "c", "r")
        elif way == "long":
            assert any("more lines" in line.text for line in transcript.window.lines)


async def test_forty_thousand_events_stay_usable() -> None:
    async with scene(LONG, size=(100, 30)) as stage:
        await stage.write("tell 40000")
        await stage.pilot.press(*"meanwhile")
        async with asyncio.timeout(90):
            while "Told tell 40000." not in stage.text:
                await stage.pilot.pause(0.05)
        assert stage.chat.composer.text == "meanwhile"
        transcript = stage.chat.transcript
        assert len(transcript.story.keys) == 8_002
        assert len(transcript.window.entries) <= MOST
        transcript.focus()
        for key in ("up", "pageup", "pageup", "e"):
            async with timed(key, most=0.4 * SLOW):
                await stage.pilot.press(key)
        stage.chat.composer.focus()
        await stage.pilot.press("ctrl+f")
        async with timed("searching", most=0.4 * SLOW):
            await stage.pilot.press(*"Part 77 ")
        await stage.shows("1 match")


async def test_names_of_clients_and_titles_of_sessions_are_text(tmp_path: Path) -> None:
    name = "[@click=app.quit]press[/]\x1b[2J\u202e"
    with served(tmp_path, agent=HOSTILE) as hub:
        async with (
            connect(hub.acp, token=hub.token, reconnect=False, options=ClientOptions(name=name)) as other,
            scene(hub.acp, token=hub.token, version=2, size=(120, 30)) as stage,
        ):
            session = stage.chat.session
            theirs = await other.load_session(session.id, session.cwd)
            await (await theirs.prompt("everywhere")).drained()
            await stage.shows("with [@click=app.quit]press[/]")
            look(stage)
            await stage.pilot.press("ctrl+l")
            await stage.shows("1 session")
            look(stage)
            await stage.pilot.press("r")
            await stage.pilot.pause()
            look(stage)
            await stage.pilot.press("escape", "d")
            await stage.shows("cannot be undone")
            look(stage)
            await stage.pilot.press("y")
            await stage.shows("There are no sessions yet")
