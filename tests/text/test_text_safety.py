"""`text_safety`: nothing that is shown is obeyed by a terminal, turns text around or hides."""

from __future__ import annotations

import json
import re
import time
import unicodedata
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.text_safety import MARKS, SafeWriter, is_safe, printed_text, safe_line, safe_text
from tests.text.forbidden import forbidden

VECTORS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("vectors.json").read_text())
TRICKS = (
    "\x1b\x9b\x9d\x07\x08\r\n\t\x00\x85\u00ad\u034f\u0301\u061c\u1160\u200b\u200c\u200d\u200f\u2028\u202e\u2062\u2066"
    "\u3164\ufe01\ufe0f\ufeff\ud83d\U000e0041\U000e007f\U000e0101[]0;m31aK \\#1\u20e3"
    "\u0627\u0915\u094d\u845b\U0001f469\U0001f3fd\U0001f3f4❤é"
)
TEXTS = st.text(st.characters(exclude_categories=()), max_size=80) | st.text(TRICKS, max_size=80)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vectors(vector: dict[str, Any]) -> None:
    text = vector["text"]
    assert safe_text(text) == vector["safe"]
    assert safe_line(text) == vector["line"]
    assert printed_text(text) == vector["printed"]


@given(TEXTS)
def test_safe_text_holds_nothing_forbidden_and_stays_as_it_is(text: str) -> None:
    for shown in (safe_text(text), printed_text(text), safe_line(text), safe_line(text, limit=9)):
        assert forbidden(shown) == []
        assert is_safe(shown), (ascii(shown), ascii(safe_text(shown)))
        assert not re.search(f"[\u0300-\u036f]{{{MARKS + 1}}}", shown)
        shown.encode()


@given(TEXTS)
def test_safe_text_drops_nothing_that_was_visible(text: str) -> None:
    """What is left is the text itself, with names in place of hidden characters."""
    seen = [
        char for char in text if safe_text(char) == char and not unicodedata.category(char).startswith("M")
    ]
    shown = iter(safe_text(text))
    assert all(char in shown for char in seen)


@given(TEXTS, st.lists(st.integers(0, 80)))
def test_a_writer_gives_safe_pieces_wherever_the_text_is_cut(text: str, cuts: list[int]) -> None:
    for printed in (False, True):
        writer = SafeWriter(printed=printed)
        edges = [0, *sorted(cuts), len(text)]
        pieces = [writer.write(text[a:b]) for a, b in pairwise(edges)]
        whole = "".join(pieces) + writer.finish()
        assert forbidden(whole) == []


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_writer_given_single_characters_shows_what_safe_text_shows(vector: dict[str, Any]) -> None:
    writer = SafeWriter()
    shown = "".join(map(writer.write, vector["text"])) + writer.finish()
    counted = re.compile(
        r"⟨\d+ more \w+⟩|⟨U\+[0-9A-F]+⟩|[\u0301\u0e47]"
    )  # a row is cut into single characters
    assert counted.sub("", shown) == counted.sub("", vector["safe"])


def test_a_writer_drops_an_escape_sequence_that_comes_in_pieces() -> None:
    writer = SafeWriter(printed=True)
    shown = "".join(map(writer.write, "a\x1b[31mb\x1b]52;c;eA==\x07c\x1b[0md\r\ne\rf")) + writer.finish()
    assert shown == "abcd\ne\nf"


SMALL = 2_000
LONG = 10 * SMALL


@pytest.mark.parametrize(
    "made",
    [
        lambda n: "\x1b]" + "\x9d" * n + "\x1b",
        lambda n: "\x1b[" * n,
        lambda n: "\x1b[" + "0" * n,
        lambda n: "\x9b0" * n,
        lambda n: "\x1b]0;" * n,
        lambda n: "\u200d" * n,
        lambda n: "\U0001f469\u200d" * n,
        lambda n: "a\u0301" * n,
        lambda n: "\u0301" * n,
        lambda n: "\r" * n,
        lambda n: "\ufe0f\u0627\u200c" * n,
        lambda n: "─" * n,
    ],
    ids=lambda made: ascii(made(3)[:6]),
)
def test_a_long_text_takes_time_in_proportion(made: Callable[[int], str]) -> None:
    """Ten times the text is not a hundred times the work."""
    for function in (safe_text, printed_text, lambda text: SafeWriter(printed=True).write(text)):
        (small, _), *_ = sorted(timed(function, made(SMALL)) for _ in range(3))
        spent, shown = timed(function, made(LONG))
        assert spent < 50 * max(small, 0.001)
        assert forbidden(shown) == []


def timed(function: Callable[[str], str], text: str) -> tuple[float, str]:
    """The CPU time that it takes, and what it gives."""
    before = time.thread_time()
    given = function(text)
    return time.thread_time() - before, given


def test_a_line_reads_little_of_a_long_text() -> None:
    assert len(safe_line("x" * 10_000_000)) == 400
    assert safe_line("a" + " " * 10_000 + "; rm -rf ~").endswith("…")
