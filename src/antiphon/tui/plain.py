"""Text for the screen, whoever wrote it: it moves no cursor, turns nothing around, hides nothing, and takes
as many cells as are counted for it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from antiphon.schema import v2
from antiphon.transcripts.visible import visible, visible_line
from antiphon.transcripts.words import block_words

_UNCOUNTED = re.compile("[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u200c\u200d\u3164\ufe00-\ufe0f\uffa0]")
"""Terminals differ in how wide these are, or what stands beside them."""
_MARK = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_MARKS = re.compile(f"({_MARK}{{2}}){_MARK}+")
"""More marks upon a letter than any language has: they would pile up over other lines."""
_TYPED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """As lines; tabs are spaces."""
    if text.isascii() and text.isprintable():
        return text
    return _MARKS.sub(r"\1", _UNCOUNTED.sub("", visible(text))).expandtabs(4)


def plain_line(text: str, *, limit: int = 400) -> str:
    """On one line, and not longer than a line should be."""
    line = " ".join(plain(visible_line(text, limit=limit)).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


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
            parts.append(f"\n\n{visible_line(block.title or block.name)} ({visible_line(block.uri)})\n\n")
        elif isinstance(block, v2.EmbeddedResource) and isinstance(block.resource, v2.TextResourceContents):
            parts.append(f"\n\n{visible_line(block.resource.uri)}\n\n{_fenced(block.resource.text)}\n\n")
        else:
            parts.append(f"\n\n[{block_words(block)}]\n\n")
    return "".join(parts)


def _fenced(text: str) -> str:
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"
