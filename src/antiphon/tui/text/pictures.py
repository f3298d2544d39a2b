"""Pictures as lines of the screen: two pixels per cell, drawn as half blocks.

Graphics protocols (kitty, iTerm2, sixel) are not used. They draw beside the grid of cells that the screen is
made of, so that a picture stays behind when the transcript scrolls, and they would have the terminal read
what an agent sent. Half blocks are text: they scroll, they are copied, and they work in tmux and over SSH.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from antiphon.schema import v2
from antiphon.tui.text.markdown import Page
from antiphon.tui.text.png import LARGEST, Picture, Unreadable, read_png

COLUMNS = 64
ROWS = 18
MOST = 4
"""Pictures of one entry that are drawn; the others are named."""


def picture_lines(blocks: Iterable[Any], page: Page) -> list[Strip]:
    """Draw the PNG pictures among content blocks. Other pictures have only their name in the text."""
    lines: list[Strip] = []
    for data in _pngs(blocks):
        drawn = _drawn(data, min(page.width, COLUMNS), page.palette.paper)
        if drawn:
            lines += [Strip([]), *drawn] if lines else drawn
    return lines


def _pngs(blocks: Iterable[Any]) -> Iterator[str]:
    found = 0
    for block in blocks:
        if isinstance(block, v2.ImageContent) and block.mime_type.lower() == "image/png":
            found += 1
            if found > MOST:
                return
            yield block.data


@lru_cache(maxsize=32)
def _drawn(data: str, columns: int, paper: str) -> list[Strip]:
    picture = _picture(data)
    if picture is None:
        return []
    scale = max(picture.width / columns, picture.height / (2 * ROWS), 1.0)
    width, height = max(round(picture.width / scale), 1), max(round(picture.height / scale), 1)
    ground = tuple(bytes.fromhex(paper.removeprefix("#")))
    pixels = [[_colour(picture, x, y, scale, ground) for x in range(width)] for y in range(height)]
    if height % 2:
        pixels.append([paper] * width)
    return [
        Strip([Segment("▀", Style(color=upper, bgcolor=lower)) for upper, lower in zip(*pair, strict=True)])
        for pair in zip(pixels[::2], pixels[1::2], strict=True)
    ]


@lru_cache(maxsize=8)
def _picture(data: str) -> Picture | None:
    if len(data) > LARGEST * 4 // 3 + 4:
        return None
    try:
        return read_png(base64.b64decode(data))
    except (Unreadable, binascii.Error, ValueError):
        return None


def _colour(picture: Picture, x: int, y: int, scale: float, ground: tuple[int, ...]) -> str:
    """Return the mean colour of some of the pixels that one half block stands for, over the background."""
    sums = [0, 0, 0]
    places = [(x + dx, y + dy) for dx in (0.25, 0.75) for dy in (0.25, 0.75)]
    for left, top in places:
        at = min(int(left * scale), picture.width - 1), min(int(top * scale), picture.height - 1)
        *colour, opacity = picture.pixel(*at)
        for channel in range(3):
            sums[channel] += (colour[channel] * opacity + ground[channel] * (255 - opacity)) // 255
    return "#{:02x}{:02x}{:02x}".format(*(total // len(places) for total in sums))
