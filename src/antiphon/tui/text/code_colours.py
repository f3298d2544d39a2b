"""The colours of code, with bounds: files of agents may be large, and may be made to be slow to read."""

from __future__ import annotations

import os.path
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]  # Pygments ships no types
from rich.style import Style
from rich.syntax import ANSISyntaxTheme

MOST = 48 * 1024
"""Characters that are coloured; the rest is plain."""
LONGEST_LINE = 400
"""Characters of a line that is coloured. Longer ones are not written by hand."""
SECONDS = 0.1
"""CPU time after which the rest is plain."""
ENDINGS = {
    "bash": "sh bash zsh", "c": "c h", "cpp": "cc cpp cxx hh hpp", "css": "css scss", "go": "go",
    "html": "html htm", "ini": "ini cfg", "java": "java", "javascript": "js mjs cjs", "json": "json",
    "jsx": "jsx", "kotlin": "kt kts", "lua": "lua", "make": "mk", "php": "php", "python": "py pyi",
    "ruby": "rb", "rust": "rs", "sql": "sql", "swift": "swift", "toml": "toml", "tsx": "tsx",
    "typescript": "ts mts cts", "xml": "xml svg", "yaml": "yaml yml",
}  # fmt: skip
LANGUAGE_OF = {f".{ending}": language for language, endings in ENDINGS.items() for ending in endings.split()}
LANGUAGE_OF_NAME = {"makefile": "make", "dockerfile": "bash"}

Spans = list[tuple[int, int, Style]]
"""Start, end and style of the coloured parts of a line."""


def language_of(path: str) -> str | None:
    """Return the language of a file by its name, `None` if its code is not coloured."""
    name = os.path.basename(path).casefold()
    return LANGUAGE_OF_NAME.get(name) or LANGUAGE_OF.get(os.path.splitext(name)[1])


def load(language: str) -> None:
    """Load what knows a language, so that the time for that does not count."""
    _lexer(language)


def coloured_lines(
    lines: Sequence[str], language: str, theme: ANSISyntaxTheme, *, seconds: float = SECONDS
) -> list[Spans]:
    """Return the spans of each line. Lines that are beyond a bound have none."""
    found: list[Spans] = [[] for _ in lines]
    read = [line if len(line) <= LONGEST_LINE else "" for line in lines]
    code = "\n".join(read)[:MOST]
    lexer = _lexer(language)
    until = time.thread_time() + seconds
    number, column = 0, 0
    for _, kind, value in lexer.get_tokens_unprocessed(code):
        if time.thread_time() > until:
            break
        style = theme.get_style_for_token(kind)
        for at, part in enumerate(value.split("\n")):
            if at:
                number, column = number + 1, 0
            if part:
                if number < len(found) and style:
                    found[number].append((column, column + len(part), style))
                column += len(part)
    return found


@lru_cache(maxsize=8)
def _lexer(language: str) -> Any:
    options = {"startinline": True} if language == "php" else {}
    return get_lexer_by_name(language, stripnl=False, ensurenl=False, **options)
