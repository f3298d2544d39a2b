"""An error as people read it: the message, the agent's own words, its last lines on stderr, and advice.

The `data` of an error has the last three as `details`, `stderr` and `advice`. `details` and `stderr` are an
agent's text: they are cleaned here, because commands and screens show them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from antiphon.text_safety import printed_text, safe_line, safe_text

GENERIC = frozenset({"", "internal error", "internal server error", "error", "unknown error", "server error"})
"""Messages that say nothing."""
LONGEST = 2000
"""Characters of an agent's own words that are shown."""
MOST_LINES = 10
"""Lines of stderr that are shown."""
MOST_INDENTATION = 40
_WIDEST = 300


class FailureText(Struct, frozen=True):
    """A failure as people read it."""

    message: str
    """On one line: the message of the error, with the agent's own words."""
    stderr: tuple[str, ...] = ()
    """The last lines that the agent wrote to stderr, unless the message has them."""
    advice: str = ""
    """What to do; empty if nobody knows."""
    title: str = ""
    """On one line: the message of the error alone."""
    details: str = ""
    """The agent's own words, with their lines; empty if the title has them."""

    @property
    def lines(self) -> list[str]:
        """The message, each line of stderr, and the advice."""
        advice = [advice_sentence(self.advice)] if self.advice else []
        return [self.message, *(f"  {line}" for line in self.stderr), *advice]


def read_failure(message: str, data: Any = None) -> FailureText:
    """Read the failure that an error with this message and `data` reports."""
    words = details_of(data) or ""
    line, title = safe_line(words, limit=LONGEST), safe_line(message, limit=LONGEST)
    whole = title
    if is_generic(title) and line:
        whole = line
    elif line and line not in title:
        whole = f"{title.rstrip('.:')}: {line}"
    of = data if isinstance(data, dict) else {}
    advice = of.get("advice")
    return FailureText(
        whole,
        tuple(line for line in _lines(of.get("stderr")) if line.strip() not in whole),
        safe_line(advice, limit=LONGEST).rstrip(".") if isinstance(advice, str) else "",
        title,
        "" if line in title else safe_text(words),
    )


def advice_sentence(advice: str) -> str:
    """Return advice as a sentence; an empty text if there is none."""
    return f"{advice[0].upper()}{advice[1:]}." if advice else ""


def is_generic(message: str) -> bool:
    """Whether a message says nothing about what failed."""
    return message.strip().rstrip(".").lower() in GENERIC


def details_of(data: Any) -> str | None:
    """Return an agent's own words from the `data` of its error, as agents are seen to send them."""
    if isinstance(data, str):
        return data.strip()[:LONGEST] or None
    if not isinstance(data, dict):
        return None
    for key in ("details", "detail", "message", "errorMessage"):
        if isinstance(data.get(key), str) and data[key].strip():
            return str(data[key]).strip()[:LONGEST]
    return details_of(data.get("error"))


def last_lines(stderr: Sequence[str]) -> str:
    """Return the last lines of stderr as the text of an error's `data`."""
    said = [line for line in stderr if line.strip()]
    return "\n".join(line[:_WIDEST] for line in said[-MOST_LINES:])


def _lines(stderr: Any) -> list[str]:
    if isinstance(stderr, list):
        stderr = "\n".join(line for line in stderr if isinstance(line, str))
    if not isinstance(stderr, str):
        return []
    lines = printed_text(stderr).splitlines()[-MOST_LINES:]
    return [_indented(line) for line in lines if line.strip()]


def _indented(line: str) -> str:
    """Return a safe line that keeps its indentation, by which people read a traceback."""
    indentation = line[: len(line) - len(line.lstrip())].expandtabs(4)[:MOST_INDENTATION]
    return indentation + safe_line(line, limit=_WIDEST)
