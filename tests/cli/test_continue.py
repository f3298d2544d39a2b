"""`antiphon prompt --continue`: a prompt for the session that was used last, among its other clients."""

from __future__ import annotations

import asyncio
import getpass
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.client import Permission, Permissions
from antiphon.engine import sender_in
from antiphon.hub import HubFolder
from antiphon.schema.v2 import PermissionOption, UserMessage
from tests.cli.command import ANTIPHON, DEADLINE, environment
from tests.hub.running import AGENT, Served, served


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """The hub of this user."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = HubFolder().path
    folder.mkdir()
    with served(folder, agent=AGENT) as running:
        yield running


def continue_with(text: str, cwd: Path) -> subprocess.Popen[str]:
    """Without a terminal to ask at."""
    command = [*ANTIPHON, "prompt", "--continue", text]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=cwd, env=environment(), text=True, **pipes)  # type: ignore[call-overload]


async def test_a_prompt_from_a_pipe_leaves_the_question_of_an_earlier_turn_to_the_others(
    hub: Served, tmp_path: Path
) -> None:
    asked, allowed = asyncio.Event(), asyncio.Event()

    async def allow(permission: Permission) -> PermissionOption | None:
        asked.set()
        await allowed.wait()
        return permission.allow()

    async with hub.client(answers=Permissions(ask=allow)) as ann, asyncio.timeout(DEADLINE):
        session = await ann.new_session(str(tmp_path))
        asking = await session.prompt("ask")
        await asked.wait()
        with continue_with("hello", tmp_path) as command:
            assert command.stdout is not None
            assert command.stderr is not None
            said = await asyncio.to_thread(command.stderr.readline)
            assert said == "antiphon: an earlier turn waits for the answer of another client: Touch\n"
            allowed.set()
            assert (await asking.drained()).stop_reason == "end_turn"
            answer, more = await asyncio.to_thread(command.communicate, timeout=DEADLINE)
            assert (answer, more) == ("heard hello\n", "")
        assert "allowed: True" in [message.text for message in session.messages]


async def test_its_prompts_have_the_name_of_the_user(hub: Served, tmp_path: Path) -> None:
    async with hub.client() as ann, asyncio.timeout(DEADLINE):
        session = await ann.new_session(str(tmp_path))
        events = session.events()
        with continue_with("hello", tmp_path) as command:
            await asyncio.to_thread(command.communicate, timeout=DEADLINE)
        async for event in events:
            if isinstance(event.update, UserMessage):
                who = sender_in(event.update.meta)
                break
        assert who is not None
        assert who.name == getpass.getuser()
