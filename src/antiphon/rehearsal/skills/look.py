"""`/look`: a folder's entries, or a file's text."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from antiphon.agent import AgentTurn
from antiphon.rehearsal.folder import inside, read_text, shown
from antiphon.rehearsal.pace import speak
from antiphon.rehearsal.skill import Skill, Unable, counted

MOST_ENTRIES = 200
MOST_LINES = 200
LONGEST_NAME = 100


async def look(turn: AgentTurn, rest: str) -> None:
    path = inside(turn.session, rest)
    if path is None or not os.path.exists(path):  # noqa: ASYNC240  # one stat
        if not rest:
            raise Unable("This session's folder is not there any more.")
        raise Unable(f"There is nothing called `{rest[:LONGEST_NAME]}` in this session's folder.")
    if path.is_dir():
        await _list(turn, path)
    else:
        await _read(turn, path)


async def _list(turn: AgentTurn, folder: Path) -> None:
    name = shown(turn.session, folder)
    title = f"List {'the folder' if name == '.' else name}"
    async with turn.tool_call(
        title, kind="read", name="list_folder", raw_input={"path": str(folder)}
    ) as call:
        await call.locate(folder)
        try:
            entries = await asyncio.to_thread(_entries, folder)
        except OSError as error:
            raise Unable(f"I cannot look there: {error.strerror or 'it failed'}.") from error
        lines = [f"{name}/" if size is None else f"{name}  {size:,}" for name, size in entries[:MOST_ENTRIES]]
        if len(entries) > MOST_ENTRIES:
            lines.append(f"and {len(entries) - MOST_ENTRIES:,} more")
        await call.write("\n".join(lines) or "(empty)")
    folders = sum(size is None for _, size in entries)
    told = f"{counted(folders, 'folder')} and {counted(len(entries) - folders, 'file')}."
    files = [name for name, size in entries if size is not None]
    await speak(
        turn, told + (f" `/look {_called(turn, folder, files[0])}` reads the first." if files else "")
    )


async def _read(turn: AgentTurn, path: Path) -> None:
    name = shown(turn.session, path)
    async with turn.tool_call(
        f"Read {name}", kind="read", name="read_file", raw_input={"path": str(path)}
    ) as call:
        await call.locate(path, line=1)
        text = await asyncio.to_thread(read_text, path)
        if text is None:
            raise Unable(f"`{name}` is no text that I could read, or too long for me.")
        lines = text.splitlines(keepends=True)
        await call.write("".join(lines[:MOST_LINES]) or "(empty)")
    more = f"; you see the first {MOST_LINES}" if len(lines) > MOST_LINES else ""
    await speak(turn, f"`{name}` has {counted(len(lines), 'line')}{more}.")


def _entries(folder: Path) -> list[tuple[str, int | None]]:
    """Names with sizes, folders first and without one."""
    found: list[tuple[str, int | None]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            found.append((entry.name, None if is_folder else entry.stat(follow_symlinks=False).st_size))
    return sorted(found, key=lambda entry: (entry[1] is not None, entry[0]))


def _called(turn: AgentTurn, folder: Path, name: str) -> str:
    return shown(turn.session, folder / name)


SKILLS = (
    Skill(
        name="look",
        description="List a folder, or read a file of it",
        hint="a path, or nothing for this session's folder",
        work=look,
        about="a tool call of kind `read`. Its `locations` name the file, so that an editor can open it as "
        "the agent goes along.",
    ),
)
