"""Line plots as SVG, written by hand: readable on light and dark pages, and without colours."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10
from typing import NamedTuple

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 72, 24, 48, 56
COLOURS = ("a", "b", "c", "d", "e")
DASHES = ("", "8 4", "2 4", "10 4 2 4", "14 6")
STYLE = """\
text{font:13px system-ui,sans-serif;fill:#24292f}.title{font-size:15px;font-weight:600}
.grid{stroke:#d0d7de;stroke-width:1}.axis{stroke:#57606a;stroke-width:1.5}
.line{fill:none;stroke-width:2.5}.page{fill:#ffffff}
.a{stroke:#0969da}.b{stroke:#bc4c00}.c{stroke:#1a7f37}.d{stroke:#8250df}.e{stroke:#57606a}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.grid{stroke:#30363d}.axis{stroke:#8d96a0}
.page{fill:#0d1117}.a{stroke:#58a6ff}.b{stroke:#f0883e}.c{stroke:#3fb950}.d{stroke:#bc8cff}.e{stroke:#8d96a0}}"""


class Line(NamedTuple):
    name: str
    points: Sequence[tuple[float, float]]


class Axis(NamedTuple):
    """An axis with its label, which names the unit. `log`: each step is ten times the one before it."""

    label: str
    log: bool = False


class Scale:
    """Positions on an axis from `start` to `end` pixels, with ticks at round numbers."""

    def __init__(self, axis: Axis, values: Sequence[float], start: float, end: float) -> None:
        self._axis = axis
        self._start, self._end = start, end
        if axis.log:
            low = floor(log10(min(values)))
            high = max(ceil(log10(max(values))), low + 1)
            self._low, self._high = float(low), float(high)
            self.ticks = [10.0**n for n in range(low, high + 1)]
        else:
            step = _round_step(max(values) / 5)
            self._low, self._high = 0.0, step * ceil(max(values) / step - 1e-9)
            self.ticks = [n * step for n in range(round(self._high / step) + 1)]

    def at(self, value: float) -> float:
        place = log10(value) if self._axis.log else value
        return self._start + (self._end - self._start) * (place - self._low) / (self._high - self._low)


def _round_step(least: float) -> float:
    power = 10.0 ** floor(log10(least)) if least > 0 else 1.0
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * 0.999)


def tick_text(value: float) -> str:
    for unit, word in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{word}"
    return f"{value:g}"


def plot(title: str, x: Axis, y: Axis, lines: Sequence[Line]) -> str:
    """Return a plot. The legend is in the order of the lines."""
    top = TOP + 20 * len(lines)
    xs = [point[0] for line in lines for point in line.points]
    ys = [point[1] for line in lines for point in line.points]
    across = Scale(x, xs, LEFT, WIDTH - RIGHT)
    height = HEIGHT + 20 * len(lines)
    down = Scale(y, ys, height - BOTTOM, top)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
        f'<text class="title" x="{LEFT}" y="24">{escape(title)}</text>',
    ]
    for number, line in enumerate(lines):
        at = 44 + 20 * number
        parts += [
            f'<path class="line {COLOURS[number]}" {_dash(number)}d="M{LEFT} {at}h36"/>',
            f'<text x="{LEFT + 44}" y="{at + 4}">{escape(line.name)}</text>',
        ]
    for tick in across.ticks:
        parts += [
            f'<path class="grid" d="M{across.at(tick):.1f} {top}V{height - BOTTOM}"/>',
            f'<text x="{across.at(tick):.1f}" y="{height - BOTTOM + 18}" text-anchor="middle">'
            f"{tick_text(tick)}</text>",
        ]
    for tick in down.ticks:
        parts += [
            f'<path class="grid" d="M{LEFT} {down.at(tick):.1f}H{WIDTH - RIGHT}"/>',
            f'<text x="{LEFT - 8}" y="{down.at(tick) + 4:.1f}" text-anchor="end">{tick_text(tick)}</text>',
        ]
    parts += [
        f'<path class="axis" fill="none" d="M{LEFT} {top}V{height - BOTTOM}H{WIDTH - RIGHT}"/>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{height - 14}" text-anchor="middle">'
        f"{escape(x.label)}</text>",
        f'<text transform="translate(18 {(top + height - BOTTOM) / 2:.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(y.label)}</text>",
    ]
    for number, line in enumerate(lines):
        path = "L".join(f"{across.at(a):.1f} {down.at(b):.1f}" for a, b in line.points)
        parts.append(f'<path class="line {COLOURS[number]}" {_dash(number)}d="M{path}"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _dash(number: int) -> str:
    return f'stroke-dasharray="{DASHES[number]}" ' if DASHES[number] else ""
