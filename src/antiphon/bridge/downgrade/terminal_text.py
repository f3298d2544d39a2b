"""The output of an agent's terminal as text that is safe to show (TERMV2-05, TERMV2-09).

Bytes come in pieces, and a piece may end inside a character or an escape sequence. Escape sequences are
dropped; carriage return, backspace and erase-in-line act on the current line, so that a progress bar is one
line and not a thousand.
"""

from __future__ import annotations

import codecs
import re

from msgspec import Struct, field

from antiphon.text_safety import ESCAPES, LONGEST_ESCAPE, UNFINISHED_ESCAPE

LIMIT = 256 * 1024
"""How many characters are kept: the last ones, as a terminal's scrollback does."""
OMITTED = "[earlier output omitted]\n"
_UTF8 = codecs.getincrementaldecoder("utf-8")

_ERASE = "\x0b"
"""Marks erase-in-line between the two passes; a vertical tab in the output itself is dropped before."""
_MOVES = re.compile(r"([\r\x08\x0b])")
_DROPPED = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)])
for _kept in "\t\n\r\x08\x0b":
    del _DROPPED[ord(_kept)]


class TerminalText(Struct, eq=False):
    """The text of one terminal, fed with bytes."""

    _decoder: codecs.IncrementalDecoder = field(default_factory=lambda: _UTF8("replace"))
    _unfinished: str = ""
    _lines: list[str] = []
    _line: list[str] = []
    _column: int | None = None
    """The column of the next character in the current line; `None` is its end."""
    _size: int = 0
    _omitted: bool = False

    def feed(self, data: bytes) -> int:
        """Append output; return the number of characters it added."""
        text = self._unfinished + self._decoder.decode(data)
        self._unfinished = ""
        if not text.isprintable():
            text = self._without_sequences(text.replace(_ERASE, ""))
        self._append(text)
        if self._size > 2 * LIMIT:
            self._trim()
        return len(text)

    @property
    def size(self) -> int:
        """About how long `text` is."""
        return min(self._size, LIMIT)

    @property
    def text(self) -> str:
        """The last `LIMIT` characters that the terminal shows."""
        text = "".join(self._lines) + "".join(self._line)
        if len(text) > LIMIT:
            return OMITTED + text[-LIMIT:]
        return OMITTED + text if self._omitted else text

    def _without_sequences(self, text: str) -> str:
        begun = UNFINISHED_ESCAPE.search(text, max(0, len(text) - LONGEST_ESCAPE))
        if begun is not None:
            text, self._unfinished = text[: begun.start()], begun[0]
        text = ESCAPES.sub(lambda found: _ERASE if found["final"] == "K" else "", text)
        return text.translate(_DROPPED).replace("\r\n", "\n")

    def _append(self, text: str) -> None:
        *complete, last = text.split("\n")
        for line in complete:
            self._write(line)
            self._lines += self._line
            self._lines.append("\n")
            self._line, self._column = [], None
            self._size += 1
        self._write(last)

    def _write(self, text: str) -> None:
        if self._column is None and "\r" not in text and "\b" not in text:
            text = text.replace(_ERASE, "")
            if text:
                self._line.append(text)
                self._size += len(text)
            return
        line = before = "".join(self._line)
        column = len(line) if self._column is None else self._column
        for piece in _MOVES.split(text):
            match piece:
                case "\r":
                    column = 0
                case "\b":
                    column = max(0, column - 1)
                case "\x0b":
                    line = line[:column]
                case _:
                    line = line[:column] + piece + line[column + len(piece) :]
                    column += len(piece)
        self._line = [line] if line else []
        self._column = column if column < len(line) else None
        self._size += len(line) - len(before)

    def _trim(self) -> None:
        text = "".join(self._lines)
        if len(text) <= LIMIT:  # one endless line
            line = "".join(self._line)[-LIMIT:]
            self._lines, self._line, self._column = [], [line], None
        else:
            self._lines = [text[-LIMIT:]]
        self._size = sum(map(len, self._lines)) + sum(map(len, self._line))
        self._omitted = True
