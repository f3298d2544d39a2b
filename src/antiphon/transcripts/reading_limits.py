"""How much text is read as Markdown: a parser may take very long for what only looks like Markdown."""

from __future__ import annotations

READ = 64 * 1024
"""Characters of a text that is read as Markdown."""
BRACKETS = 1000
"""Opening brackets in it."""


def is_readable(shown: str) -> bool:
    """Say whether a text is read as Markdown; a longer one, or one of many brackets, is shown as it is."""
    return len(shown) <= READ and shown.count("[") <= BRACKETS
