"""Pictures made by hand: a PNG needs no more than zlib."""

from __future__ import annotations

import math
import struct
import zlib

WIDTH, HEIGHT = 480, 160
PAPER = (250, 248, 244)
VOICES = (((0, 104, 122), 0.0), ((202, 110, 48), 1.1))
"""The colour of each, and how far it is behind."""
_HALF = 3.0
"""Half the width of a line."""


def draw_voices() -> bytes:
    """Two waves, the second behind the first."""
    rows = [bytearray(PAPER * WIDTH) for _ in range(HEIGHT)]
    for colour, lag in VOICES:
        heights = [_height(x, lag) for x in range(WIDTH + 1)]
        for x in range(WIDTH):
            slant = math.hypot(1.0, heights[x + 1] - heights[x])  # a steep line is higher, not thinner
            reach = math.ceil(_HALF * slant) + 1
            middle = round(heights[x])
            for y in range(max(middle - reach, 0), min(middle + reach + 1, HEIGHT)):
                covered = _HALF + 0.5 - abs(y - heights[x]) / slant
                _paint(rows[y], 3 * x, colour, min(max(covered, 0.0), 1.0))
    return png(rows)


def _height(x: int, lag: float) -> float:
    fade = math.sin(math.pi * x / WIDTH)  # they begin and end together
    return HEIGHT / 2 + HEIGHT / 3 * fade * math.sin(x / 28 - lag)


def _paint(row: bytearray, at: int, colour: tuple[int, int, int], covered: float) -> None:
    for offset, value in enumerate(colour, at):
        row[offset] = round(row[offset] + (value - row[offset]) * covered)


def png(rows: list[bytearray]) -> bytes:
    """A picture of three bytes a point: red, green, blue."""
    header = struct.pack(">IIBBBBB", len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    lines = b"".join(b"\0" + row for row in rows)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(name, data)
        for name, data in ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    )


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
