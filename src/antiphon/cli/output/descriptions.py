"""What updates say, in plain words: safe for a terminal, and short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from antiphon.client import ClientSession
from antiphon.engine import is_deletion
from antiphon.schema import v2
from antiphon.text_safety import printed_text, safe_line, safe_text

LONGEST_PATH = 8_192
"""Characters of a change's paths that are shown: two paths of the greatest length that Linux has."""
READING = frozenset(["read", "search", "fetch", "think"])
"""Kinds of tools whose output is for the agent: a glimpse of it is enough."""
FAILED = frozenset(["failed", "cancelled"])
FINISHED = frozenset(["completed", "failed", "cancelled"])
MARKS = {"completed": "✓", "failed": "✗", "cancelled": "⊘"}
BOXES = {"completed": "☑", "in_progress": "◐", "pending": "☐", "cancelled": "☒"}


def question_lines(title: str) -> list[str]:
    """What is asked, whole: nobody can agree to what they were not shown."""
    return [line for line in safe_text(title).splitlines() if line.strip()] or ["(no title)"]


def block_text(block: Any) -> str:
    """A content block as text."""
    if isinstance(block, v2.TextContent):
        return block.text
    if isinstance(block, v2.ImageContent | v2.AudioContent):
        return f"[{safe_line(block.mime_type, limit=80)}, {_size(len(block.data) * 3 // 4)}]"
    if isinstance(block, v2.ResourceLink):
        return f"{safe_line(block.title or block.name)}: <{safe_line(block.uri)}>"
    if isinstance(block, v2.EmbeddedResource):
        return _embedded(block.resource)
    return f"[{safe_line(str(block.get('type', 'unknown')), limit=80)}]" if isinstance(block, dict) else ""


def stands_apart(block: Any) -> bool:
    """Whether a block has lines of its own; texts run on into each other, as they are streamed."""
    return not isinstance(block, v2.TextContent)


def changed(update: v2.AgentMessage | v2.AgentThought) -> str:
    """What the agent has done to a message whose words were written already."""
    return f"the agent has {'deleted' if is_deletion(update) else 'rewritten'} this message"


def not_said(blocks: Sequence[Any], said: str) -> list[tuple[str, bool]] | None:
    """What of a whole message was not said before, block by block, and whether each stands apart; `None` if
    it does not begin with what was said."""
    rest: list[tuple[str, bool]] = []
    for block in blocks:
        text = block_text(block)
        known = min(len(said), len(text))
        if text[:known] != said[:known]:
            return None
        said = said[known:]
        if text[known:]:
            rest.append((text[known:], stands_apart(block)))
    return None if said else rest


def _embedded(resource: Any) -> str:
    """In Markdown, as messages are: what it holds, if that is text, as a block of code."""
    if not isinstance(resource, v2.TextResourceContents):
        return f"[{safe_line(resource.uri)}, {_size(len(resource.blob) * 3 // 4)}]"
    longest = max((len(run) for run in re.findall("`{3,}", resource.text)), default=2)
    fence = "`" * (longest + 1)
    return f"{safe_line(resource.uri)}:\n\n{fence}\n{resource.text.rstrip()}\n{fence}"


def _size(count: int) -> str:
    return f"{count:,} bytes" if count < 10_000 else f"{count // 1000:,} kB"


def notice_text(notice: v2.Notice) -> str:
    return safe_line(notice.title if notice.description is None else f"{notice.title}: {notice.description}")


class OutputPart:
    """Lines of a tool call's output, or of a patch."""

    def __init__(self, lines: Sequence[str], *, patch: bool = False) -> None:
        self.lines = lines
        self.patch = patch


def tool_output(
    session: ClientSession, call: Any, *, last: int | None = None, exact: bool = False
) -> list[OutputPart]:
    """Give what a tool call shows: text, patches, and the output of its terminals.

    last: how many of the last characters of a text are read.
    exact: escape sequences in text are shown, because somebody is asked to approve it.
    """
    parts: list[OutputPart] = []
    text: list[str] = []

    def told(output: str, *, tabs: int = 4) -> None:
        output = output if last is None else output[-last:]
        shown = safe_text(output) if exact and tabs == 4 else printed_text(output)
        parts.append(OutputPart(_lines(shown, tabs=tabs)))

    for content in call.content:
        if isinstance(content, v2.Content):
            shown = block_text(content.content)
            text.append(f"\n{shown}\n" if stands_apart(content.content) else shown)
            continue
        if text:
            told("".join(text))
            text.clear()
        if isinstance(content, v2.Diff):
            parts.append(_diff(content, session.cwd))
        elif isinstance(content, v2.Terminal):
            terminal = session.fold.terminals.get(content.terminal_id)
            if terminal is not None:
                told(terminal.text, tabs=8)  # as whatever wrote to it has counted
    if text:
        told("".join(text))
    return [part for part in parts if part.lines]


