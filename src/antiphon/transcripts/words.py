"""Words for the parts of a session: used by transcripts, the command line and the terminal UI."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from json import dumps
from typing import Any

from antiphon.engine.configuration import offered_values
from antiphon.engine.fold import SessionFold
from antiphon.engine.items import ContextUsage, UnknownUpdate
from antiphon.engine.tools import Terminal, ToolCall
from antiphon.engine.transcript import Message, MessageType
from antiphon.engine.turn import CAUSES, is_interruption
from antiphon.schema import v2
from antiphon.schema.antiphon.messages import AnnotationKind
from antiphon.text_safety import safe_line
from antiphon.transcripts.accounts import Account, Asked, Ended

CALL_MARKS = {"completed": "✓", "failed": "✗", "cancelled": "⊘"}
"""The sign of a tool call, by its final status."""
BOXES = {"completed": "☑", "in_progress": "◐", "pending": "☐", "cancelled": "☒"}
"""The sign of an entry of a plan, by its status."""
READING = frozenset(["read", "search", "fetch", "think"])
"""Kinds of tool calls whose output is meant for the agent."""
ENDINGS = {
    "end_turn": "done",
    "refusal": "the agent refused",
    "max_tokens": "the agent reached its token limit",
    "max_turn_requests": "the agent reached its request limit",
    "cancelled": "cancelled",
    "error": "the turn failed",
}
LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999."""
DELETED = "Message deleted"
"""Shown in place of a deleted message."""
COMPACTED = "The agent replaced the conversation so far by a summary"
SUBAGENT = "Subagent"
SESSION_NOTE = "Message between sessions"
UNKNOWN = "An update of an unknown kind"
SAFE_LINKS = ("http://", "https://", "mailto:")


def is_safe_link(url: str) -> bool:
    return url.lower().startswith(SAFE_LINKS)


# --- numbers and times -------------------------------------------------------------------------


