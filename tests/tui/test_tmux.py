"""A real run: `antiphon chat` in a real terminal, tmux, driven by keys; what it shows is compared."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tools.tmux import Terminal

from antiphon.tui.widgets.question_card import TOO_SOON
from tests.hub.running import served
from tests.tui.conftest import AGENT

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
DEADLINE = 60.0
EXPECTED = Path(__file__).parent / "expected"


def normal(screen: str, folder: Path) -> str:
    """Without what is never the same twice: times, and where it was."""
    screen = screen.replace(str(folder), "FOLDER")
    screen = re.sub(r"working( \d+ (s|min))*", "working", screen)
    lines = (re.sub(r"[ ▁-█▔▕▏▎▍▌▋▊▉▇▆▅▄▃▂]+$", "", line) for line in screen.splitlines())
    return "\n".join(lines).rstrip() + "\n"


async def check(name: str, terminal: Terminal, folder: Path) -> None:
    """Wait for the screen that is expected."""
    path = EXPECTED / f"{name}.txt"
    if os.environ.get("ANTIPHON_ACCEPT"):
        await asyncio.sleep(1)
        path.parent.mkdir(exist_ok=True)
        path.write_text(normal(await terminal.screen(), folder), encoding="utf-8")
    expected, screen = path.read_text(encoding="utf-8"), ""
    with suppress(TimeoutError):
        async with asyncio.timeout(DEADLINE):
            while screen != expected:
                screen = normal(await terminal.screen(), folder)
    assert screen == expected


async def test_a_session_driven_by_keys_in_a_real_terminal(tmp_path: Path) -> None:
    folder = Path.cwd()
    command = (
        "env", "-u", "NO_COLOR", "-u", "COLORFGBG", "-u", "COLUMNS", "-u", "LINES", "COLORTERM=truecolor",
        sys.executable, "-m", "antiphon", "chat", "--data", str(tmp_path), "--name", "ann", "--", *AGENT,
    )  # fmt: skip
    async with Terminal.of(*command, columns=90, rows=28) as terminal:
        await terminal.shows("○ ready")
        await terminal.keys("markdown", "Enter")
        await terminal.shows("sing(voice)")
        await terminal.shows("○ ready")
        await terminal.keys("edit", "Enter")
        await terminal.shows("waiting for your answer")
        await check("question", terminal, folder)
        await asyncio.sleep(TOO_SOON)  # a key that comes sooner does not answer
        await terminal.keys("y")
        await terminal.shows("allowed: True")
        await terminal.shows("○ ready")
        await terminal.keys("plan", "Enter")
        await terminal.shows("○ Listen")
        await terminal.shows("○ ready")
        await check("session", terminal, folder)
        coloured = await terminal.screen(colours=True)
        assert "38;2;98;193;177" in coloured  # the accent
        await terminal.keys("F1")
        await check("help", terminal, folder)
        await terminal.keys("Escape")
        await terminal.shows("Write a prompt")
        await terminal.keys("hold", "Enter")
        await terminal.shows("holding")
        await terminal.keys("Escape")
        await terminal.shows("cancelled")
        await terminal.keys("C-q")


async def test_without_colours_there_are_none(tmp_path: Path) -> None:
    command = (
        "env",
        "NO_COLOR=1",
        sys.executable,
        "-m",
        "antiphon",
        "chat",
        "--data",
        str(tmp_path),
        "--",
        *AGENT,
    )
    async with Terminal.of(*command, columns=80, rows=24) as terminal:
        await terminal.shows("○ ready")
        await terminal.keys("edit", "Enter")
        await terminal.shows("2 n  Reject")
        coloured = await terminal.screen(colours=True)
        for red, green, blue in re.findall(r"[34]8;2;(\d+);(\d+);(\d+)", coloured):
            assert red == green == blue
        await terminal.keys("C-q")


async def draws(terminal: Terminal, code: str) -> None:
    """Wait until something has a colour. A faint background cannot be told from none with few colours."""
    async with asyncio.timeout(DEADLINE):
        while True:  # tmux tells nobody that something changed
            if f"\x1b[{code}m" in await terminal.screen(colours=True):
                return
            await asyncio.sleep(0.05)


async def test_without_arguments_the_sessions_of_the_hub_are_listed_and_the_selected_one_is_seen(
    tmp_path: Path,
) -> None:
    def ours(term: str, *named: str) -> tuple[str, ...]:
        clean = ("env", "-u", "COLORTERM", "-u", "NO_COLOR", f"TERM={term}")
        return (*clean, sys.executable, "-m", "antiphon", "chat", "--data", str(tmp_path), *named)

    with served(tmp_path, agent=AGENT) as hub:
        async with Terminal.of(*ours("screen-256color"), columns=80, rows=24) as terminal:
            await terminal.shows("There are no sessions yet")
            await terminal.keys("n")
            await terminal.shows("○ ready")
            await terminal.keys("say hello", "Enter")
            await terminal.shows("heard say hello")
            await terminal.keys("C-l")
            await terminal.shows("1 session ·")
            await draws(terminal, "48;5;238")  # of 256 colours, on 233
            await terminal.keys("C-q")
        async with hub.client(version=2) as client:
            (info,) = [info async for info in client.list_sessions()]
        async with Terminal.of(*ours("screen", info.session_id[:9]), columns=80, rows=24) as terminal:
            await terminal.shows("heard say hello")
            await terminal.keys("C-l")
            await terminal.shows("1 session ·")
            await draws(terminal, "100")  # of 16 colours, on 40
            await terminal.keys("C-c")
            await terminal.shows("Press Ctrl-C again to quit.")
            await terminal.keys("C-c")
