"""Markdown that arrives in chunks, split into blocks.

A block is complete when the next one begins. Each line is examined once, and the incomplete part is bounded,
so that a long message costs no more per chunk than a short one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST = 8_000
"""Characters of an incomplete block; a longer block is given out in parts."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)")


class Piece(NamedTuple):
    """A complete part of the Markdown. `joined`: it continues the block of the part before."""

    text: str
    joined: bool = False


class MarkdownStream:
    """Splits the text of one message while it is written."""

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
        """The start of the first line that was not examined yet."""
        self._fence = ""
        """The marker of the open code block."""
        self._opener = ""
        self._blank = False
        self._listing = False
        self._joined = False

    def write(self, text: str) -> list[Piece]:
        """Add text, and return the parts that are complete now."""
        self._text += text
        pieces: list[Piece] = []
        while (end := self._text.find("\n", self._at)) >= 0:
            cut = self._look(self._text[self._at : end])
            if cut:
                pieces.append(self._cut(self._at))
                end = self._text.find("\n")
            self._at = end + 1
        if len(self._text) > LONGEST:
            pieces.append(self._part())
        return [piece for piece in pieces if piece.text.strip()]

    def finish(self) -> list[Piece]:
        """Return the rest of the text."""
        return [Piece(self._text, self._joined)] if self._text.strip() else []

    def tail(self, *, lines: int, width: int) -> str:
        """Return the end of the incomplete part, enough of it to fill `lines` lines."""
        if len(self._text) <= lines * width:
            return self._text
        if self._fence:
            kept = self._text.splitlines(keepends=True)[-lines:]
            return self._opener + "\n" + "".join(kept)
        return self._text[-lines * width :].partition(" ")[2]

    def _look(self, line: str) -> bool:
        """Examine one line, and return whether a new block begins with it."""
        fence = _FENCE.match(line)
        begins = False
        if self._fence:
            if fence and fence[1].startswith(self._fence) and not line.strip(" `~"):
                self._fence = ""
        else:
            if line.strip() and (self._blank or self._at == 0):
                item = _ITEM.match(line) is not None
                continues = self._at > 0 and (line[0] in " \t" or (self._listing and item))
                begins = self._at > 0 and not continues
                if not continues:
                    self._listing = item
            if fence:
                self._fence, self._opener = fence[1], line
        self._blank = not line.strip() and not self._fence
        return begins

    def _cut(self, at: int, *, joined: bool = False) -> Piece:
        piece = Piece(self._text[:at], self._joined)
        self._text = self._text[at:]
        self._at = 0
        self._joined = joined
        return piece

    def _part(self) -> Piece:
        """Cut a part off a block that is too long. A code block is reopened in the next part."""
        if self._fence and self._at > len(self._opener) + 1:
            piece = self._cut(self._at, joined=True)
            self._text = f"{self._opener}\n{self._text}"
            self._at = len(self._opener) + 1
            return piece
        at = max(self._text.rfind(mark, 0, LONGEST) for mark in ("\n", ". ", " ")) + 1 or LONGEST
        piece = self._cut(at)
        self._at = self._text.rfind("\n") + 1
        return piece
