"""Patches in colours: without noise, and with long unchanged runs folded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from antiphon.transcripts import near
from antiphon.tui.text.markdown import Page
from antiphon.tui.text.plain import plain, plain_line

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


LOOKED_AT = 512 * 1024
"""Characters of a patch that are looked at."""
LONGEST_LINE = 2_000


def patch_lines(patch: str, cwd: str, page: Page, *, limit: int) -> list[Strip]:
    palette = page.palette
    looks = {
        "+": Style.parse(f"{palette.add_ink} on {palette.add}"),
        "-": Style.parse(f"{palette.remove_ink} on {palette.remove}"),
        "@": Style.parse(palette.soft),
        "file": Style.parse(f"bold {palette.ink}"),
        "fold": Style.parse(f"italic {palette.soft}"),
    }
    plainly = Style.parse(palette.soft)
    lines: list[Strip] = []
    looked = patch[:LOOKED_AT].rstrip("\n").split("\n")
    for row in patch_rows(looked):
        if len(lines) >= limit:
            more = patch.rstrip("\n").count("\n") + 1 - row.number
            return [*lines, *page.text(f"⋮ {more:,} more lines", palette.soft)]
        if row.kind == "file":
            lines.append(_file(row.text, patch, cwd, page, looks["file"]))
        else:
            shown = plain(row.text[:LONGEST_LINE]).replace("\n", " ")
            lines += _wrapped(shown, looks.get(row.kind, plainly), page, filled=row.kind in "+-")
    if len(patch) > LOOKED_AT:
        more = patch.count("\n") - len(looked)
        lines += page.text(f"⋮ {more:,} more lines", palette.soft)
    return lines


def _file(path: str, patch: str, cwd: str, page: Page, look: Style) -> Strip:
    name = plain_line(near(path.removeprefix("b/").removeprefix("a/"), cwd))
    parts = [Segment(name[: max(page.width - 16, 8)], look)]
    if patch.count("\n+++ ", 0, LOOKED_AT) <= 1:  # of one file
        added, removed = counts(patch)
        parts.append(Segment(f"  +{added:,}", Style.parse(page.palette.good)))
        parts.append(Segment(f" −{removed:,}", Style.parse(page.palette.bad)))
    return Strip(parts).crop(0, page.width)


@lru_cache(maxsize=256)
def counts(patch: str) -> tuple[int, int]:
    """Lines added and removed."""
    lead = "\n" + patch
    return (
        lead.count("\n+") - lead.count("\n+++ "),
        lead.count("\n-") - lead.count("\n--- "),
    )


def _wrapped(line: str, look: Style, page: Page, *, filled: bool) -> list[Strip]:
    made = []
    for strip in page.text(line or " ")[:40]:
        text = strip.text
        padding = page.width - cell_len(text) if filled else 0
        made.append(Strip([Segment(text + " " * padding, look)]).crop(0, page.width))
    return made
