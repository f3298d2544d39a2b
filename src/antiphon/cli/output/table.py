"""Tables on stdout: a header, and columns that align."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from itertools import zip_longest

GAP = "  "


def write_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], below: Iterable[Sequence[str]] = ()
) -> None:
    """Write rows below a header, and below each row its further lines. On a terminal, the last column is cut
    where the line ends."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    further = [(), *below]
    for line, more in zip_longest(table_lines(headers, rows, width=width), further, fillvalue=()):
        print(line, *(f"    {each}" for each in more), sep="\n")


def table_lines(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None
) -> list[str]:
    """Return the lines of a table. `width` is that of the terminal, if the table goes to one."""
    from rich.cells import cell_len, set_cell_size

    table = [headers, *rows]
    widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
    if width is not None:
        before = sum(widths[:-1]) + len(GAP) * (len(widths) - 1)
        widths[-1] = min(widths[-1], max(width - before, len(headers[-1])))
    lines = []
    for row in table:
        cells = [
            each if at == len(widths) - 1 and cell_len(each) <= size else set_cell_size(each, size)
            for at, (each, size) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(GAP.join(cells).rstrip())
    return lines
