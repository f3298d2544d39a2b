"""PNG files as pixels: writes them from their parts, and reads those that Chromium makes of a page."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import accumulate

from msgspec import Struct

SIGNATURE = b"\x89PNG\r\n\x1a\n"
RGB, INDEXED, RGBA = 2, 3, 6
"""Colour types."""


class Picture(Struct, frozen=True):
    width: int
    height: int
    pixels: bytes
    """Four bytes a pixel: red, green, blue and how opaque it is."""


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack("!I", len(data)) + name + data + struct.pack("!I", zlib.crc32(name + data))


def header(width: int, height: int, colour: int) -> bytes:
    """Return the chunk that begins a picture with 8 bits a channel, not interlaced."""
    return chunk(b"IHDR", struct.pack("!IIBBBBB", width, height, 8, colour, 0, 0, 0))


def chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the name and the data of each chunk of a file."""
    if not data.startswith(SIGNATURE):
        raise ValueError(f"expected a PNG file, got {data[:8]!r}")
    at = len(SIGNATURE)
    while at < len(data):
        (length,) = struct.unpack_from("!I", data, at)
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        at += 12 + length


def read(data: bytes) -> Picture:
    """Read a picture with 8 bits a channel that is not interlaced, with or without transparency."""
    parts = list(chunks(data))
    width, height, depth, colour, *rest = struct.unpack("!IIBBBBB", parts[0][1])
    if depth != 8 or colour not in (RGB, RGBA) or rest != [0, 0, 0]:
        raise ValueError(
            f"expected 8 bits a channel in RGB or RGBA, got {depth} bits of colour type {colour}"
        )
    size = 3 if colour == RGB else 4
    packed = zlib.decompress(b"".join(body for name, body in parts if name == b"IDAT"))
    plain = b"".join(unfiltered(packed, width * size, size))
    if colour == RGBA:
        return Picture(width, height, plain)
    pixels = bytearray(b"\xff" * (4 * width * height))
    for channel in range(3):
        pixels[channel::4] = plain[channel::3]
    return Picture(width, height, bytes(pixels))


def unfiltered(packed: bytes, length: int, size: int) -> Iterator[bytes]:
    """Yield the rows of a picture: `length` bytes each, `size` a pixel."""
    above = bytes(length)
    for start in range(0, len(packed), length + 1):
        row = packed[start + 1 : start + 1 + length]
        match packed[start]:
            case 1:
                row = _after_left(row, size)
            case 2:
                row = bytes((a + b) & 255 for a, b in zip(row, above, strict=True))
            case 3:
                row = _after_average(row, above, size)
            case 4:
                row = _after_paeth(row, above, size)
        yield row
        above = row


def _after_left(row: bytes, size: int) -> bytes:
    out = bytearray(len(row))
    for channel in range(size):
        out[channel::size] = bytes(total & 255 for total in accumulate(row[channel::size]))
    return bytes(out)


def _after_average(row: bytes, above: bytes, size: int) -> bytes:
    out = bytearray(size) + row
    for at, up in enumerate(above):
        out[at + size] = (out[at + size] + (out[at] + up) // 2) & 255
    return bytes(out[size:])


def _after_paeth(row: bytes, above: bytes, size: int) -> bytes:
    out, over = bytearray(size) + row, bytes(size) + above
    for at in range(len(row)):
        left, up, corner = out[at], over[at + size], over[at]
        to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
        nearest = up if to_up <= to_corner else corner
        if to_left <= min(to_up, to_corner):
            nearest = left
        out[at + size] = (out[at + size] + nearest) & 255
    return bytes(out[size:])
