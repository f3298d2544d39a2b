"""A QR code has the modules that the standard asks for, and is drawn so that a camera reads it."""

from __future__ import annotations

import hashlib

import pytest

from antiphon.cli.output.qr_code import QUIET, encode, render

TEXT = "http://127.0.0.1:8642/#login=" + "aB3_" * 300
SMALLEST = """\
#######..#.#..#######
#.....#.#...#.#.....#
#.###.#..#....#.###.#
#.###.#.#.##..#.###.#
#.###.#..##...#.###.#
#.....#.###.#.#.....#
#######.#.#.#.#######
.........#..#........
#####.####..##.#.#.#.
.###...#.###....#####
#..#######..##.#..##.
###..#...##.....###..
.##.#.##...#.##.##..#
........#......####.#
#######.##..#.##..##.
#.....#..##.#...####.
#.###.#.#...###.##...
#.###.#.#.##.#.##.##.
#.###.#.###.####..#..
#.....#.#.#....##.#..
#######.##.#..####.#.
"""
"""The code for the first 17 characters, as another encoder (segno 1.6) makes it."""


def drawn(text: str) -> str:
    return "".join("".join(".#"[dark] for dark in row) + "\n" for row in encode(text))


def test_the_smallest_code_is_that_of_another_encoder() -> None:
    assert drawn(TEXT[:17]) == SMALLEST


@pytest.mark.parametrize(
    ("length", "version", "digest"),
    [
        (154, 7, "8009036023da83a5fae4e253f92e6df8211ef6315ff650d5c89ea626a9288233"),
        (271, 10, "96b8da542f29a760968f7262d613a3faaaa344abbd13a26bd8ab3b5953daffbd"),
        (858, 20, "f992db74a9920db714b0057aacc4f7b8d3b5d06f8aa704bf5bcd839c44dddb28"),
    ],
)
def test_larger_codes_are_those_of_another_encoder(length: int, version: int, digest: str) -> None:
    modules = encode(TEXT[:length])
    assert len(modules) == 17 + 4 * version
    rows = "\n".join("".join("01"[dark] for dark in row) for row in modules)
    assert hashlib.sha256(rows.encode()).hexdigest() == digest


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="859 bytes"):
        encode(TEXT[:859])


def test_a_drawn_code_has_its_quiet_zone_and_sets_both_colours() -> None:
    modules = encode("x")
    lines = render(modules).splitlines()
    assert all(line.startswith("\x1b[38;5;16;48;5;231m") and line.endswith("\x1b[0m") for line in lines)
    cells = [line.removeprefix("\x1b[38;5;16;48;5;231m").removesuffix("\x1b[0m") for line in lines]
    halves = {" ": (False, False), "▀": (True, False), "▄": (False, True), "█": (True, True)}
    rows = [[halves[cell][half] for cell in line] for line in cells for half in (0, 1)]
    size = len(modules)
    assert [row[QUIET : QUIET + size] for row in rows[QUIET : QUIET + size]] == modules
    around = [row for at, row in enumerate(rows) if not QUIET <= at < QUIET + size]
    assert len(around) >= 2 * QUIET
    assert not any(map(any, around))
    assert not any(any(row[:QUIET]) or any(row[-QUIET:]) for row in rows)
