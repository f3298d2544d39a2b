"""`/look` and `/find`: list folders, read files and search them."""

from __future__ import annotations

import asyncio
import os
import re
from itertools import groupby
from pathlib import Path

from antiphon.agent import AgentTurn
from antiphon.rehearsal.folder import Match, files, inside, read_text, search, shown
from antiphon.rehearsal.skill import Unable, counted, pause, skill, speak

MOST_ENTRIES = 200
MOST_LINES = 200
LONGEST_NAME = 100


@skill(
    "List a folder or read a file",
    hint="a path, or nothing for this session's folder",
    about="a tool call of kind `read`. Its `locations` name the file, so that an editor can open it as "
    "the agent works.",
)
async def look(turn: AgentTurn, rest: str) -> None:
    path = inside(turn.session, rest)
    if path is None or not os.path.exists(path):  # noqa: ASYNC240  # one stat
        if not rest:
            raise Unable("This session's folder does not exist any more.")
        raise Unable(f"There is no `{rest[:LONGEST_NAME]}` in this session's folder.")
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
            raise Unable(f"I cannot list this folder: {error.strerror or 'it failed'}.") from error
        lines = [f"{name}/" if size is None else f"{name}  {size:,}" for name, size in entries[:MOST_ENTRIES]]
        if len(entries) > MOST_ENTRIES:
            lines.append(f"and {len(entries) - MOST_ENTRIES:,} more")
        await call.write("\n".join(lines) or "(empty)")
    folders = sum(size is None for _, size in entries)
    text = f"{counted(folders, 'folder')} and {counted(len(entries) - folders, 'file')}."
    files = [name for name, size in entries if size is not None]
    await speak(
        turn, text + (f" `/look {shown(turn.session, folder / files[0])}` reads the first." if files else "")
    )


async def _read(turn: AgentTurn, path: Path) -> None:
    name = shown(turn.session, path)
    async with turn.tool_call(
        f"Read {name}", kind="read", name="read_file", raw_input={"path": str(path)}
    ) as call:
        await call.locate(path, line=1)
        text = await asyncio.to_thread(read_text, path)
        if text is None:
            raise Unable(f"`{name}` is not a text file, or it is too long.")
        lines = text.splitlines(keepends=True)
        await call.write("".join(lines[:MOST_LINES]) or "(empty)")
    more = f"; you see the first {MOST_LINES}" if len(lines) > MOST_LINES else ""
    await speak(turn, f"`{name}` has {counted(len(lines), 'line')}{more}.")


def _entries(folder: Path) -> list[tuple[str, int | None]]:
    """Return names and sizes, folders first; folders have no size."""
    found: list[tuple[str, int | None]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            found.append((entry.name, None if is_folder else entry.stat(follow_symlinks=False).st_size))
    return sorted(found, key=lambda entry: (entry[1] is not None, entry[0]))


MOST_MATCHES = 50
LONGEST = 200
_IN = re.compile(r"(?P<text>.+)\s+in\s+(?P<path>\S+)", re.DOTALL)


@skill(
    "Search the files of this session",
    hint="a text, and perhaps: in FOLDER",
    about="a tool call of kind `search` whose content grows while it runs. It can be cancelled by "
    "itself (v2), and the turn continues without it.",
)
async def find(turn: AgentTurn, rest: str) -> None:
    text, start = _asked(turn, rest)
    if not text or len(text) > LONGEST or "\n" in text:
        raise Unable("Say what to search for: `/find TODO`, or `/find TODO in src`.")
    folder = inside(turn.session, start)
    assert folder is not None  # `_asked` names no other
    where = "" if start == "." else f" in {start}"
    found: list[Match] = []
    async with turn.tool_call(
        f"Find {text!r}{where}",
        kind="search",
        name="search_files",
        raw_input={"text": text, "path": str(folder)},
        cancellable=True,
    ) as call:
        paths = await files(folder)
        async for matches in search(paths, text):
            for path, lines in groupby(matches[: MOST_MATCHES - len(found)], lambda match: match.path):
                of_file = list(lines)
                found += of_file
                name = shown(turn.session, path)
                await call.write("".join(f"{name}:{match.line}: {match.text}\n" for match in of_file))
                await call.locate(path, line=of_file[0].line)
                await pause(turn.session, 0.05)
            if len(found) == MOST_MATCHES:
                break
        await call.set_raw_output({"matches": len(found), "files": len(paths)})
    if call.cancelled:
        await speak(turn, f"You stopped the search; I had {counted(len(found), 'match', 'matches')}.")
        return
    in_files = len({match.path for match in found})
    text = f"{counted(len(found), 'match', 'matches')} in {counted(in_files, 'file')}"
    if len(found) == MOST_MATCHES:
        text = f"I stopped at {text}"
    await speak(turn, f"{text}; I searched {counted(len(paths), 'file')}.")


def _asked(turn: AgentTurn, rest: str) -> tuple[str, str]:
    """Return the text to find and the folder: the word after the last `in`, if it is an existing path."""
    found = _IN.fullmatch(rest)
    if found is not None:
        path = inside(turn.session, found["path"])
        if path is not None and os.path.exists(path):
            return _unquoted(found["text"]), found["path"]
    return _unquoted(rest), "."


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 2 and text[0] == text[-1] and text[0] in "\"'`" else text


SKILLS = (look, find)
