"""Writes the PNG icons of the page from the bars of its SVG icon: `python -m tools.icons`.

The bars are lines with round ends, so a pixel is as opaque as its distance from the nearest line says.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from pathlib import Path

from tools.png import RGB, RGBA, SIGNATURE, chunk, header

STATIC = Path(__file__).parents[1] / "src" / "antiphon" / "web" / "static"
GRID = 16
"""The width of the SVG's view box."""
TILE = (0x0B, 0x6B, 0x60)
WHITE = (255, 255, 255)
ICONS = {
    "icon-192.png": (192, TILE, 0.66),
    "icon-512.png": (512, TILE, 0.66),
    "badge-96.png": (96, None, 1.0),
}
"""Width in pixels, the ground, and how much of the width the mark takes. The mark of a maskable icon stays in
a circle of 80% of it. A badge is a shape only."""


def bars() -> list[tuple[float, float, float]]:
    """Return the vertical lines of the icon: x, top and bottom."""
    path = re.search(r' d="([^"]+)"', (STATIC / "icon.svg").read_text())
    assert path is not None
    found = re.findall(r"M([\d.]+) ([\d.]+)v([\d.]+)", path[1])
    return [(float(x), float(y), float(y) + float(length)) for x, y, length in found]


def row(size: int, above: Sequence[float], xs: Sequence[float], part: float) -> list[float]:
    """Return how much of each pixel of a row is covered. `above`: how far the row is from the end of each
    bar, 0 within it; `xs`: where the bars are."""
    scale, margin = size * part / GRID, size * (1 - part) / 2
    covered = []
    for column in range(size):
        x = (column + 0.5 - margin) / scale
        nearest = min(((x - at) ** 2 + off**2) ** 0.5 for at, off in zip(xs, above, strict=True))
        covered.append(min(1.0, max(0.0, 0.5 + (1.0 - nearest) * scale)))
    return covered


def pixel(covered: float, ground: tuple[int, int, int] | None) -> bytes:
    if ground is None:
        return bytes((*WHITE, round(255 * covered)))
    return bytes(round(w * covered + g * (1 - covered)) for w, g in zip(WHITE, ground, strict=True))


def png(size: int, ground: tuple[int, int, int] | None, part: float) -> bytes:
    scale, margin = size * part / GRID, size * (1 - part) / 2
    lines = bars()
    xs = [x for x, _, _ in lines]
    drawn: dict[tuple[float, ...], bytes] = {}
    rows = []
    for number in range(size):
        y = (number + 0.5 - margin) / scale
        above = tuple(min(2.0, max(top - y, y - bottom, 0.0)) for _, top, bottom in lines)
        if above not in drawn:  # most rows are alike
            covers = row(size, above, xs, part)
            drawn[above] = b"\0" + b"".join(pixel(covered, ground) for covered in covers)
        rows.append(drawn[above])
    top = header(size, size, RGBA if ground is None else RGB)
    data = chunk(b"IDAT", zlib.compress(b"".join(rows), 9))
    return SIGNATURE + top + data + chunk(b"IEND", b"")


if __name__ == "__main__":
    for name, (size, ground, part) in ICONS.items():
        (STATIC / name).write_bytes(png(size, ground, part))
