"""Ignored: what the `.gitignore` files of a folder and of those above it name.

Not all of git's rules: only files named `.gitignore`, with patterns of bounded length and number.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Sequence

from msgspec import Struct

NAME = ".gitignore"
LONGEST = 64 * 1024
"""Bytes of a file that are read."""
MOST = 400
"""Patterns of one file that are used."""
PATTERN = 200
"""Characters of a pattern."""
WILD = re.compile(r"[*?\[]")

Fits = Callable[[str], object]


class _Rule(Struct, frozen=True):
    """One pattern. `parts` fit the parts of a path; `None` is `**`, which fits any number of them."""

    parts: Sequence[Fits | None]
    base: str
    """The folder of its file, with a slash at the end."""
    anchored: bool
    folders: bool
    """Whether it names folders only."""
    takes_back: bool

    def covers(self, path: str, *, folder: bool) -> bool:
        if self.folders and not folder:
            return False
        parts = path[len(self.base) :].split("/")
        return _fit(self.parts, parts if self.anchored else parts[-1:])


class Ignored:
    def __init__(self, rules: Sequence[_Rule] = ()) -> None:
        self._rules = rules

    def within(self, descriptor: int, prefix: str) -> Ignored:
        """Return what is ignored in an open folder, by its own file, too."""
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with os.fdopen(os.open(NAME, flags, dir_fd=descriptor), "rb") as file:
                text = file.read(LONGEST).decode(errors="replace")
        except OSError:
            return self
        rules = [rule for line in text.splitlines()[:MOST] if (rule := _rule(line, prefix)) is not None]
        return Ignored([*self._rules, *rules])

    def covers(self, path: str, *, folder: bool) -> bool:
        """Return whether a path is ignored. The last rule that fits decides."""
        for rule in reversed(self._rules):
            if rule.covers(path, folder=folder):
                return not rule.takes_back
        return False


def _rule(line: str, base: str) -> _Rule | None:
    pattern = line.rstrip()
    if not pattern or pattern.startswith("#") or len(pattern) > PATTERN:
        return None
    takes_back = pattern.startswith("!")
    pattern = pattern.removeprefix("!").removeprefix("\\")
    folders = pattern.endswith("/")
    pattern = pattern.rstrip("/")
    if not pattern:
        return None
    parts = [None if part == "**" else _fits(part) for part in pattern.removeprefix("/").split("/")]
    return _Rule(parts, base, "/" in pattern, folders, takes_back)


def _fits(part: str) -> Fits:
    # `translate` makes patterns that try nothing twice.
    return re.compile(fnmatch.translate(part)).match if WILD.search(part) else part.__eq__


def _fit(wanted: Sequence[Fits | None], parts: Sequence[str]) -> bool:
    """Return whether patterns fit the parts of a path, one after the other."""
    reached = {0}
    for number, fits in enumerate(wanted):
        last = number == len(wanted) - 1
        if fits is None:
            reached = set(range(min(reached), len(parts) + (0 if last else 1)))
            if last:
                return bool(reached)
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fits(parts[at])}
        if not reached:
            return False
    return len(parts) in reached
