"""`/edit` and `/undo`: change a file, if the user allows it, and change it back."""

from __future__ import annotations

import asyncio
import os

from antiphon.agent import AgentTurn
from antiphon.rehearsal.consent import allowed
from antiphon.rehearsal.folder import inside, read_text, remove, shown, write_text
from antiphon.rehearsal.skill import Unable, skill, speak
from antiphon.rehearsal.state import Change, memory

LONGEST_NAME = 100
FOLDER = "antiphon-tour"
SONG = f"{FOLDER}/song.txt"
VERSES = (
    "One voice begins, and no one knows the tune;\n",
    "the second answers, half a line too soon.\n",
    "A third one listens, late, and hears it all,\n",
    "and sings it back, in order, down the hall.\n",
)
USAGE = (
    "`/edit` alone adds a verse to a new file. `/edit FILE OLD => NEW` replaces text, and "
    "`/edit FILE => TEXT` adds a line."
)


@skill(
    "Change a file, if you allow it; without arguments, add a verse to a song",
    hint="FILE OLD => NEW, or nothing",
    plain=True,
    about="a tool call of kind `edit` with a diff as its content, and `session/request_permission` "
    "before the file was written. All clients of the session were asked, and the first answer counted.",
)
async def edit(turn: AgentTurn, rest: str) -> None:
    change = await asyncio.to_thread(_change if rest else _verse, turn, rest)
    name = shown(turn.session, change.path)
    verb = "Make" if change.before is None else "Edit"
    if await _carry_out(turn, f"{verb} {name}", change):
        await speak(turn, f"`{name}` is written. `/undo` undoes the edit.")


@skill(
    "Undo the last edit",
    plain=True,
    about="a tool call like any other edit. The protocol has no undo; agents can offer one.",
)
async def undo(turn: AgentTurn, rest: str) -> None:
    edits = memory(turn.session).edits
    if not edits:
        raise Unable("I have made no edit in this session that I could undo.")
    last = edits[-1]
    name = shown(turn.session, last.path)
    if await asyncio.to_thread(read_text, last.path) != last.after:
        edits.pop()
        raise Unable(f"`{name}` has changed since my edit, so I do not touch it.")
    change = Change(last.path, last.after, last.before or "", 1)
    if await _carry_out(turn, f"Undo the edit of {name}", change, undoes=last):
        await speak(turn, f"`{name}` is {'deleted again' if last.before is None else 'as it was before'}.")


async def _carry_out(turn: AgentTurn, title: str, change: Change, *, undoes: Change | None = None) -> bool:
    """Show a change, ask for permission, and write it. Return whether it was written."""
    session = turn.session
    async with turn.tool_call(
        title, kind="edit", name="edit_file", raw_input={"path": str(change.path)}
    ) as call:
        await call.locate(change.path, line=change.line)
        await call.diff(str(change.path), old=change.before, new=change.after)
        if not await allowed(turn, call, "edit"):
            return False
        # The answer may take a day.
        if not session.holds(change.path) or not await asyncio.to_thread(_fits, change):
            raise Unable("The file has changed in the meantime, so I did not touch it.")
        try:
            _do(change, memory(session).edits, undoes)
        except OSError as error:
            raise Unable(f"It could not be written: {error.strerror or 'it failed'}.") from error
    return True


def _do(change: Change, edits: list[Change], undoes: Change | None) -> None:
    """Write and remember a change without an await, so that no cancel can separate the two."""
    if undoes is not None and undoes.before is None:
        remove(change.path, with_folder=FOLDER)
    else:
        write_text(change.path, change.after)
    if undoes is None:
        edits.append(change)
    else:
        edits.remove(undoes)


def _fits(change: Change) -> bool:
    """Return whether the file has not changed since."""
    if change.before is None:
        return not os.path.lexists(change.path)
    return read_text(change.path) == change.before


def _change(turn: AgentTurn, rest: str) -> Change:
    """Return the change that the user asks for."""
    name, old, new = _parsed(rest)
    if not name or new is None:
        raise Unable(USAGE)
    path = inside(turn.session, name)
    if path is None:
        raise Unable(f"`{name[:LONGEST_NAME]}` is not in this session's folder, so I do not touch it.")
    if os.path.isdir(path) or not os.path.isdir(path.parent) or len(path.name) > LONGEST_NAME:
        raise Unable(f"I cannot write a file at `{name[:LONGEST_NAME]}`.")
    text = read_text(path)
    if text is None and os.path.lexists(path):
        raise Unable(f"`{name}` is not a text file, or it is too long.")
    if not old:
        before = text or ""
        joint = "" if not before or before.endswith("\n") else "\n"
        return Change(path, text, f"{before}{joint}{new}\n", before.count("\n") + 1)
    if text is None or old not in text:
        raise Unable(f"`{name}` does not contain `{old}`.")
    return Change(path, text, text.replace(old, new, 1), text[: text.index(old)].count("\n") + 1)


def _verse(turn: AgentTurn, rest: str) -> Change:
    """Return a change that adds the next verse of the song."""
    path = inside(turn.session, SONG)
    if path is None:
        raise Unable(f"`{SONG}` leads out of this session's folder, so I do not touch it.")
    text = read_text(path)
    if text is None and os.path.lexists(path):
        raise Unable(f"`{SONG}` is not the song that I know.")
    lines = (text or "").count("\n")
    return Change(path, text, (text or "") + VERSES[lines % len(VERSES)], lines + 1)


def _parsed(rest: str) -> tuple[str, str, str | None]:
    """Return the file, the old text and the new text. Without old text, a line is added."""
    head, arrow, new = rest.partition("=>")
    name, _, old = head.strip().partition(" ")
    return name, old.strip(), new.strip() if arrow else None


SKILLS = (edit, undo)
