"""Text made visible: it moves no cursor, turns no line around, and hides nothing in what has no width."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movements
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x1b\\|\x07)?"  # OSC and other strings: titles, links, the clipboard
    r"|\x1b[^\n]?"
)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_BREAKS = re.compile("[\x85\u2028\u2029]")
_HIDDEN = re.compile(
    "[\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U000e0000-\U000e0fff]"
    # Joiners belong to emoji and to many scripts; beside ASCII they only hide.
    "|(?<=[\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?=[\x00-\x7f])"
)

READ = 64 * 1024
BRACKETS = 1000


def visible(text: str) -> str:
    """All of a text that can be seen; a character that would change how others are seen is named instead."""
    if text.isascii() and text.isprintable():
        return text
    text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    text = _BREAKS.sub("\n", _CONTROLS.sub("", text))
    return _HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def visible_line(text: str, *, limit: int = 400) -> str:
    """The same on one line, and not longer than a line should be."""
    line = " ".join(visible(text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def is_readable(shown: str) -> bool:
    """Whether to read a text as Markdown: a long one, or one of nothing but brackets, may take for ever."""
    return len(shown) <= READ and shown.count("[") <= BRACKETS
