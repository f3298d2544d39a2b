"""Entry: one thing that happened in a conversation. Recordings and journals are shown from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

DEEPEST = 8
"""Levels of content in content. Tool calls have two."""


class Entry(Struct, kw_only=True, omit_defaults=True):
    """One line of a timeline, and the text below it. All text is foreign.

    `kind` says what it is: request, prompt, message, thought, tool call, permission, plan, state, …
    """

    at: float
    """Seconds: since the recording began, or since 1970 in a journal."""
    who: str
    """Who did it: client, agent, or the name of a user."""
    kind: str
    title: str = ""
    detail: str = ""
    """JSON on one line: the params of a request, or the fields of an update."""
    text: str = ""
    status: str = ""
    """How it ended, or the answer to it."""
    took: float | None = None
    """Seconds until it ended."""
    session: str = ""
    frames: int = 1
    """Frames of a recording that the entry stands for, the answer included."""


class Timeline(Struct, kw_only=True):
    """All entries in the order in which they began. `dated`: whether their times are since 1970."""

    name: str
    entries: list[Entry]
    dated: bool = False


def content_text(content: Any, *, depth: int = 0) -> str:
    """Return the text of content blocks as they are on the wire. Other blocks are named in brackets."""
    blocks = content if isinstance(content, list) else [content]
    return "".join(_block_text(block, depth) for block in blocks)


def _block_text(block: Any, depth: int) -> str:
    if not isinstance(block, dict):
        return ""
    if isinstance(block.get("text"), str):
        return str(block["text"])
    if isinstance(block.get("content"), dict | list) and depth < DEEPEST:  # content of a tool call
        return content_text(block["content"], depth=depth + 1)
    about = next(_named(block, "path", "uri", "terminalId", "mimeType"), "")
    return f"[{' '.join(filter(None, [word(block.get('type', 'content')), about]))}]"


def word(value: Any) -> str:
    """Return any JSON value as a word. A nested value, which nothing limits, has none."""
    return "…" if isinstance(value, dict | list) else str(value)


def _named(block: dict[str, Any], *keys: str) -> Iterator[str]:
    return (value for key in keys if isinstance(value := block.get(key), str))
