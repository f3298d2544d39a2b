"""Terminal bytes as safe text: any cut gives the same, and nothing of a control sequence survives."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.bridge.downgrade import terminal_text
from antiphon.bridge.downgrade.terminal_text import OMITTED, TerminalText
from tests.requirements.marks import requirement

CASES = {
    "plain": ("one\ntwo", "one\ntwo"),
    "colours": ("\x1b[1;31mred\x1b[0m", "red"),
    "8-bit CSI": ("\x9b31mred", "red"),
    "title, ended by BEL": ("\x1b]0;title\x07text", "text"),
    "title, ended by ST": ("\x1b]0;title\x1b\\text", "text"),
    "hyperlink": ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
    "a string cut off by another sequence": ("\x1b]0;title\x1b[31mtext", "text"),
    "device control": ("\x1bPq#0;2\x1b\\text", "text"),
    "charset": ("\x1b(Btext\x1b=", "text"),
    "CRLF": ("one\r\ntwo\r\n", "one\ntwo\n"),
    "progress": ("10%\r20%\r100%\n", "100%\n"),
    "partial overwrite": ("abcdef\rXY", "XYcdef"),
    "erase in line": ("abcdef\r\x1b[KXY", "XY"),
    "backspace": ("abc\b\bX", "aXc"),
    "bell and other controls": ("a\x07b\x00c\x7f", "abc"),
    "tab": ("a\tb", "a\tb"),
    "vertical tab": ("ab\r\x0bc", "cb"),
    "a sequence never finished": ("text\x1b[3", "text"),
    "a sequence that is none": ("a\x1b[\x01b", "a[b"),
}


@requirement("TERMV2-09")
@pytest.mark.parametrize("case", CASES)
def test_text_is_sanitized(case: str) -> None:
    given, expected = CASES[case]
    shown = TerminalText()
    shown.feed(given.encode())
    assert shown.text == expected


@requirement("TERMV2-05")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_parser_state_is_kept_across_chunks(case: str, size: int) -> None:
    given, expected = CASES[case]
    data = given.encode()
    shown = TerminalText()
    for start in range(0, len(data), size):
        shown.feed(data[start : start + size])
    if case != "a sequence that is none":
        assert shown.text == expected


@requirement("TERMV2-09")
@given(
    st.lists(st.sampled_from([case for case, _ in CASES.values()]) | st.text(max_size=5), max_size=6),
    st.lists(st.integers(0, 60), max_size=6),
)
def test_no_control_character_survives(parts: list[str], cuts: list[int]) -> None:
    data = "".join(parts).encode("utf-8", "replace")
    shown = TerminalText()
    edges = [0, *sorted(cuts), len(data)]
    for start, end in pairwise(edges):
        shown.feed(data[start:end])
    assert not [
        char for char in shown.text if char not in "\n\t" and (ord(char) < 32 or 127 <= ord(char) < 160)
    ]


def test_bytes_that_are_no_utf_8_are_replaced() -> None:
    shown = TerminalText()
    shown.feed(b"a\xffb")
    assert shown.text == "a�b"


@pytest.mark.parametrize("line", ["x" * 99 + "\n", "x" * 100])
def test_only_the_last_of_endless_output_is_kept(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_text, "LIMIT", 1000)
    shown = TerminalText()
    for _ in range(100):
        shown.feed(line.encode())
        assert len(shown.text) <= 1000 + len(OMITTED)
    shown.feed(b"the end")
    assert shown.text.startswith(OMITTED)
    assert shown.text.endswith("the end")
    assert len("".join(shown._lines) + "".join(shown._line)) <= 2100
