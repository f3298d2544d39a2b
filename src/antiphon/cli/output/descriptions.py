"""Messages and the output of tool calls as safe text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from antiphon.client import ClientSession
from antiphon.engine import Terminal, is_deletion
from antiphon.schema import v2
from antiphon.text_safety import printed_text, safe_text
from antiphon.transcripts import READING, block_text, call_parts, change_text, patch_rows, relative_path

LONGEST_PATH = 8_192
"""Characters of a change's paths that are shown: two paths of the maximum length on Linux."""
LONGEST_NOTE = 2_000
"""Characters of a note that are shown."""
FAILED = frozenset(["failed", "cancelled"])
FINISHED = frozenset(["completed", "failed", "cancelled"])
REFUSED = "the agent drops this prompt and its answer; they are not part of the next prompt"
"""What a refusal means for the user (PROMPT-V1-08)."""


def question_lines(title: str) -> list[str]:
    """Return the whole title of a question: users must see what they agree to."""
    return [line for line in safe_text(title).splitlines() if line.strip()] or ["(no title)"]


def joined(parts: Iterable[str]) -> str:
    return " · ".join(part for part in parts if part)


# --- messages ----------------------------------------------------------------------------------


def stands_apart(block: Any) -> bool:
    """Return whether a block gets its own lines. Text blocks run on, as they are streamed."""
    return not isinstance(block, v2.TextContent)


class ShownMessages:
    """The text of messages that was shown, to show only the rest when an agent sends a message as a whole."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}

    def add(self, message_id: str, text: str) -> None:
        self._texts.setdefault(message_id, []).append(text)

    def rest(self, update: v2.AgentMessage | v2.AgentThought) -> tuple[str, list[tuple[str, bool]]]:
        """Return what the agent did to the shown text, "" for nothing, and the parts that are to be shown.

        Each part has its text and whether it stands apart.
        """
        blocks = update.content if isinstance(update.content, list) else None
        if blocks is None:
            return "", []
        shown = "".join(self._texts.pop(update.message_id, ()))
        rest = _after(shown, blocks)
        if rest is not None:
            self._texts[update.message_id] = [shown]
            return "", rest
        how = "deleted" if is_deletion(update) else "rewritten"
        return f"the agent has {how} this message", _after("", blocks) or []


def _after(shown: str, blocks: Sequence[Any]) -> list[tuple[str, bool]] | None:
    """Return the parts after the text that was shown, or `None` if the blocks do not begin with it."""
    rest: list[tuple[str, bool]] = []
    for block in blocks:
        text = block_text(block)
        known = min(len(shown), len(text))
        if text[:known] != shown[:known]:
            return None
        shown = shown[known:]
        if text[known:]:
            rest.append((text[known:], stands_apart(block)))
    return None if shown else rest


# --- tool calls --------------------------------------------------------------------------------


class OutputPart(NamedTuple):
    """Lines of a tool call's output, or of a patch."""

    lines: list[str]
    patch: bool = False


def tool_output(
    session: ClientSession, call: Any, *, last: int | None = None, exact: bool = False
) -> list[OutputPart]:
    """Return what a tool call shows: text, patches, and the output of its terminals.

    last: read only this many of the last characters of a text.
    exact: show escape sequences in text, because a user is asked to approve it.
    """
    parts: list[OutputPart] = []
    text: list[str] = []

    def add(output: str, *, tabs: int = 4) -> None:
        output = output if last is None else output[-last:]
        shown = safe_text(output) if exact and tabs == 4 else printed_text(output)
        parts.append(OutputPart(_lines(shown, tabs=tabs)))

    def flush() -> None:
        if text:
            add("".join(text))
            text.clear()

    for part in call_parts(call, session.fold):
        if isinstance(part, v2.Diff):
            flush()
            if part.patch is not None:
                parts.append(OutputPart(patch_lines(part.patch.text, session.cwd), patch=True))
            else:
                changes = [change_text(change, session.cwd, limit=LONGEST_PATH) for change in part.changes]
                parts.append(OutputPart(changes))
        elif isinstance(part, Terminal):
            flush()
            add(part.text, tabs=8)  # as the program that wrote it counted
        else:
            text.append(f"\n{block_text(part)}\n" if stands_apart(part) else block_text(part))
    flush()
    return [part for part in parts if part.lines]


def _lines(text: str, *, tabs: int = 4) -> list[str]:
    return text.expandtabs(tabs).strip("\n").splitlines()


def patch_lines(text: str, cwd: str) -> list[str]:
    """Return the lines of a patch for people, with paths relative to the session's folder."""
    cwd = safe_text(cwd)
    return [
        f"+++ {relative_path(row.text, cwd)}" if row.kind == "file" else row.text
        for row in patch_rows(_lines(safe_text(text)))
    ]


def shown_lines(call: Any, part: OutputPart) -> list[str]:
    """Return the lines of a part that are shown once the call has ended."""
    if part.patch:
        return _shortened(part.lines, head=24, tail=4)
    if call.kind in READING:
        return _shortened(part.lines, head=3, tail=0)
    return _shortened(part.lines, head=4, tail=6)


def _shortened(lines: list[str], *, head: int, tail: int) -> list[str]:
    hidden = len(lines) - head - tail
    if hidden <= 1:
        return lines
    return [*lines[:head], f"⋮ {hidden} more lines", *lines[len(lines) - tail :]]
