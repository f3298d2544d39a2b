"""A patch in colours, as far as one reads it."""

from __future__ import annotations

from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from antiphon.transcripts import near
from antiphon.tui.patch_rows import patch_rows
from antiphon.tui.plain import plain, plain_line
from antiphon.tui.prose import Page

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
