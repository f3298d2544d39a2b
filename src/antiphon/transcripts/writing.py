"""Markdown as it streams: what is complete is cut off and shown for good, the rest is shown again.

A block is complete when the next one begins. Splitting looks at each line once, and the part that is still
being written is bounded, so that a long answer costs no more per chunk than a short one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST = 8_000
"""Characters of one block that are kept to be shown again; a longer one is shown in parts."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)")


class Piece(NamedTuple):
    """Markdown that is shown for good; `joined` if it goes on where the last one stopped."""

    text: str
    joined: bool = False


class Writing:
    """A message while it is written."""

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
        """Up to where it has been looked at: always the beginning of a line."""
        self._fence = ""
        """The marker of the code block that is open, and the line that opened it."""
        self._opener = ""
        self._blank = False
        self._listing = False
        self._joined = False

    def write(self, text: str) -> list[Piece]:
        """Add text; the pieces that this made complete."""
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
        """Nothing follows: all that is left."""
        return [Piece(self._text, self._joined)] if self._text.strip() else []

    def tail(self, *, lines: int, width: int) -> str:
        """The end of what is not complete, enough of it to fill so many lines."""
        if len(self._text) <= lines * width:
            return self._text
        if self._fence:
            kept = self._text.splitlines(keepends=True)[-lines:]
            return self._opener + "\n" + "".join(kept)
        return self._text[-lines * width :].partition(" ")[2]

    def _look(self, line: str) -> bool:
        """Take in one line; whether a new block begins with it."""
        fence = _FENCE.match(line)
        begins = False
        if self._fence:
            if fence and fence[1].startswith(self._fence) and not line.strip(" `~"):
                self._fence = ""
        else:
            if line.strip() and (self._blank or self._at == 0):
                item = _ITEM.match(line) is not None
                goes_on = self._at > 0 and (line[0] in " \t" or (self._listing and item))
                begins = self._at > 0 and not goes_on
                if not goes_on:
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
        """Part of a block that is too long: a code block goes on in the next piece."""
        if self._fence and self._at > len(self._opener) + 1:
            piece = self._cut(self._at, joined=True)
            self._text = f"{self._opener}\n{self._text}"
            self._at = len(self._opener) + 1
            return piece
        at = max(self._text.rfind(mark, 0, LONGEST) for mark in ("\n", ". ", " ")) + 1 or LONGEST
        piece = self._cut(at)
        self._at = self._text.rfind("\n") + 1
        return piece
