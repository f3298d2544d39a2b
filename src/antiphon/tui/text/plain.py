"""Foreign text for the screen: safe to show, and as wide as it is counted."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from antiphon.schema import v2
from antiphon.text_safety import hidden, printed_text, safe_line, safe_text
from antiphon.transcripts import block_words

_TYPED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """Make lines of a text, with hidden characters named; tabs are spaces."""
    return text if text.isascii() and text.isprintable() else _counted(safe_text(text))


def plain_output(text: str) -> str:
    """Make lines of a message or an output: escape sequences in it have no effect and are not named."""
    return text if text.isascii() and text.isprintable() else _counted(printed_text(text))


def _counted(text: str) -> str:
    """Leave joiners and variation selectors out: terminals differ in how wide they make what they join."""
    return hidden().sub("", text).expandtabs(4)


class SafeLines(LineFilter):
    """The last filter before the terminal: a hidden character that got here leaves nothing but its cells."""

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
    """Make one line of a text, no longer than `limit` characters."""
    return plain(safe_line(text, limit=limit))


def typed(text: str) -> str:
    """What somebody pasted, without what no key types."""
    return _TYPED.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def said(blocks: Iterable[object]) -> str:
    """Content as Markdown, as it came: what is no text is named, on lines of its own."""
    parts = []
    for block in blocks:
        if isinstance(block, v2.TextContent):
            parts.append(block.text)
        elif isinstance(block, v2.ResourceLink):
            parts.append(f"\n\n{safe_line(block.title or block.name)} ({safe_line(block.uri)})\n\n")
        elif isinstance(block, v2.EmbeddedResource) and isinstance(block.resource, v2.TextResourceContents):
            parts.append(f"\n\n{safe_line(block.resource.uri)}\n\n{_fenced(block.resource.text)}\n\n")
        else:
            parts.append(f"\n\n[{block_words(block)}]\n\n")
    return "".join(parts)


def _fenced(text: str) -> str:
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"
