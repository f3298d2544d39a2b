"""Patches: the rows that people read, without the headers that git writes for programs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

CONTEXT = 3
"""Unchanged lines that are shown around a change."""
WORTH = 5
"""Runs of unchanged lines up to this length are not folded."""
_HUNK = re.compile(r"@@ -\d+(?:,(\d{1,9}))? \+\d+(?:,(\d{1,9}))? @@")
_NOISE = (
    "diff --git", "index ", "new file mode", "deleted file mode", "similarity ", "\\ No newline", "--- ",
)  # fmt: skip


class PatchRow(NamedTuple):
    number: int
    """The index of the line in the patch."""
    kind: str
    """`+`, `-` or a space for a line of a file, `@` for a hunk, `file` for a path, `fold` for hidden lines"""
    text: str


def patch_rows(lines: Sequence[str]) -> Iterator[PatchRow]:
    """Yield the rows of a patch."""
    old = new = 0  # lines of the hunk that are still to come
    before = ""
    for number, line in enumerate(lines):
        sign = line[:1]
        if (old > 0 or new > 0) and sign in ("+", "-", " ", ""):
            # Inside a hunk a line may look like a header: a removed comment of SQL is "--- like this".
            old -= sign != "+"
            new -= sign != "-"
            yield PatchRow(number, sign or " ", line)
        elif line.startswith("+++ ") and before.startswith("--- "):
            yield PatchRow(number, "file", line[4:] if line[4:] != "/dev/null" else before[4:])
        elif sign == "@":
            if found := _HUNK.match(line):
                old, new = (1 if count is None else int(count) for count in found.groups())
            yield PatchRow(number, "@", line)
        elif not line.startswith(_NOISE):
            yield PatchRow(number, sign if sign in ("+", "-") else " ", line)
        before = line


def folded_rows(lines: Sequence[str]) -> Iterator[PatchRow]:
    """Yield the rows of a patch, with one `fold` row in place of a long unchanged run."""
    unchanged: list[PatchRow] = []
    changed = False
    for row in patch_rows(lines):
        if row.kind == " ":
            unchanged.append(row)
            continue
        inside = row.kind in "+-"
        yield from _folded(unchanged, CONTEXT if changed else 0, CONTEXT if inside else 0)
        yield row
        unchanged, changed = [], inside
    yield from _folded(unchanged, CONTEXT if changed else 0, 0)


def _folded(rows: list[PatchRow], before: int, after: int) -> Iterator[PatchRow]:
    hidden = len(rows) - before - after
    if hidden <= WORTH:
        yield from rows
        return
    yield from rows[:before]
    yield PatchRow(rows[before].number, "fold", f"… {hidden:,} lines")
    yield from rows[len(rows) - after :]


@lru_cache(maxsize=256)
def patch_counts(patch: str) -> tuple[int, int]:
    """Return how many lines a patch adds and removes."""
    lead = "\n" + patch
    return (
        lead.count("\n+") - lead.count("\n+++ "),
        lead.count("\n-") - lead.count("\n--- "),
    )