def _lines(text: str, *, tabs: int = 4) -> list[str]:
    return text.expandtabs(tabs).strip("\n").splitlines()


def _diff(diff: v2.Diff, cwd: str) -> OutputPart:
    if diff.patch is not None:
        return OutputPart(patch_lines(diff.patch.text, cwd), patch=True)
    return OutputPart([_change(change) for change in diff.changes])


_PATCH_NOISE = ("diff --git", "index ", "new file mode", "deleted file mode", "similarity ", "\\ No newline")


def patch_lines(text: str, cwd: str) -> list[str]:
    """The lines of a patch that people read; paths in the session's folder are short."""
    cwd = safe_text(cwd)
    lines = [line for line in _lines(safe_text(text)) if not line.startswith(_PATCH_NOISE)]
    shown = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("+++ "):
            shown.append("+++ " + line[4:].removeprefix(cwd.rstrip("/") + "/"))
        elif not (line.startswith("--- ") and following.startswith("+++ ")):
            shown.append(line)
    return shown


def _change(change: Any) -> str:
    if isinstance(change, dict):
        return safe_line(f"{change.get('operation', 'change')} {change.get('path', '')}", limit=LONGEST_PATH)
    before = f"{change.old_path} → " if isinstance(change, v2.DiffMove | v2.DiffCopy) else ""
    return safe_line(f"{change.__struct_config__.tag} {before}{change.path}", limit=LONGEST_PATH)


def shorten(lines: Sequence[str], *, head: int, tail: int) -> list[str]:
    """The first and the last of many lines, with a word about those in between."""
    hidden = len(lines) - head - tail
    if hidden <= 1:
        return list(lines)
    return [*lines[:head], f"⋮ {hidden} more lines", *lines[len(lines) - tail :]]


def shown_lines(call: Any, part: OutputPart) -> list[str]:
    """As much of a part as is worth showing once the call has ended."""
    if part.patch:
        return shorten(part.lines, head=24, tail=4)
    if call.kind in READING:
        return shorten(part.lines, head=3, tail=0)
    return shorten(part.lines, head=4, tail=6)


def plan_entries(plan: Any) -> list[tuple[str, str]]:
    """The entries of a plan: status and text; a plan of another kind is one entry."""
    if isinstance(plan, v2.PlanItems):
        return [(str(entry.status), safe_line(entry.content)) for entry in plan.entries]
    if isinstance(plan, v2.PlanMarkdown):
        return [("", safe_line(line)) for line in plan.content.splitlines() if line.strip()]
    return [("", safe_line(plan.uri))] if isinstance(plan, v2.PlanFile) else []


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


def ending(stop_reason: str | None) -> str:
    """How a turn ended, as one says it."""
    return {
        None: "done",
        "end_turn": "done",
        "refusal": "the agent refused",
        "max_tokens": "out of tokens",
        "max_turn_requests": "too many requests",
        "cancelled": "cancelled",
        "error": "failed",
    }.get(stop_reason, f"ended: {safe_line(stop_reason or '')}")


def tokens(usage: v2.Usage | None) -> str:
    return "" if usage is None else f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"


def context(session: ClientSession | None) -> str:
    """How full the agent's context is, and what the session has cost, as far as it told."""
    usage = None if session is None else session.usage
    if usage is None:
        return ""
    full = 100 * usage.used / max(usage.size, 1)
    told = f"context {'<1' if 0 < full < 1 else round(full)} % full"
    if usage.cost is not None and usage.cost.amount >= 0.005:
        told += f", {usage.cost.amount:.2f} {safe_line(usage.cost.currency)}"
    return told


def kind_text(kind: str) -> str:
    """The kind of a tool, where it says something."""
    return "" if kind == "other" else safe_line(kind)


REFUSED = "the agent goes on without this prompt and its answer: they will not be in the next one"
"""What a refusal means for whoever reads it (PROMPT-V1-08)."""


def joined(parts: Iterable[str]) -> str:
    return " · ".join(part for part in parts if part)
