"""Patches in colours: without git's headers, and with long unchanged runs folded."""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from antiphon.transcripts import folded_rows, patch_counts, relative_path
from antiphon.tui.text.markdown import Page
from antiphon.tui.text.plain import plain, plain_line

LONGEST_PATCH = 512 * 1024
"""Characters of a patch that are read."""
LONGEST_LINE = 2_000
_FILE_START = re.compile(r"@@ -[01](,\d+)? \+[01](,\d+)? @@\s*$")
"""The header of a hunk at the start of its file, which is not shown."""


def patch_lines(patch: str, cwd: str, page: Page, *, limit: int) -> list[Strip]:
    palette = page.palette
    looks = {
        "+": Style.parse(f"{palette.add_ink} on {palette.add}"),
        "-": Style.parse(f"{palette.remove_ink} on {palette.remove}"),
        "file": Style.parse(f"bold {palette.ink}"),
        "fold": Style.parse(f"italic {palette.soft}"),
    }
    soft = Style.parse(palette.soft)
    lines: list[Strip] = []
    read = patch[:LONGEST_PATCH].rstrip("\n").split("\n")
    for row in folded_rows(read):
        if row.kind == "@" and _FILE_START.match(row.text):
            continue
        if len(lines) >= limit:
            more = patch.rstrip("\n").count("\n") + 1 - row.number
            return [*lines, *page.text(f"⋮ {more:,} more lines", palette.soft)]
        if row.kind == "file":
            lines.append(_file(row.text, patch, cwd, page, looks["file"]))
        else:
            shown = plain(row.text[:LONGEST_LINE]).replace("\n", " ")
            lines += _wrapped(shown, looks.get(row.kind, soft), page, filled=row.kind in "+-")
    if len(patch) > LONGEST_PATCH:
        more = patch.count("\n") - len(read)
        lines += page.text(f"⋮ {more:,} more lines", palette.soft)
    return lines


def _file(path: str, patch: str, cwd: str, page: Page, look: Style) -> Strip:
    name = plain_line(relative_path(path.removeprefix("b/").removeprefix("a/"), cwd))
    parts = [Segment(name[: max(page.width - 16, 8)], look)]
    if patch.count("\n+++ ", 0, LONGEST_PATCH) <= 1:  # a patch of one file
        added, removed = patch_counts(patch)
        parts.append(Segment(f"  +{added:,}", Style.parse(page.palette.good)))
        parts.append(Segment(f" −{removed:,}", Style.parse(page.palette.bad)))
    return Strip(parts).crop(0, page.width)


def _wrapped(line: str, look: Style, page: Page, *, filled: bool) -> list[Strip]:
    made = []
    for strip in page.text(line or " ")[:40]:
        text = strip.text
        padding = page.width - cell_len(text) if filled else 0
        made.append(Strip([Segment(text + " " * padding, look)]).crop(0, page.width))
    return made
