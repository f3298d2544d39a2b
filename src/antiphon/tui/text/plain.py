"""Foreign text for the screen: safe to show, and without characters of unclear width."""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from antiphon.paths import short_path
from antiphon.text_safety import hidden, printed_text, safe_line, safe_text


def plain(text: str) -> str:
    """Name the hidden characters of a text, and replace its tabs by spaces."""
    return text if text.isascii() and text.isprintable() else _counted(safe_text(text))


def plain_output(text: str) -> str:
    """Do the same with a message or an output, and drop its escape sequences without naming them."""
    return text if text.isascii() and text.isprintable() else _counted(printed_text(text))


def _counted(text: str) -> str:
    """Drop joiners and variation selectors: terminals differ in the width of what they join."""
    return hidden().sub("", text).expandtabs(4)


class SafeLines(LineFilter):
    """The last filter before the terminal: replaces hidden characters, and keeps their width."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        if not any(hidden().search(segment.text) for segment in segments if not segment.control):
            return segments
        return [
            segment if segment.control else Segment(hidden().sub(_cells, segment.text), segment.style)
            for segment in segments
        ]


def _cells(found: re.Match[str]) -> str:
    return "\N{REPLACEMENT CHARACTER}" * cell_len(found[0])


def plain_line(text: str, *, limit: int = 400) -> str:
    """Return a text on one line of at most `limit` characters."""
    return plain(safe_line(text, limit=limit))


def folder_line(path: str, *, limit: int = 120) -> str:
    """Return a folder as `plain_line` does, the user's home as `~`."""
    return plain_line(short_path(path), limit=limit)
