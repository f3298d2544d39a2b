"""The terminal UI at a hub: its sessions, and the same session in two terminals at once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tools.terminal_stage import Stage

from antiphon.client import Reconnect
from antiphon.tui.screens.sessions import SessionList, SessionsScreen
from tests.hub.running import Served, served
from tests.tui.conftest import AGENT, scene


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("hub"), agent=AGENT) as hub:
        yield hub


@asynccontextmanager
async def terminal(hub: Served, name: str, **asked: Any) -> AsyncIterator[Stage]:
    async with scene(hub.acp, token=hub.token, name=name, version=2, **asked) as stage:
        yield stage


async def test_one_session_in_two_terminals_and_a_question_answered_in_one_is_withdrawn_in_the_other(
    hub: Served,
) -> None:
    async with terminal(hub, "ann") as ann:
        session = ann.chat.session
        async with terminal(hub, "bob", session=(session.id, session.cwd)) as bob:
            await ann.shows("with bob")
            await bob.shows("with ann")
            await ann.write("edit")
            await bob.shows("2 n  Reject")
            await ann.shows("2 n  Reject")
            assert re.search(r"▌ ann +▏", bob.text)  # whose prompt it is
            await bob.pilot.press("1")
            await bob.shows("you answered: Allow")
            screen = await ann.shows("bob answered: Allow")
            assert "2 n  Reject" not in screen
            assert not ann.app.asking.open
            await ann.shows("allowed: True")
            await bob.shows("allowed: True")
        await ann.until(lambda: "with bob" not in ann.text)


async def test_a_form_that_somebody_else_fills_in_is_put_away(hub: Served) -> None:
    async with terminal(hub, "ann") as ann:
        session = ann.chat.session
        async with terminal(hub, "bob", session=(session.id, session.cwd)) as bob:
            await ann.write("form")
            await ann.shows("Fill in the form")
            await ann.pilot.press("1")
            await ann.shows("Send  ^s")
            await bob.shows("2 n  Decline")
            await bob.pilot.press("2")
            await ann.shows("decline: None")
            assert "Send  ^s" not in ann.text


async def test_the_queue_is_everybodys(hub: Served) -> None:
    async with terminal(hub, "ann") as ann:
        session = ann.chat.session
        async with terminal(hub, "bob", session=(session.id, session.cwd)) as bob:
            await ann.write("hold")
            await bob.shows("holding")
            await bob.write("say later")
            await bob.shows("1 queued  say later")
            await ann.shows("1 queued  bob: say later")
            ann.chat.queue.focus()
            await ann.pilot.press("home", "d")
            await bob.until(lambda: "say later" not in bob.text)
            bob.chat.composer.focus()
            await bob.pilot.press("escape")
            await ann.shows("cancelled")


async def test_sessions_are_listed_renamed_forked_and_deleted(hub: Served) -> None:
    async with terminal(hub, "ann") as ann:
        await ann.write("say something")
        await ann.shows("heard say something")
        await ann.pilot.press("ctrl+r")
        await ann.shows("New title")
        await ann.pilot.press(*"Our song", "enter")
        await ann.shows("Our song   ")
        await ann.pilot.press("ctrl+l")
        await ann.until(lambda: isinstance(ann.app.screen, SessionsScreen))
        await ann.shows("Our song")
        sessions = ann.app.screen.query_one(SessionList)
        shown = [str(option.prompt).partition("\n")[0] for option in sessions.options]
        sessions.highlighted = shown.index("Our song")
        await ann.pilot.press("f")
        await ann.opened()
        await ann.shows("heard say something")
        await ann.write("say on")
        await ann.shows("heard say on")
        await ann.pilot.press("ctrl+l")
        await ann.until(lambda: isinstance(ann.app.screen, SessionsScreen))
        await ann.pilot.pause()
        await ann.pilot.press("home", "d")
        await ann.shows("cannot be undone")
        await ann.pilot.press("n")
        listed = [info.session_id async for info in ann.app.client.list_sessions()]
        await ann.pilot.press("d")
        await ann.shows("cannot be undone")
        await ann.pilot.press("y")
        await ann.until(lambda: "cannot be undone" not in ann.text)
        async with asyncio.timeout(10):
            while len([info async for info in ann.app.client.list_sessions()]) != len(listed) - 1:
                await ann.pilot.pause(0.02)


async def test_the_list_tells_how_sessions_stand(hub: Served) -> None:
    async with terminal(hub, "ann") as ann:
        await ann.write("hold")
        await ann.shows("holding")
        async with terminal(hub, "bob", new=False) as bob:
            await bob.shows("● working")
            assert "1 attached" in bob.text
            await bob.pilot.press("enter")
            await bob.opened()
            await bob.shows("holding")
            await bob.pilot.press("escape")
            await ann.shows("cancelled")
            await bob.pilot.press("ctrl+l")
            await bob.shows("○ ready")


async def test_how_turns_ended_is_shown_again_when_the_session_is_opened_again(hub: Served) -> None:
    async with terminal(hub, "ann") as ann:
        await ann.write("hold")
        await ann.shows("holding")
        await ann.pilot.press("escape")
        await ann.shows("· cancelled")
        await ann.rests()
        await ann.write("fail")
        failed = re.search(r"· (the turn failed.*)", await ann.shows("the turn failed"))
        await ann.rests()
        await ann.write("say fine")
        await ann.shows("heard say fine")
        await ann.write("refuse")
        await ann.shows("· the agent refused")
        await ann.rests()
        session = ann.chat.session
    assert failed is not None
    async with terminal(hub, "ann", session=(session.id, session.cwd)) as again:
        await again.shows("· the agent refused")
        screen = await again.shows("· cancelled")
    places = ["▌ hold", "holding", "· cancelled", "▌ fail", failed[1].strip(), "▌ say fine", "heard say fine",
              "▌ refuse", "· the agent refused"]  # fmt: skip
    found = [screen.index(each) for each in places]
    assert found == sorted(found)
    assert screen.count("· the agent refused") == 1


async def test_a_session_is_archived_and_put_back(hub: Served) -> None:
    async with terminal(hub, "ann") as ann:
        await ann.write("say something old")
        await ann.shows("heard say something old")
        await ann.chat.session.set_title("Archive me")
        await ann.shows("Archive me")
        await ann.pilot.press("ctrl+l")
        await ann.until(lambda: isinstance(ann.app.screen, SessionsScreen))
        await ann.shows("Archive me")
        assert shown_titles(ann)[0] == "Archive me"  # the one used last
        await ann.pilot.press("home", "a")
        await ann.shows("“Archive me” was archived")
        await ann.until(lambda: "Archive me" not in shown_titles(ann))
        await ann.pilot.press("v")
        await ann.shows("1 archived session")
        await ann.pilot.press("a")
        await ann.shows("There are no archived sessions")
        await ann.pilot.press("escape")
        await ann.until(lambda: "Archive me" in shown_titles(ann))


def shown_titles(stage: Stage) -> list[str]:
    options = stage.app.screen.query_one(SessionList).options
    return [str(option.prompt).partition("\n")[0] for option in options]


async def test_a_lost_hub_is_told_and_found_again(tmp_path: Path) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        how = Reconnect(first=0.05, longest=0.1, find=lambda: (hub.acp, hub.token))
        async with terminal(hub, "ann", reconnect=how) as ann:
            await ann.write("say before")
            await ann.shows("heard say before")
            hub.kill()
            await ann.shows("reconnecting…")
            hub.restart()
            await ann.until(lambda: "reconnecting" not in ann.text)
            await ann.write("say after")
            screen = await ann.shows(
                "heard This conversation began earlier"
            )  # the agent forgot it, the hub not
            assert screen.count("▌ say before") == 1
            await ann.rests()


async def test_a_turn_that_a_killed_hub_cut_is_noted_once_where_it_was_prompted(tmp_path: Path) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        how = Reconnect(first=0.05, longest=0.1, find=lambda: (hub.acp, hub.token))
        async with terminal(hub, "ann", reconnect=how) as ann:
            await ann.write("edit")
            await ann.shows("2 n  Reject")
            hub.kill()
            await ann.shows("reconnecting…")
            hub.restart()
            await ann.until(lambda: "reconnecting" not in ann.text)
            await ann.shows("The hub was restarted")
            await ann.write("say after")
            screen = await ann.shows("heard")
            assert screen.count("interrupted: the hub ended unexpectedly") == 1
