"""Recordings as animated PNGs: one palette, and of each frame only the pixels that changed."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from tools.png import INDEXED, SIGNATURE, Picture, chunk, header

MOST_COLOURS = 255
"""One of the 256 entries of a palette stands for a pixel that stays as it is."""
EXACT_COLOURS = 160
"""The most frequent colours are those of areas, and stay as they are. The others are edges of letters."""
UNCHANGED = 0
"""Its place in the palette. It is transparent, also in the first frame."""


class Frame(Struct, frozen=True):
    picture: Picture
    milliseconds: int
    """How long it is shown."""


class Box(Struct, frozen=True):
    left: int
    top: int
    width: int
    height: int


def encode(frames: Sequence[Frame], *, plays: int = 0) -> bytes:
    """Return an animated PNG of frames of one size.

    plays: how often it is played; 0 is for ever
    """
    frames = without_repeats(frames)
    width, height = frames[0].picture.width, frames[0].picture.height
    palette = Palette.of(frame.picture for frame in frames)
    parts = [header(width, height, INDEXED), *palette.chunks()]
    parts.append(chunk(b"acTL", struct.pack("!II", len(frames), plays)))
    number, before = 0, bytes(width * height)
    for frame in frames:
        indices = palette.indices(frame.picture)
        box = changed(before, indices, width) if number else Box(0, 0, width, height)
        control = (number, box.width, box.height, box.left, box.top, frame.milliseconds, 1000, 0, 1)
        parts.append(chunk(b"fcTL", struct.pack("!5I2H2B", *control)))
        data = zlib.compress(difference(before, indices, width, box), 9)
        parts.append(chunk(b"fdAT", struct.pack("!I", number + 1) + data) if number else chunk(b"IDAT", data))
        number += 2 if number else 1
        before = indices
    return SIGNATURE + b"".join([*parts, chunk(b"IEND", b"")])


def without_repeats(frames: Iterable[Frame]) -> list[Frame]:
    """Return the frames with each run of equal pictures made one."""
    kept: list[Frame] = []
    for frame in frames:
        if kept and kept[-1].picture == frame.picture:
            kept[-1] = Frame(frame.picture, kept[-1].milliseconds + frame.milliseconds)
        else:
            kept.append(frame)
    return kept


class Palette:
    def __init__(self, colours: list[int], indices: dict[int, int]) -> None:
        self._colours = colours
        self._indices = indices

    @classmethod
    def of(cls, pictures: Iterable[Picture]) -> Palette:
        """Choose the most frequent colours, and of the others some that are far from each other. A colour
        that is not chosen becomes the nearest one that is."""
        counts: Counter[int] = Counter()
        for picture in pictures:
            counts.update(memoryview(picture.pixels).cast("I"))
        ranked = [colour for colour, _ in counts.most_common()]
        distance = 0
        while len(chosen := _spread(ranked, distance)) > MOST_COLOURS:
            distance += 2
        places = {colour: place for place, colour in enumerate(chosen, 1)}
        for colour in ranked:
            if colour not in places:
                places[colour] = places[min(chosen, key=lambda known: _distance(known, colour))]
        return cls(chosen, places)

    def indices(self, picture: Picture) -> bytes:
        return bytes(map(self._indices.__getitem__, memoryview(picture.pixels).cast("I")))

    def chunks(self) -> list[bytes]:
        entries = [bytes(4), *(struct.pack("=I", colour) for colour in self._colours)]
        return [
            chunk(b"PLTE", b"".join(entry[:3] for entry in entries)),
            chunk(b"tRNS", bytes(entry[3] for entry in entries)),
        ]


def _spread(ranked: Sequence[int], distance: int) -> list[int]:
    """Return the colours, most frequent first, without the rare ones that are near one before them."""
    chosen = list(ranked[:EXACT_COLOURS])
    for colour in ranked[EXACT_COLOURS:]:
        if all(_distance(colour, known) > distance for known in chosen):
            chosen.append(colour)
            if len(chosen) > MOST_COLOURS:
                break
    return chosen


def _distance(one: int, other: int) -> int:
    """Return by how much two colours differ in the channel in which they differ most."""
    pairs = zip(struct.pack("=I", one), struct.pack("=I", other), strict=True)
    return max(abs(a - b) for a, b in pairs)


def changed(before: bytes, after: bytes, width: int) -> Box:
    """Return the smallest rectangle with every pixel that differs, of two pictures that are not equal."""
    rows = [at for at in range(0, len(after), width) if before[at : at + width] != after[at : at + width]]
    if not rows:
        return Box(0, 0, 1, 1)  # colours that became one in the palette
    left, right = width, 0
    for at in rows:
        columns = [
            column
            for column, (a, b) in enumerate(zip(before[at : at + width], after[at : at + width], strict=True))
            if a != b
        ]
        left, right = min(left, columns[0]), max(right, columns[-1])
    return Box(left, rows[0] // width, right - left + 1, (rows[-1] - rows[0]) // width + 1)


def difference(before: bytes, after: bytes, width: int, box: Box) -> bytes:
    """Return the rows of a rectangle, each after its filter type, with the pixels that stay as they are left
    out."""
    rows = []
    for line in range(box.top, box.top + box.height):
        at = line * width + box.left
        old, new = before[at : at + box.width], after[at : at + box.width]
        row = bytes(UNCHANGED if a == b else b for a, b in zip(old, new, strict=True))
        rows.append(b"\0" + row)
    return b"".join(rows)
