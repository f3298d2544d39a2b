"""The title of a session whose agent sends none: the beginning of its first prompt. Pure.

It is derived from the journal and stands in the record of the session, where lists read it. It is no event:
clients are sent what the agent said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from antiphon.engine.fold import SessionFold
from antiphon.engine.transcript import Message, MessageType
from antiphon.schema import v2
from antiphon.text_safety import printed_text, safe_line

LONGEST = 60
"""Characters of such a title."""
_ITEMS = 50
"""Items of a session that are looked at."""
_READ = 4_000
"""Characters of a prompt that are looked at."""
_MARKS = re.compile(r"^\s*(?:[#>*+-]+\s+)+|\*\*|`+")
"""Marks of Markdown: those at the beginning of a line, for bold text and for code."""
_SOMETHING = re.compile(r"\w")


def title_of_first_prompt(fold: SessionFold) -> str | None:
    """Return the title of the first prompt of a session that has words. `None` if there is none."""
    messages = (item for item in fold.first_items(_ITEMS) if isinstance(item, Message))
    titles = (title_of_prompt(message.content) for message in messages if message.type is MessageType.USER)
    return next((title for title in titles if title is not None), None)


def title_of_prompt(content: Sequence[v2.ContentBlock]) -> str | None:
    """Return a title for a prompt: its first line that says something. `None` if it has no words."""
    for block in content:
        if not isinstance(block, v2.TextContent):
            continue
        for line in printed_text(block.text[:_READ]).splitlines():
            title = _shortened(safe_line(_MARKS.sub("", line)))
            if _SOMETHING.search(title):
                return title
    return None


def _shortened(line: str) -> str:
    """Cut a line at the end of a word, unless the word is a very long one."""
    if len(line) <= LONGEST:
        return line
    cut = line[: LONGEST - 1]
    end = cut.rfind(" ")
    kept = cut[:end] if end > LONGEST // 2 else cut
    return kept.rstrip(" .,;:") + "…"
