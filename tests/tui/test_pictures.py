"""Pictures and coloured code: what is drawn, and what hostile input gets."""

from __future__ import annotations

import base64
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import Color

from antiphon.schema import v2
from antiphon.tui.text.code_colours import coloured_lines, language_of
from antiphon.tui.text.markdown import Page
from antiphon.tui.text.palette import DARK
from antiphon.tui.text.patches import patch_lines
from antiphon.tui.text.pictures import COLUMNS, ROWS, picture_lines
from antiphon.tui.text.png import Unreadable, read_png
from tests.text.forbidden import forbidden

PAGE = Page(80, DARK)
RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(
    width: int, height: int, packed: bytes, *, colours: int = 2, depth: int = 8, palette: bytes = b""
) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", packed), chunk(b"IEND", b"")]
    if palette:
        parts.insert(1, chunk(b"PLTE", palette))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def filtered(rows: list[bytes], kind: int, step: int) -> bytes:
    """The rows as an encoder writes them."""
    made, above = b"", bytes(len(rows[0]))
    for row in rows:
        line = bytearray()
        for at, value in enumerate(row):
            left, corner = (row[at - step], above[at - step]) if at >= step else (0, 0)
            up = above[at]
            guess = left + up - corner
            near = min((left, up, corner), key=lambda each: abs(guess - each))
            line.append((value - [0, left, up, (left + up) // 2, near][kind]) & 255)
        made += bytes([kind]) + bytes(line)
        above = row
    return made


@given(st.integers(0, 4), st.integers(1, 4), st.integers(1, 6), st.data())
def test_pixels_are_read_whatever_their_filter(kind: int, step: int, width: int, data: st.DataObject) -> None:
    row = st.binary(min_size=width * step, max_size=width * step)
    rows = data.draw(st.lists(row, min_size=1, max_size=5))
    colours = {1: 0, 2: 4, 3: 2, 4: 6}[step]
    made = png(width, len(rows), zlib.compress(filtered(rows, kind, step)), colours=colours)
    assert read_png(made).rows == rows


def test_a_picture_is_drawn_as_half_blocks() -> None:
    rows = [bytes([*RED, *GREEN]), bytes([*BLUE, *WHITE])]
    data = base64.b64encode(png(2, 2, zlib.compress(filtered(rows, 0, 3)))).decode()
    (line,) = picture_lines([v2.ImageContent(data=data, mime_type="image/png")], PAGE)
    assert line.text == "▀▀"
    colours = [(part.style.color, part.style.bgcolor) for part in line if part.style is not None]
    assert colours == [
        (Color.parse("#ff0000"), Color.parse("#0000ff")),
        (Color.parse("#00ff00"), Color.parse("#ffffff")),
    ]


def test_a_large_picture_is_scaled_and_colours_come_from_its_palette() -> None:
    rows = [bytes([0] * 200)] * 300
    data = base64.b64encode(
        png(200, 300, zlib.compress(filtered(rows, 2, 1)), colours=3, palette=bytes(GREEN))
    ).decode()
    lines = picture_lines([v2.ImageContent(data=data, mime_type="image/png")] * 9, PAGE)
    assert len([line for line in lines if line.text]) == 4 * ROWS  # the first four
    assert all(line.cell_length <= COLUMNS for line in lines)
    style = next(iter(lines[0])).style
    assert style is not None
    assert style.color == Color.parse("#00ff00")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GIF89a",
        b"\x89PNG\r\n\x1a\n",
        png(1, 1, b"no zlib"),
        png(9, 9, zlib.compress(b"short")),
        png(2, 1, zlib.compress(b"\x09" + bytes(6))),
        png(1, 1, zlib.compress(bytes(4)), depth=16),
        png(1 << 31, 1, b""),
        png(4096, 4096, b""),
        png(0, 5, b""),
    ],
)
def test_what_is_no_small_picture_is_not_drawn(data: bytes) -> None:
    with pytest.raises(Unreadable):
        read_png(data)
    image = v2.ImageContent(data=base64.b64encode(data).decode(), mime_type="image/png")
    assert picture_lines([image], PAGE) == []


def test_a_picture_that_unpacks_to_more_than_it_says_is_read_as_far_as_it_says() -> None:
    assert read_png(png(2, 1, zlib.compress(bytes(50_000_000), 9))).rows == [bytes(6)]


def test_a_picture_that_takes_too_long_is_given_up() -> None:
    rows = zlib.compress(filtered([bytes(3000)] * 9, 4, 3))
    with pytest.raises(Unreadable):
        read_png(png(1000, 9, rows), seconds=0.0)


def test_data_that_is_no_base64_is_not_drawn() -> None:
    assert picture_lines([v2.ImageContent(data="%%%", mime_type="image/png")], PAGE) == []


# --- code --------------------------------------------------------------------------------------

PATCH = """--- a/songs/song.py
+++ b/songs/song.py
@@ -1,3 +1,3 @@
 def sing(voice):
-    return "la"  # soft
+    return "lu"  # loud\u202e
"""


def colours(patch: str) -> dict[str, tuple[str | None, str | None]]:
    """The colours of each piece of text."""
    return {
        part.text.strip(): (
            None if part.style is None or part.style.color is None else part.style.color.name,
            None if part.style is None or part.style.bgcolor is None else part.style.bgcolor.name,
        )
        for line in patch_lines(patch, "/", PAGE, limit=100)
        for part in line
        if part.text.strip()
    }


def test_code_in_a_patch_has_the_colours_of_its_language_over_those_of_the_change() -> None:
    shown = colours(PATCH)
    assert shown["def"] == (DARK.keyword, None)
    assert shown["sing"] == (DARK.name, None)
    assert shown["la"] == (DARK.good, DARK.remove)
    assert shown["lu"] == (DARK.good, DARK.add)
    assert shown["-"] == (DARK.remove_ink, DARK.remove)
    assert shown["# loud⟨U+202E⟩"] == (DARK.soft, DARK.add)


def test_an_open_quote_on_the_old_side_does_not_colour_the_new_one() -> None:
    patch = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-'''open\n+value = 1\n pass\n"
    assert colours(patch)["1"] == (DARK.wait, DARK.add)
    assert colours(patch)["pass"] == (DARK.keyword, None)


def test_a_file_of_no_known_language_is_not_coloured() -> None:
    assert [language_of(path) for path in ("b/a.PY", "Makefile", "x.unknown", "py", "")] == [
        "python", "make", None, None, None,
    ]  # fmt: skip
    assert set(colours(PATCH.replace(".py", ".txt")).values()) >= {(DARK.remove_ink, DARK.remove)}
    assert DARK.keyword not in {colour for colour, _ in colours(PATCH.replace(".py", ".txt")).values()}


def test_colouring_stops_at_its_bounds() -> None:
    lines = ["x = 1"] * 50_000
    found = coloured_lines(lines, "python", PAGE.syntax, seconds=60.0)
    assert found[0]
    assert not found[-1]
    assert not any(coloured_lines(lines, "python", PAGE.syntax, seconds=-1.0))
    assert coloured_lines(["x = " + "1" * 1_000, "y = 2"], "python", PAGE.syntax)[0] == []


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=60))
def test_code_is_shown_whole_and_harmless_whatever_it_is(code: str) -> None:
    code = code.replace("\r", " ").replace("\n", " ")
    patch = f"--- a/x.py\n+++ b/x.py\n@@ -1,1 +1,1 @@\n+{code}\n"
    for line in patch_lines(patch, "/", PAGE, limit=9):
        assert forbidden(line.text) == []
        assert line.cell_length <= PAGE.width