def _time(at: int) -> datetime:
    """Return a journal's time. A number that is outside the calendar becomes the nearest date."""
    return datetime.fromtimestamp(min(max(at, 0), LATEST) // 1000, UTC)


def when(at: int) -> str:
    time = _time(at)
    return f"{time.day} {time:%B %Y, %H:%M} UTC"


def clock(at: int) -> str:
    return f"{_time(at):%H:%M}"


def iso(at: int) -> str:
    return f"{_time(at):%Y-%m-%dT%H:%M:%SZ}"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def size(bytes: int) -> str:
    return counted(bytes, "byte") if bytes < 10_000 else f"{bytes // 1000:,} kB"


def duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


# --- a session ---------------------------------------------------------------------------------


def title(account: Account) -> str:
    return safe_line(account.title or "", limit=160) or "Untitled"


def agent(account: Account) -> str:
    return safe_line(account.agent or "") or "Agent"


def facts(account: Account) -> list[tuple[str, str]]:
    """Return names and values for the head of a transcript."""
    fold = account.fold
    said = sum(message.type is not MessageType.THOUGHT for message in fold.messages)
    found = [("Agent", account.agent or ""), ("Folder", account.cwd)]
    if account.began is not None:
        found.append(("Began", when(account.began)))
    found.append(("Length", f"{counted(said, 'message')}, {counted(len(fold.tool_calls), 'tool call')}"))
    into, out = account.tokens
    if into or out:
        found.append(("Tokens", f"{into:,} in, {out:,} out"))
    usage = fold.facts.usage
    if usage is not None and usage.cost is not None:
        found.append(("Cost", f"{usage.cost.amount:.2f} {usage.cost.currency}"))
    found.append(("Session", account.session_id))
    return [(name, safe_line(value)) for name, value in found if value]


def context_text(usage: ContextUsage | None) -> str:
    """Describe how full the agent's context is and what the session has cost, as far as that is known."""
    if usage is None:
        return ""
    full = 100 * usage.used / max(usage.size, 1)
    text = f"context {'<1' if 0 < full < 1 else round(full)} % full"
    if usage.cost is not None and usage.cost.amount >= 0.005:
        text += f", {usage.cost.amount:.2f} {safe_line(usage.cost.currency, limit=8)}"
    return text


def ending_text(stop_reason: str | None, *, error: v2.Error | None = None, cause: str | None = None) -> str:
    """Describe how a turn ended, by its stop reason, and by its error or `cause` if it was cut short."""
    if error is not None and is_interruption(error):
        cause = str(error.data.get("cause", "unknown"))
    if cause:
        return f"interrupted: {CAUSES[cause]}" if cause in CAUSES else "interrupted"
    reason = stop_reason or "end_turn"
    return ENDINGS.get(reason, f"ended: {safe_line(reason, limit=80)}")


def end_text(state: v2.StateUpdate) -> str:
    """Describe the end of a turn by the state that reports it, with the message of its error."""
    words, error = ending_text(state.stop_reason, error=state.error), state.error
    if error is None or not error.message or is_interruption(error):
        return words
    return f"{words}: {safe_line(error.message)}"


def unanswered_text(cause: str | None) -> str:
    """Describe a question that ended without an answer, by what cut its turn short."""
    words = None if cause is None else CAUSES.get(cause)
    return "not answered" if words is None else f"not answered: {words}"


def ended_text(ended: Ended) -> str:
    """Describe the end of a turn for a transcript. Return "" for an ordinary end."""
    parts = []
    if ended.stop_reason not in (None, "end_turn"):
        text = ending_text(ended.stop_reason, error=ended.cut)
        parts.append(text[:1].upper() + text[1:])
    if ended.error:
        parts.append(safe_line(ended.error))
    if ended.usage is not None:
        parts.append(tokens_text(ended.usage))
    if parts and ended.took > 0:
        parts.append(duration(ended.took / 1000))
    if ended.requests:
        shown = ", ".join(safe_line(dumps(id), limit=80) for id in ended.requests)
        parts.append(f"request{'s' * (len(ended.requests) > 1)} {shown}")
    return " · ".join(parts)


def tokens_text(usage: v2.Usage) -> str:
    return f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"


def option_value(option: Any) -> str:
    """Return the name of the value that a config option has."""
    if isinstance(option, dict):
        return safe_line(str(option.get("currentValue", "")))
    if isinstance(option, v2.SessionConfigBoolean):
        return "on" if option.current_value else "off"
    names = {value.value: value.name for value in offered_values(option)}
    return safe_line(names.get(option.current_value, option.current_value))


def notice_text(notice: v2.Notice) -> str:
    return safe_line(notice.title if notice.description is None else f"{notice.title}: {notice.description}")


def unknown_tag(item: UnknownUpdate) -> str:
    return safe_line(str(item.update.get("sessionUpdate")), limit=80)


def answer_text(asked: Asked) -> str:
    if asked.outcome == "expired":
        return unanswered_text(asked.cause)
    by = "" if asked.by is None else f", by {safe_line(asked.by)}"
    return f"{safe_line(asked.outcome)}{by}"


# --- messages ----------------------------------------------------------------------------------


def sender(message: Message) -> str:
    return "User" if message.sender is None else safe_line(message.sender.name)


def annotation_lines(message: Message) -> list[str]:
    """Return one line for all reactions to a message, and one for each note."""
    signs: dict[str, list[str]] = {}
    for given in message.annotations:
        if given.kind is AnnotationKind.REACTION:
            signs.setdefault(safe_line(given.value, limit=64), []).append(safe_line(given.by.name))
    lines = [" · ".join(f"{sign} {', '.join(names)}" for sign, names in signs.items())] if signs else []
    return lines + [
        f"Note by {safe_line(given.by.name)}: {safe_line(given.value, limit=4096)}"
        for given in message.annotations
        if given.kind is AnnotationKind.NOTE
    ]


def block_label(block: Any) -> str:
    """Describe a content block that is not text."""
    if isinstance(block, v2.ImageContent | v2.AudioContent):
        return f"{safe_line(block.mime_type, limit=80)}, {size(len(block.data) * 3 // 4)}"
    if isinstance(block, v2.EmbeddedResource):
        blob = getattr(block.resource, "blob", "")
        return f"{safe_line(block.resource.uri)}, {size(len(blob) * 3 // 4)}"
    return safe_line(str(block.get("type", "unknown")), limit=80) if isinstance(block, dict) else "unknown"


def block_text(block: Any) -> str:
    """Return a content block as Markdown. Text stays as the agent wrote it."""
    if isinstance(block, v2.TextContent):
        return block.text
    if isinstance(block, v2.ResourceLink):
        return f"{safe_line(block.title or block.name)}: <{safe_line(block.uri)}>"
    if isinstance(block, v2.EmbeddedResource) and isinstance(block.resource, v2.TextResourceContents):
        return f"{safe_line(block.resource.uri)}:\n\n{fenced(block.resource.text.rstrip())}"
    return f"[{block_label(block)}]"


def content_text(blocks: Iterable[Any]) -> str:
    """Return content blocks as Markdown: text runs on as it was streamed, other blocks are paragraphs."""
    return "".join(
        block.text if isinstance(block, v2.TextContent) else f"\n\n{block_text(block)}\n\n"
        for block in blocks
    )


def fenced(text: str, language: str = "") -> str:
    """Return text as a code block that nothing in the text can close."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


# --- tool calls and plans ----------------------------------------------------------------------


def call_title(call: ToolCall) -> str:
    return safe_line(call.title or call.name or call.id)


def kind_text(kind: str) -> str:
    """Return the kind of a tool call in words, "" for `other`."""
    return "" if kind == "other" else safe_line(str(kind), limit=40).replace("_", " ")


def call_parts(call: ToolCall, fold: SessionFold) -> Iterator[Any]:
    """Yield what a tool call shows: content blocks, diffs, and terminals of the session."""
    for content in call.content:
        if isinstance(content, v2.Content):
            yield content.content
        elif isinstance(content, v2.Diff):
            yield content
        elif isinstance(content, v2.Terminal):
            terminal = fold.terminals.get(content.terminal_id)
            if terminal is not None:
                yield terminal


def status_text(call: ToolCall) -> str:
    return safe_line(str(call.status), limit=40).replace("_", " ")


def places(call: ToolCall, cwd: str) -> list[str]:
    """Return the locations of a tool call, relative to the session's folder where possible."""
    return [
        safe_line(relative_path(place.path, cwd) + ("" if place.line is None else f":{place.line}"))
        for place in call.locations
    ]


def relative_path(path: str, cwd: str) -> str:
    """Return a path relative to the session's folder, or whole if it is elsewhere."""
    return path.removeprefix(cwd.rstrip("/") + "/") if cwd.rstrip("/") else path


def change_text(change: Any, cwd: str, *, limit: int = 400) -> str:
    """Describe a change of a file that has no patch."""
    if isinstance(change, dict):
        return safe_line(f"{change.get('operation', 'change')} {change.get('path', '')}", limit=limit)
    moved = isinstance(change, v2.DiffMove | v2.DiffCopy)
    before = f"{relative_path(change.old_path, cwd)} → " if moved else ""
    return safe_line(f"{change.__struct_config__.tag} {before}{relative_path(change.path, cwd)}", limit=limit)


def exit_text(terminal: Terminal) -> str:
    """Describe how a command ended. Return "" for exit code 0."""
    status = terminal.exit_status
    if status is None:
        return "still running"
    if status.signal is not None:
        return f"ended by {safe_line(str(status.signal), limit=40)}"
    return f"exit {status.exit_code}" if status.exit_code else ""


def plan_entries(plan: Any, *, most: int = 1_000) -> list[tuple[str, str]]:
    """Return status and text of each entry of a plan. Lines of a Markdown plan have the status ""."""
    if isinstance(plan, v2.PlanItems):
        return [(str(entry.status), safe_line(entry.content)) for entry in plan.entries[:most]]
    if isinstance(plan, v2.PlanMarkdown):
        lines = plan.content[: 100 * most].splitlines()[:most]
        return [("", safe_line(line)) for line in lines if line.strip()]
    return [("", safe_line(plan.uri))] if isinstance(plan, v2.PlanFile) else []
