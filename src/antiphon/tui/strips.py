"""Lines of the screen, with a part of them in another look."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip


def marked(line: Strip, needle: str, look: Style) -> Strip:
    """With the first place where it has these words, in small letters, in that look."""
    text = line.text.casefold()
    found = text.find(needle) if needle else -1
    if found < 0 or len(text) != len(line.text):
        return line
    return styled(line, found, found + len(needle), look)


def styled(line: Strip, start: int, end: int, look: Style) -> Strip:
    """With these of its characters in that look; -1 is the end of the line."""
    length = len(line.text)
    end = length if end == -1 else min(end, length)
    if start >= end:
        return line
    left, right = line.index_to_cell_position(start), line.index_to_cell_position(end)
    inside = Strip([Segment(text, (style or Style()) + look) for text, style, _ in line.crop(left, right)])
    return Strip([*line.crop(0, left), *inside, *line.crop(right)])
