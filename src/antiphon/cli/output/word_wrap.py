"""Break lines between words while they stream: a terminal breaks them anywhere."""

from __future__ import annotations

import os
import re
import unicodedata
from typing import TextIO

WIDEST = 100
"""Columns of text that one reads with ease."""
LONGEST = 1000
"""Characters of a word that is waited for."""
_WIDE = r"\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uff60"
"""What is written without spaces can be broken anywhere."""
_TOKENS = re.compile(rf"\n|[^\S\n]+|[{_WIDE}]|[^\s{_WIDE}]+")
_BREAKABLE = re.compile(rf"[\s{_WIDE}]+")
_STYLES = re.compile(r"\x1b\[[0-9;]*m")
_BULLET = re.compile(r"[-*+·~–]|\d{1,3}[.)]")
_FENCES = ("```", "~~~")


class WordWrap:
    """What is written goes out word by word: the last one stays until it is complete. Code and tables keep
    their lines."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._word = ""
        self._space = ""
        self._column = 0
        self._hang: str | None = None
        """What the lines begin with that a line is broken into; `None` before its first word."""
        self._fence = False
        self._kept = False
        """Whether this line is not broken."""

    def write(self, text: str) -> str:
        """What can be shown by now."""
        *tokens, last = _TOKENS.findall(self._word + text) or [""]
        self._word = ""
        if _BREAKABLE.fullmatch(last) or len(last) > LONGEST:
            tokens.append(last)
        else:
            self._word = last
        return "".join(map(self._put, tokens))

    def finish(self) -> str:
        """The word that was not known to be complete."""
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
    """How wide a terminal is; `None` where it is none."""
    if not out.isatty():
        return None
    try:
        return os.get_terminal_size(out.fileno()).columns or None
    except OSError:
        return None


def cells(text: str) -> int:
    """Columns that it takes."""
    if text.isascii() and "\x1b" not in text:
        return len(text)
    shown = unicodedata.normalize("NFC", _STYLES.sub("", text))
    return sum(_width(character) for character in shown)


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
