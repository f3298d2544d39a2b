"""Patches in colours: without git's headers, and with long unchanged runs folded."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from antiphon.transcripts import PatchRow, folded_rows, patch_counts, relative_path
from antiphon.tui.text.code_colours import SECONDS, Spans, coloured_lines, language_of, load
from antiphon.tui.text.markdown import Page
from antiphon.tui.text.plain import plain, plain_line

LONGEST_PATCH = 512 * 1024
"""Characters of a patch that are read."""
LONGEST_LINE = 2_000
MOST_ROWS = 40
"""Rows of the screen that one line takes at most."""
_FILE_START = re.compile(r"@@ -[01](,\d+)? \+[01](,\d+)? @@\s*$")
"""The header of a hunk at the start of its file, which is not shown."""


def patch_lines(patch: str, cwd: str, page: Page, *, limit: int) -> list[Strip]:
    palette = page.palette
    fold = Style.parse(f"italic {palette.soft}")
    read = patch[:LONGEST_PATCH].rstrip("\n").split("\n")
    shown: list[PatchRow] = []
    hidden = 0 if len(patch) <= LONGEST_PATCH else patch.count("\n") - len(read)
    for row in folded_rows(read):
        if row.kind == "@" and _FILE_START.match(row.text):
            continue
        if len(shown) >= limit:
            hidden = patch.rstrip("\n").count("\n") + 1 - row.number
            break
        shown.append(row)
    spans = _code_spans(shown, page)
    lines: list[Strip] = []
    for row in shown:
        if len(lines) >= 2 * limit:  # long lines take several
            hidden += shown[-1].number + 1 - row.number
            break
        if row.kind == "file":
            lines.append(_file(row.text, patch, cwd, page, Style.parse(f"bold {palette.ink}")))
        elif row.kind == "fold":
            line = Text(row.text)
            line.stylize(fold)
            lines += _wrapped(line, page)
        else:
            lines += _code(row, spans.get(row.number, []), page)
    return [*lines, *page.text(f"⋮ {hidden:,} more lines", palette.soft)] if hidden > 0 else lines


def _shown(row: PatchRow) -> str:
    return plain(row.text[:LONGEST_LINE]).replace("\n", " ")


def _code_spans(rows: Sequence[PatchRow], page: Page) -> dict[int, Spans]:
    """Return the coloured parts of each row, by its number. The old and the new side of a hunk are two texts,
    or an open quote on one side would colour the other."""
    found: dict[int, Spans] = {}
    until = time.thread_time() + SECONDS
    language, hunk = None, []

    def colour(hunk: list[PatchRow]) -> None:
        if language is None:
            return
        for side in ("-", "+"):
            of_side = [row for row in hunk if row.kind in (" ", side)]
            left = until - time.thread_time()
            if left > 0 and any(row.kind == side for row in of_side):
                made = coloured_lines(
                    [_shown(row)[1:] for row in of_side], language, page.syntax, seconds=left
                )
                found.update({row.number: spans for row, spans in zip(of_side, made, strict=True)})

    for row in rows:
        if row.kind in ("+", "-", " "):
            hunk.append(row)
            continue
        colour(hunk)
        hunk = []
        if row.kind == "file":
            language = language_of(row.text)
            if language is not None:
                began = time.thread_time()
                load(language)
                until += time.thread_time() - began
    colour(hunk)
    return found


def _code(row: PatchRow, spans: Spans, page: Page) -> list[Strip]:
    palette = page.palette
    ink, ground = {
        "+": (palette.add_ink, palette.add),
        "-": (palette.remove_ink, palette.remove),
    }.get(row.kind, (palette.soft, None))
    look = Style.parse(f"{ink} on {ground}" if ground else ink)
    line = Text(_shown(row) or " ")
    line.stylize(look)
    for start, end, style in spans:
        if style.color is not None and style.color.name != palette.ink:
            line.stylize(style, start + 1, end + 1)  # behind the sign
    return _wrapped(line, page, ground=Style.parse(f"on {ground}") if ground else None)


def _wrapped(line: Text, page: Page, *, ground: Style | None = None) -> list[Strip]:
    """Return a line as strips, filled to the width of the page if there is a background."""
    fits = line.cell_len <= page.width
    parts = [line] if fits else list(line.wrap(page.console, page.width, overflow="fold"))[:MOST_ROWS]
    made = []
    for part in parts:
        segments = [Segment(text, style) for text, style, _ in part.render(page.console)]
        if ground is not None:
            segments.append(Segment(" " * max(page.width - part.cell_len, 0), ground))
        made.append(Strip(segments).crop(0, page.width))
    return made


def _file(path: str, patch: str, cwd: str, page: Page, look: Style) -> Strip:
    name = plain_line(relative_path(path.removeprefix("b/").removeprefix("a/"), cwd))
    parts = [Segment(name[: max(page.width - 16, 8)], look)]
    if patch.count("\n+++ ", 0, LONGEST_PATCH) <= 1:  # a patch of one file
        added, removed = patch_counts(patch)
        parts.append(Segment(f"  +{added:,}", Style.parse(page.palette.good)))
        parts.append(Segment(f" −{removed:,}", Style.parse(page.palette.bad)))
    return Strip(parts).crop(0, page.width)
