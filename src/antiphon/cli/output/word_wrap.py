"""Word wrap for text that streams to a terminal, which would break lines inside words."""

from __future__ import annotations

import os
import re
from typing import TextIO

from rich.cells import cell_len

WIDEST = 100
"""Columns of text that are comfortable to read."""
LONGEST = 1000
"""Characters of an incomplete word that are held back."""
_WIDE = r"\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uff60"
"""Scripts without spaces, whose lines can be broken anywhere."""
_TOKENS = re.compile(rf"\n|[^\S\n]+|[{_WIDE}]|[^\s{_WIDE}]+")
_BREAKABLE = re.compile(rf"[\s{_WIDE}]+")
_STYLES = re.compile(r"\x1b\[[0-9;]*m")
_BULLET = re.compile(r"[-*+·~–]|\d{1,3}[.)]")
_FENCES = ("```", "~~~")


class WordWrap:
    """Gives text out word by word, and holds back an incomplete word. Code and tables keep their lines."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._word = ""
        self._space = ""
        self._column = 0
        self._hang: str | None = None
        """The indent of the lines that a line is broken into; `None` before its first word."""
        self._fence = False
        self._kept = False
        """Whether this line keeps its length."""

    def write(self, text: str) -> str:
        """Add text, and return what can be shown now."""
        *tokens, last = _TOKENS.findall(self._word + text) or [""]
        self._word = ""
        if _BREAKABLE.fullmatch(last) or len(last) > LONGEST:
            tokens.append(last)
        else:
            self._word = last
        return "".join(map(self._put, tokens))

    def finish(self) -> str:
        """Return the word that was held back."""
        word, self._word = self._word, ""
        return self._put(word) if word else ""

    def _put(self, token: str) -> str:
        if token == "\n":
            self._space, self._column, self._hang, self._kept = "", 0, None, False
            return token
        if not token or token.isspace():
            self._space += token
            return ""
        space, self._space = self._space, ""
        if self._hang is None:
            self._begin(space, _STYLES.sub("", token))
        width = cells(token)
        if self._kept or self._column <= len(self._hang or "") or self._fits(len(space) + width):
            self._column += len(space) + width
            return space + token
        self._column = len(self._hang or "") + width
        return f"\n{self._hang}{token}"

    def _fits(self, width: int) -> bool:
        return self._column + width <= min(self.columns, WIDEST)

    def _begin(self, indent: str, word: str) -> None:
        fenced = self._fence
        if word.startswith(_FENCES):
            self._fence = not self._fence
        self._kept = fenced or self._fence or word.startswith("|") or len(indent) >= 8
        if word == ">":
            self._hang = f"{indent}> "
        else:
            self._hang = " " * (len(indent) + (len(word) + 1 if _BULLET.fullmatch(word) else 0))


def wrap_words(line: str, columns: int) -> str:
    wrapping = WordWrap(columns)
    return wrapping.write(line) + wrapping.finish()


def terminal_columns(out: TextIO) -> int | None:
    """Return the width of a terminal, or `None` for a stream that is not a terminal."""
    if not out.isatty():
        return None
    try:
        return os.get_terminal_size(out.fileno()).columns or None
    except OSError:
        return None


def cells(text: str) -> int:
    """Return the columns that a text takes."""
    return cell_len(_STYLES.sub("", text))
