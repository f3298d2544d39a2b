"""The timeline of a recording as one HTML file that runs nothing and loads nothing."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from antiphon.cli.timeline.entries import Entry, Timeline
from antiphon.cli.timeline.lines import clock, ending, is_bad
from antiphon.html_page import page_head
from antiphon.text_safety import printed_text, safe_line, safe_text

STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
OPEN = ("message", "prompt")
"""Kinds whose text is the conversation itself: it is shown unfolded."""


def to_html(timeline: Timeline) -> Iterator[str]:
    """Write the page, piece by piece."""
    return map(safe_text, _page(timeline))


def _page(timeline: Timeline) -> Iterator[str]:
    title = escape(safe_line(timeline.name, limit=160))
    yield page_head(title, STYLE)
    yield f'<h1 dir="auto">{title}</h1>\n<p class="about">{len(timeline.entries)} entries</p>\n<main>\n'
    for entry in timeline.entries:
        yield from _entry(entry, clock(entry, timeline))
    yield "</main>\n</body>\n</html>\n"


def _entry(entry: Entry, time: str) -> Iterator[str]:
    who = "agent" if entry.who == "agent" else "client"
    bad = " bad" if is_bad(entry) else ""
    head = (
        f"<time>{time}</time><b>{escape(safe_line(entry.who, limit=40))}</b>"
        f'<span class="kind">{escape(entry.kind)}</span>'
        f'<span class="title" dir="auto">{escape(safe_line(entry.title))}'
        f"{f' <code>{escape(safe_line(entry.detail, limit=200))}</code>' if entry.detail else ''}</span>"
        f'<span class="end">{escape(safe_line(ending(entry), limit=200))}</span>'
    )
    if not entry.text.strip():
        yield f'<div class="entry {who}{bad}">{head}</div>\n'
        return
    unfolded = " open" if entry.kind in OPEN else ""
    text = escape(printed_text(entry.text).strip("\n"))
    yield f'<details class="entry {who}{bad}"{unfolded}><summary>{head}</summary>\n'
    yield f'<pre dir="auto">{text}</pre></details>\n'
