"""The built-in agent as a process of its own, driven by the client library."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from antiphon.client import (
    ClientSession,
    ClientTurn,
    Elicitation,
    Permission,
    Permissions,
    ProcessOptions,
    TurnEnd,
    connect,
)

COMMAND = [sys.executable, "-m", "antiphon", "rehearse"]
DEADLINE = 60.0
AT_ONCE = {"ANTIPHON_REHEARSAL_PACE": "0"}


class Answers(Permissions):
    """Chooses by option id, or what its `choose` says; fills in what it is told to."""

    elicits: tuple[str, ...] = ("form", "url")

    def __init__(
        self, choose: Callable[[Permission], str | None] | str | None = "allow", **values: Any
    ) -> None:
        super().__init__()
        self._choose = choose
        self.values = values
        self.asked: list[Permission] = []
        self.elicited: list[Elicitation] = []

    async def decide(self, permission: Permission) -> Any:
        self.asked.append(permission)
        return self._choose(permission) if callable(self._choose) else self._choose

    async def elicit(self, elicitation: Elicitation) -> Any:
        self.elicited.append(elicitation)
        return elicitation.accept(**self.values) if self.values else elicitation.decline()


@asynccontextmanager
async def opened(
    version: int, cwd: Path, *, answers: Any = None, pace: str = "0"
) -> AsyncIterator[ClientSession]:
    """A session of it. What it writes to stderr is nothing."""
    told: list[str] = []
    async with asyncio.timeout(DEADLINE):
        async with connect(
            COMMAND,
            version=version,
            answers=answers or Answers(),
            process=ProcessOptions(env={"ANTIPHON_REHEARSAL_PACE": pace}, on_stderr=told.append),
        ) as client:
            yield await client.new_session(cwd)
    assert told == []


async def prompted(session: ClientSession, text: str) -> tuple[ClientTurn, TurnEnd]:
    turn = await session.prompt(text)
    return turn, await turn.drained()


async def said(session: ClientSession, text: str) -> str:
    """What it says to a prompt, in a turn that ends well."""
    turn, end = await prompted(session, text)
    assert end.stop_reason == "end_turn", (text, end)
    return turn.text


async def met(session: ClientSession, condition: Callable[[], object]) -> None:
    """Wait for something that belongs to no turn."""
    events = session.events()
    while not condition():
        await anext(events)


def shown(session: ClientSession) -> str:
    """What all tool calls show: texts, and terminals."""
    blocks = [getattr(part, "content", None) for call in session.tool_calls for part in call.content]
    return "".join(getattr(block, "text", "") for block in blocks) + "".join(
        terminal.text for terminal in session.terminals
    )


def value(session: ClientSession, id: str) -> Any:
    return getattr(session.config[id], "current_value", None)


def a_folder(at: Path) -> Path:
    """Something to look at, with some that is not to be seen."""
    folder = at / "here"
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "node_modules").mkdir()
    (folder / "song.txt").write_text("la la\nTODO: a second verse\n")
    (folder / "src" / "choir.py").write_text("# todo: sing\n\ndef sing():\n    return 'la'\n")
    (folder / "src" / "deep" / "plain.txt").write_text("nothing here\n")
    (folder / ".git" / "config").write_text("TODO hidden\n")
    (folder / "node_modules" / "x.js").write_text("TODO fetched\n")
    (folder / "blob.bin").write_bytes(b"TODO\0binary")
    (folder / "huge.txt").write_text("TODO " * 300_000)
    (at / "secret.txt").write_text("TODO secret\n")
    (folder / "link.txt").symlink_to(at / "secret.txt")
    return folder
