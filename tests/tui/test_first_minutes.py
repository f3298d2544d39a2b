"""The first ten minutes of a newcomer, with a real agent and with one that cannot start."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from textual.widgets import OptionList

from antiphon.tui.screens.dialogs import Choose
from antiphon.tui.screens.sessions import SessionsScreen
from antiphon.tui.screens.trouble import TroubleScreen
from tests.hub.running import served
from tests.peers import agents, install
from tests.tui.conftest import scene

STARTED = 180.0
"""Seconds that an agent on Node may take to start while other tests run."""
BROKEN = [sys.executable, "-c", "import sys; sys.exit('No API key. Run `broken login`.')"]


async def test_the_first_minutes_with_a_real_agent_and_with_one_that_cannot_start(tmp_path: Path) -> None:
    try:
        launch = agents.prepare("qwen-code", tmp_path / "qwen")
    except install.PeerUnavailable as reason:
        pytest.skip(str(reason))
    offered = []
    for name, command in [("qwen", launch.command), ("broken", BROKEN)]:
        offered += ["--agent", f"{name}={shlex.join(command)}"]
    history = tmp_path / "prompts.jsonl"
    with served(tmp_path / "hub", *offered, agent=()) as hub:
        cwd = str(launch.cwd)
        async with scene(hub.acp, token=hub.token, version=2, new=False, cwd=cwd, history=history) as stage:
            # It opens with the list of sessions, which is empty.
            await stage.shows("There are no sessions yet. Press n to start one.")

            # An agent that cannot start says why, until the user has read it.
            await stage.pilot.press("n")
            await stage.until(lambda: isinstance(stage.app.screen, Choose))
            choices = stage.app.screen.query_one(OptionList)
            names = [str(option.prompt) for option in choices.options]
            choices.highlighted = next(at for at, name in enumerate(names) if "broken" in name)
            await stage.pilot.press("enter")
            await stage.until(lambda: isinstance(stage.app.screen, TroubleScreen))
            assert "The session could not be opened" in stage.text
            await stage.pilot.press("escape")
            await stage.shows("There are no sessions yet")

            # A new session with the other one.
            await stage.pilot.press("n")
            await stage.until(lambda: isinstance(stage.app.screen, Choose))
            choices = stage.app.screen.query_one(OptionList)
            choices.highlighted = next(at for at, name in enumerate(names) if "qwen" in name)
            await stage.pilot.press("enter")
            await stage.opened(deadline=STARTED)
            assert stage.app.focused is stage.chat.composer
            await stage.pilot.press(*"hello there", "enter")
            await stage.shows("You said: hello there")
            await stage.rests()

            # A question, answered by its key.
            await stage.write("TOOL")
            await stage.shows("waiting for your answer")
            await stage.until(lambda: stage.chat.card.focused)
            await stage.pilot.press("y")
            await stage.shows("hello-from-tool")
            await stage.rests()

            # A turn that is stopped.
            await stage.write("SLOW")
            await stage.shows("slow-1")
            await stage.pilot.press("escape")
            await stage.shows("· cancelled")
            await stage.rests()

            # The session, opened again from the list, says the same.
            await stage.pilot.press("ctrl+l")
            await stage.until(lambda: isinstance(stage.app.screen, SessionsScreen))
            await stage.shows("1 session ·")
            await stage.pilot.press("enter")
            await stage.opened()
            screen = await stage.shows("· cancelled")
            assert screen.index("slow-1") < screen.index("· cancelled")

            # Words of its beginning are found.
            await stage.pilot.press("ctrl+f", *"hello there")
            await stage.shows("matches · Enter")
            await stage.shows("You said: hello there")
            await stage.pilot.press("escape", "escape")

            # It quits, and keeps what was not sent.
            stage.chat.composer.put("for later")
            await stage.pilot.press("ctrl+q")
            await stage.until(lambda: stage.app._exit)
    assert "for later" in history.read_text()
    assert not agents.still_there(launch.left_running(), 10.0)
