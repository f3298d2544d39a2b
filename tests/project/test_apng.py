"""A recording shows the frames that it was made from: it is decoded here by the rules of the format."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterator

import pytest
from tools.apng import MOST_COLOURS, Frame, encode
from tools.png import INDEXED, RGB, RGBA, SIGNATURE, Picture, chunk, chunks, header, read

WIDTH, HEIGHT = 40, 30
WHITE, RED, BLUE = b"\xff\xff\xff\xff", b"\xff\x00\x00\xff", b"\x00\x00\xff\xff"


def painted(*boxes: tuple[int, int, int, int, bytes]) -> Picture:
    """Return a white picture with rectangles: left, top, width, height and colour."""
    pixels = bytearray(WHITE * WIDTH * HEIGHT)
    for left, top, width, height, colour in boxes:
        for row in range(top, top + height):
            at = 4 * (row * WIDTH + left)
            pixels[at : at + 4 * width] = colour * width
    return Picture(WIDTH, HEIGHT, bytes(pixels))


def decoded(data: bytes) -> Iterator[Frame]:
    """Yield the frames of a recording."""
    control: tuple[int, ...] = ()
    canvas, palette, opacity, numbers = bytearray(), b"", b"", []
    for name, body in chunks(data):
        if name == b"IHDR":
            width, height, depth, colour = struct.unpack("!IIBB", body[:10])
            assert (depth, colour) == (8, INDEXED)
            canvas = bytearray(4 * width * height)
        elif name == b"PLTE":
            palette = body
        elif name == b"tRNS":
            opacity = body
        elif name == b"fcTL":
            control = struct.unpack("!5I2H2B", body)
            numbers.append(control[0])
        elif name in (b"IDAT", b"fdAT"):
            if name == b"fdAT":
                numbers.append(struct.unpack("!I", body[:4])[0])
                body = body[4:]
            _, box_width, box_height, left, top, delay, per_second, dispose, blend = control
            assert (per_second, dispose, blend) == (1000, 0, 1)
            rows = zlib.decompress(body)
            assert len(rows) == box_height * (box_width + 1)
            for y in range(box_height):
                row = rows[y * (box_width + 1) : (y + 1) * (box_width + 1)]
                assert row[0] == 0
                for x, index in enumerate(row[1:]):
                    if opacity[index]:
                        at = 4 * ((top + y) * width + left + x)
                        canvas[at : at + 4] = (*palette[3 * index : 3 * index + 3], opacity[index])
            yield Frame(Picture(width, height, bytes(canvas)), delay)
    assert numbers == list(range(len(numbers)))


def test_a_recording_shows_its_frames_for_as_long_as_they_were_shown() -> None:
    frames = [
        Frame(painted(), 500),
        Frame(painted((3, 4, 10, 5, RED)), 80),
        Frame(painted((3, 4, 10, 5, RED), (39, 29, 1, 1, BLUE)), 80),
        Frame(painted((0, 0, 1, 1, BLUE)), 1300),
    ]
    assert list(decoded(encode(frames))) == frames


def test_equal_frames_become_one() -> None:
    frames = [Frame(painted(), 100), Frame(painted(), 50), Frame(painted((1, 1, 1, 1, RED)), 70)]
    assert list(decoded(encode(frames))) == [Frame(painted(), 150), frames[2]]


def test_a_frame_holds_only_the_rectangle_that_changed() -> None:
    data = encode([Frame(painted(), 100), Frame(painted((7, 9, 3, 2, RED)), 100)])
    second = [body for name, body in chunks(data) if name == b"fcTL"][1]
    assert struct.unpack("!4I", second[4:20]) == (3, 2, 7, 9)


def test_a_recording_counts_its_frames_and_says_how_often_it_is_played() -> None:
    data = encode([Frame(painted(), 100), Frame(painted((7, 9, 3, 2, RED)), 100)], plays=3)
    assert dict(chunks(data))[b"acTL"] == struct.pack("!II", 2, 3)


def test_of_too_many_colours_each_pixel_gets_one_that_is_near() -> None:
    colours = [bytes((n % 256, n // 256 * 60, 0, 255)) for n in range(1000)]
    pixels = b"".join(colours) + WHITE * (WIDTH * HEIGHT - len(colours))
    [frame] = decoded(encode([Frame(Picture(WIDTH, HEIGHT, pixels), 100)]))
    shown = frame.picture.pixels
    assert len({shown[at : at + 4] for at in range(0, len(shown), 4)}) <= MOST_COLOURS
    assert max(abs(a - b) for a, b in zip(shown, pixels, strict=True)) <= 8
    assert shown.endswith(WHITE)


def filtered(rows: list[bytes], size: int, kinds: list[int]) -> bytes:
    """Return rows as the filters of PNG make them."""
    packed, above = b"", bytes(len(rows[0]))
    for row, kind in zip(rows, kinds, strict=True):
        packed += bytes([kind])
        for at, value in enumerate(row):
            left = row[at - size] if at >= size else 0
            corner = above[at - size] if at >= size else 0
            up = above[at]
            near = min((left, up, corner), key=lambda each: abs(left + up - corner - each))
            packed += bytes([(value - (0, left, up, (left + up) // 2, near)[kind]) % 256])
        above = row
    return packed


@pytest.mark.parametrize(("colour", "size"), [(RGB, 3), (RGBA, 4)])
def test_a_picture_is_read_whatever_filters_it_was_written_with(colour: int, size: int) -> None:
    chance = random.Random(1)
    rows = [chance.randbytes(7 * size) for _ in range(10)]
    data = zlib.compress(filtered(rows, size, [0, 1, 2, 3, 4] * 2))
    file = SIGNATURE + header(7, 10, colour) + chunk(b"IDAT", data[:50]) + chunk(b"IDAT", data[50:])
    plain = b"".join(rows)
    pixels = [plain[at : at + size] for at in range(0, len(plain), size)]
    assert read(file) == Picture(7, 10, b"".join(pixel + b"\xff" * (4 - size) for pixel in pixels))


def test_what_is_no_picture_of_chromium_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a PNG file, got b'GIF89a'"):
        read(b"GIF89a")
    with pytest.raises(ValueError, match="got 8 bits of colour type 3"):
        read(SIGNATURE + header(1, 1, INDEXED))
