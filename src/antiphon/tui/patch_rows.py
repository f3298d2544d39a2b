"""The rows of a patch that are worth reading: without what is noise, and with long unchanged runs folded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

CONTEXT = 3
"""Unchanged lines that are shown around a change."""
WORTH = 5
"""No more lines than that are not worth folding away."""
_HUNK = re.compile(r"@@ -\d+(?:,(\d{1,9}))? \+\d+(?:,(\d{1,9}))? @@")
_FIRST = re.compile(r"@@ -[01](,\d+)? \+[01](,\d+)? @@\s*$")
"""A hunk that begins where its file does: that needs no words."""
_NOISE = (
    "diff --git",
    "index ",
    "new file mode",
    "deleted file mode",
    "similarity ",
    "\\ No newline",
    "--- ",
)


class Row(NamedTuple):
    number: int
    """Which line of the patch it begins at."""
    kind: str
    """`+`, `-`, a space; `@` a hunk, `file`, `fold`."""
    text: str


def patch_rows(lines: Sequence[str]) -> Iterator[Row]:
    unchanged: list[Row] = []
    changed = False
    for row in _rows(lines):
        if row.kind == " ":
            unchanged.append(row)
            continue
        inside = row.kind in "+-"
        yield from _folded(unchanged, CONTEXT if changed else 0, CONTEXT if inside else 0)
        yield row
        unchanged, changed = [], inside
    yield from _folded(unchanged, CONTEXT if changed else 0, 0)


def _folded(rows: list[Row], before: int, after: int) -> Iterator[Row]:
    hidden = len(rows) - before - after
    if hidden <= WORTH:
        yield from rows
        return
    yield from rows[:before]
    yield Row(rows[before].number, "fold", f"… {hidden:,} lines")
    yield from rows[len(rows) - after :]


def _rows(lines: Sequence[str]) -> Iterator[Row]:
    old = new = 0  # lines of the hunk that are still to come
    before = ""
    for number, line in enumerate(lines):
        sign = line[:1]
        if (old > 0 or new > 0) and sign in ("+", "-", " ", ""):
            # Within a hunk a line may look like a header: a comment of SQL that was removed, "--- like this".
            old -= sign != "+"
            new -= sign != "-"
            yield Row(number, sign or " ", line)
        elif line.startswith("+++ ") and before.startswith("--- "):
            yield Row(number, "file", line[4:] if line[4:] != "/dev/null" else before[4:])
        elif sign == "@":
            if found := _HUNK.match(line):
                old, new = (1 if count is None else int(count) for count in found.groups())
            if not _FIRST.match(line):
                yield Row(number, "@", line)
        elif not line.startswith(_NOISE):
            yield Row(number, sign if sign in ("+", "-") else " ", line)
        before = line
