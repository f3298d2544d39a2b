"""Words: marks in the text of an agent, to see what a client printed of it and in which order."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

WORD = re.compile(r"word\d{4}")


class Words:
    """Makes words that occur nowhere else. Each is one word, so that a client never breaks a line in it."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def __call__(self) -> str:
        self.all.append(f"word{len(self.all) + 1:04}")
        return self.all[-1]


class Printed(Struct, frozen=True):
    """What a client printed of some words."""

    missing: tuple[str, ...]
    ordered: bool
    """Whether the words that were printed are in order. A client may print a word again."""

    @property
    def complete(self) -> bool:
        return not self.missing and self.ordered


def printed_words(output: str, words: Sequence[str]) -> Printed:
    """Look for words in the output of a client."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for place, word in enumerate(WORD.findall(output)):
        first.setdefault(word, place)
        last[word] = place
    seen = [word for word in words if word in first]
    ordered = any([at[word] for word in seen] == sorted(at[word] for word in seen) for at in (first, last))
    return Printed(tuple(word for word in words if word not in first), ordered)
