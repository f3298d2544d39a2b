"""Text of strangers, made safe for a terminal, and paths as people write them."""

from __future__ import annotations

import os
import re

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movements
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x1b\\|\x07)?"  # OSC and other strings: titles, links, the clipboard
    r"|\x1b[^\n]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """Text that moves no cursor, sets no colour and hides nothing; what a line overwrote is gone."""
    text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _CONTROLS.sub("", text)


def one_line(text: str, *, limit: int = 200) -> str:
    line = " ".join(clean(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def homely(path: str) -> str:
    """A path as one writes it at home."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path
