"""A timeline as lines for a terminal, and as lines of JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from datetime import datetime

import msgspec

from antiphon.cli.timeline.entries import Entry, Timeline
from antiphon.text_safety import printed_text, safe_line

BOLD, DIM, RED, BLUE, GREEN = "1", "2", "31", "34", "32"
BAD_KINDS = ("not JSON", "not JSON-RPC", "stray response")
WHO, KIND = 8, 11
"""Columns for who did something, and for what it is."""
INDENT = 9 + 2 + WHO + 2
MOST_LINES = 40
"""Lines of the text of one entry."""


def to_lines(timeline: Timeline, *, width: int) -> Iterator[str]:
    """Yield the lines, with styles."""
    day = ""
    for entry in timeline.entries:
        if timeline.dated and (today := f"{datetime.fromtimestamp(entry.at):%A, %d %B %Y}") != day:
            day = today
            yield _styled(day, BOLD)
        yield from _entry_lines(entry, clock(entry, timeline), width)


def clock(entry: Entry, timeline: Timeline) -> str:
    """Return the time of an entry: the time of day, or the seconds since the beginning."""
    return f"{datetime.fromtimestamp(entry.at):%H:%M:%S}" if timeline.dated else f"{entry.at:.3f}"


def duration(seconds: float) -> str:
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def ending(entry: Entry) -> str:
    """Return how an entry ended, and how long it took."""
    return " · ".join(filter(None, [entry.status, "" if entry.took is None else duration(entry.took)]))


def is_bad(entry: Entry) -> bool:
    """Whether an entry went wrong."""
    return entry.status.startswith(("error", "no answer", "failed")) or entry.kind in BAD_KINDS


def _entry_lines(entry: Entry, time: str, width: int) -> Iterator[str]:
    who = safe_line(entry.who, limit=WHO)
    ended = safe_line(ending(entry), limit=200)
    room = max(20, width - INDENT - KIND - 4 - len(ended))
    title = safe_line(entry.title, limit=room)
    detail = safe_line(entry.detail, limit=max(8, room - len(title) - 2)) if entry.detail else ""
    rest = [title, _styled(detail, DIM), _styled(ended, RED if is_bad(entry) else BOLD)]
    kind = f"{entry.kind:<{KIND}}" if any(rest) else entry.kind
    head = f"{time:>9}", f"{who:<{WHO}}", kind
    yield "  ".join(
        filter(None, [*map(_styled, head, (DIM, GREEN if who == "agent" else BLUE, BOLD)), *rest])
    )
    lines = printed_text(entry.text).strip("\n").split("\n") if entry.text.strip() else []
    before = " " * INDENT
    for line in lines[:MOST_LINES]:
        yield from textwrap.wrap(
            line, max(width, 40), initial_indent=before, subsequent_indent=before, replace_whitespace=False
        ) or [""]
    if len(lines) > MOST_LINES:
        yield _styled(f"{before}… {len(lines) - MOST_LINES} more lines", DIM)


def _styled(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if text else ""


def to_json_lines(timeline: Timeline) -> Iterator[str]:
    """Yield one JSON object per entry."""
    for entry in timeline.entries:
        yield json.dumps(msgspec.to_builtins(entry))  # ASCII: a lone surrogate has no other form
