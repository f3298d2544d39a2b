"""Small PNG pictures as pixels, read with bounds: agents are not trusted, and neither are their pictures."""

from __future__ import annotations

import time
import zlib
from typing import NamedTuple

SIGNATURE = b"\x89PNG\r\n\x1a\n"
LARGEST = 4 * 1024 * 1024
"""Bytes of a file, and of its pixels, that are read."""
SIDE = 4_096
"""Pixels of the longest side."""
SECONDS = 0.3
"""CPU time after which a picture counts as too large."""
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Bytes per pixel of each colour type."""


class Unreadable(Exception):
    """The picture is broken, of an unusual kind, or too large."""


class Picture(NamedTuple):
    width: int
    height: int
    rows: list[bytes]
    """The pixels of each row, `channels` bytes for each."""
    channels: int
    palette: bytes
    """Three bytes for each colour of a picture with a palette."""
    opacity: bytes
    """The opacity of each of these colours."""

    def pixel(self, x: int, y: int) -> tuple[int, int, int, int]:
        """Return red, green, blue and opacity, each up to 255."""
        row, at = self.rows[y], x * self.channels
        match self.channels:
            case 1 if self.palette:
                colour = row[at]
                red, green, blue = self.palette[3 * colour : 3 * colour + 3].ljust(3, b"\0")
                return red, green, blue, self.opacity[colour] if colour < len(self.opacity) else 255
            case 1 | 2:
                grey = row[at]
                return grey, grey, grey, row[at + 1] if self.channels == 2 else 255
            case 3:
                return row[at], row[at + 1], row[at + 2], 255
        return row[at], row[at + 1], row[at + 2], row[at + 3]


def read_png(data: bytes, *, seconds: float = SECONDS) -> Picture:
    """Read a PNG of 8 bits per channel that is not interlaced. Raises `Unreadable` for all others."""
    if len(data) > LARGEST or not data.startswith(SIGNATURE):
        raise Unreadable("no PNG, or too large")
    width = height = channels = 0
    palette, opacity, packed = b"", b"", b""
    at = len(SIGNATURE)
    while at + 8 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        at += 12 + length
        if kind == b"IHDR" and len(body) >= 13:
            width, height = int.from_bytes(body[:4], "big"), int.from_bytes(body[4:8], "big")
            depth, colours, interlaced = body[8], body[9], body[12]
            channels = CHANNELS.get(colours, 0)
            if depth != 8 or interlaced or not channels:
                raise Unreadable("an unusual kind of PNG")
            if not (0 < width <= SIDE and 0 < height <= SIDE) or (width * channels + 1) * height > LARGEST:
                raise Unreadable("too many pixels")
        elif kind == b"PLTE":
            palette = body[: 3 * 256]
        elif kind == b"tRNS":
            opacity = body[:256]
        elif kind == b"IDAT":
            packed += body
        elif kind == b"IEND":
            break
    if not channels:
        raise Unreadable("no header")
    rows = _rows(packed, width * channels, height, channels, time.thread_time() + seconds)
    return Picture(width, height, rows, channels, palette, opacity)


def _rows(packed: bytes, length: int, height: int, channels: int, until: float) -> list[bytes]:
    """Unpack the rows, and undo the filter of each."""
    try:
        # Never more than the header promises: a small file can unpack to gigabytes.
        unpacked = zlib.decompressobj().decompress(packed, (length + 1) * height)
    except zlib.error as error:
        raise Unreadable(str(error)) from None
    if len(unpacked) < (length + 1) * height:
        raise Unreadable("cut short")
    rows: list[bytes] = []
    above = bytes(length)
    for at in range(0, (length + 1) * height, length + 1):
        if time.thread_time() > until:
            raise Unreadable("it takes too long")
        above = _unfiltered(unpacked[at], bytearray(unpacked[at + 1 : at + 1 + length]), above, channels)
        rows.append(above)
    return rows


def _unfiltered(kind: int, row: bytearray, above: bytes, step: int) -> bytes:
    match kind:
        case 0:
            pass
        case 1:
            for at in range(step, len(row)):
                row[at] = (row[at] + row[at - step]) & 255
        case 2:
            return bytes([(one + other) & 255 for one, other in zip(row, above, strict=True)])
        case 3:
            for at in range(len(row)):
                left = row[at - step] if at >= step else 0
                row[at] = (row[at] + (left + above[at]) // 2) & 255
        case 4:
            for at in range(len(row)):
                left, corner = (row[at - step], above[at - step]) if at >= step else (0, 0)
                up = above[at]
                by_left, by_up, by_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
                if by_left <= by_up and by_left <= by_corner:
                    near = left
                else:
                    near = up if by_up <= by_corner else corner
                row[at] = (row[at] + near) & 255
        case _:
            raise Unreadable("an unknown filter")
    return bytes(row)
