"""`/find`: search the files of the session, results as they are found."""

from __future__ import annotations

import os
import re
from itertools import groupby

from antiphon.agent import AgentTurn
from antiphon.rehearsal.folder import Match, files, inside, search, shown
from antiphon.rehearsal.pace import rest as pause
from antiphon.rehearsal.pace import speak
from antiphon.rehearsal.skill import Skill, Unable, counted

MOST_MATCHES = 50
LONGEST = 200
_IN = re.compile(r"(?P<text>.+)\s+in\s+(?P<path>\S+)", re.DOTALL)


async def find(turn: AgentTurn, rest: str) -> None:
    text, start = _asked(turn, rest)
    if not text or len(text) > LONGEST or "\n" in text:
        raise Unable("What shall I look for? `/find TODO`, or `/find TODO in src`.")
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
    told = f"{counted(len(found), 'match', 'matches')} in {counted(in_files, 'file')}"
    if len(found) == MOST_MATCHES:
        told = f"I stopped at {told}"
    await speak(turn, f"{told}; I looked at {counted(len(paths), 'file')}.")


def _asked(turn: AgentTurn, rest: str) -> tuple[str, str]:
    """What to look for, and where: behind the last `in` if that names something that is there."""
    found = _IN.fullmatch(rest)
    if found is not None:
        path = inside(turn.session, found["path"])
        if path is not None and os.path.exists(path):
            return _unquoted(found["text"]), found["path"]
    return _unquoted(rest), "."


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 2 and text[0] == text[-1] and text[0] in "\"'`" else text


SKILLS = (
    Skill(
        name="find",
        description="Search the files of this session",
        hint="a text, and perhaps: in FOLDER",
        work=find,
        about="a tool call of kind `search` whose content grows while it runs. It can be cancelled by "
        "itself (v2), and the turn goes on without it.",
    ),
)
