"""The words that both kinds of transcripts use."""

from __future__ import annotations

from datetime import UTC, datetime
from json import dumps
from typing import Any

from antiphon.engine.annotations import AnnotationKind
from antiphon.engine.terminals import Terminal
from antiphon.engine.tools import ToolCall
from antiphon.engine.transcript import Message, MessageType
from antiphon.schema import v2
from antiphon.text_safety import safe_line
from antiphon.transcripts.accounts import Account, Asked, Ended

MARKS = {"completed": "✓", "failed": "✗", "cancelled": "⊘"}
BOXES = {"completed": "☑", "in_progress": "◐", "cancelled": "☒"}
ENDINGS = {
    "refusal": "The agent refused",
    "max_tokens": "The agent ran out of tokens",
    "max_turn_requests": "The agent made all the requests it may",
    "cancelled": "Cancelled",
    "error": "Failed",
}
LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999."""
DELETED = "Message deleted"
"""What stands in place of a message that was deleted."""
SAFE_LINKS = ("http://", "https://", "mailto:")


def is_safe_link(url: str) -> bool:
    return url.lower().startswith(SAFE_LINKS)


def _time(at: int) -> datetime:
    """A time of a journal, which may hold any number: one that no calendar has becomes the nearest one."""
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


def title(account: Account) -> str:
    return safe_line(account.title or "", limit=160) or "A session"


def sender(message: Message) -> str:
    return "User" if message.sender is None else safe_line(message.sender.name)


def annotation_lines(message: Message) -> list[str]:
    """What clients have put on a message, one line for the reactions and one for each note."""
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


def agent(account: Account) -> str:
    return safe_line(account.agent or "") or "Agent"


def facts(account: Account) -> list[tuple[str, str]]:
    """What stands above a transcript, by name."""
    fold = account.fold
    said = sum(message.type is not MessageType.THOUGHT for message in fold.messages)
    told = [("Agent", account.agent or ""), ("Folder", account.cwd)]
    if account.began is not None:
        told.append(("Began", when(account.began)))
    told.append(("Length", f"{counted(said, 'message')}, {counted(len(fold.tool_calls), 'tool call')}"))
    into, out = account.tokens
    if into or out:
        told.append(("Tokens", f"{into:,} in, {out:,} out"))
    usage = fold.facts.usage
    if usage is not None and usage.cost is not None:
        told.append(("Cost", f"{usage.cost.amount:.2f} {usage.cost.currency}"))
    told.append(("Session", account.session_id))
    return [(name, safe_line(value)) for name, value in told if value]


def ending(ended: Ended) -> str:
    """How a turn ended, where that is worth a line; else nothing."""
    parts = []
    reason = ended.stop_reason
    if reason not in (None, "end_turn"):
        parts.append(ENDINGS.get(reason or "", f"Ended: {safe_line(reason or '', limit=80)}"))
    if ended.error:
        parts.append(safe_line(ended.error))
    if ended.usage is not None:
        parts.append(f"{ended.usage.input_tokens:,} tokens in, {ended.usage.output_tokens:,} out")
    if parts and ended.took > 0:
        parts.append(duration(ended.took))
    if ended.requests:
        shown = ", ".join(safe_line(dumps(id), limit=80) for id in ended.requests)
        parts.append(f"request{'s' * (len(ended.requests) > 1)} {shown}")
    return " · ".join(parts)


def duration(milliseconds: int) -> str:
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def call_title(call: ToolCall) -> str:
    return safe_line(call.title or call.name or call.id)


def kind_words(call: ToolCall) -> str:
    return "" if call.kind == "other" else safe_line(str(call.kind), limit=40).replace("_", " ")


def status(call: ToolCall) -> str:
    return safe_line(str(call.status), limit=40).replace("_", " ")


def places(call: ToolCall, cwd: str) -> list[str]:
    """Where a tool works, short inside the session's folder."""
    return [
        safe_line(near(place.path, cwd) + ("" if place.line is None else f":{place.line}"))
        for place in call.locations
    ]


def near(path: str, cwd: str) -> str:
    return path.removeprefix(cwd.rstrip("/") + "/") if cwd.rstrip("/") else path


def answer(asked: Asked) -> str:
    by = "" if asked.by is None else f", by {safe_line(asked.by)}"
    return f"{safe_line(asked.outcome)}{by}"


def change_words(change: Any, cwd: str) -> str:
    """A change of a file without a patch, in words."""
    if isinstance(change, dict):
        return safe_line(f"{change.get('operation', 'change')} {change.get('path', '')}")
    before = f"{near(change.old_path, cwd)} → " if isinstance(change, v2.DiffMove | v2.DiffCopy) else ""
    return safe_line(f"{change.__struct_config__.tag} {before}{near(change.path, cwd)}")


def exit_text(terminal: Terminal) -> str:
    """How a command ended, where it did not end well."""
    status = terminal.exit_status
    if status is None:
        return "still running"
    if status.signal is not None:
        return f"ended by {safe_line(str(status.signal), limit=40)}"
    return f"exit {status.exit_code}" if status.exit_code else ""


def block_words(block: Any) -> str:
    """A block that is no text, in words."""
    if isinstance(block, v2.ImageContent | v2.AudioContent):
        return f"{safe_line(block.mime_type, limit=80)}, {size(len(block.data) * 3 // 4)}"
    if isinstance(block, v2.EmbeddedResource):
        return safe_line(block.resource.uri)
    return safe_line(str(block.get("type", "something"))) if isinstance(block, dict) else "something"
