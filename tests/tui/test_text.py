"""The parts that lay text out, by themselves: plain text, colours of terminals, Markdown, patches."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color

from antiphon.schema import v2
from antiphon.text_safety import typed_text
from antiphon.tui.screens.sessions import _lines as session_lines
from antiphon.tui.text.markdown import SHOWN, MarkdownText, Page
from antiphon.tui.text.palette import DARK, LIGHT, Palette
from antiphon.tui.text.patches import patch_lines
from antiphon.tui.text.plain import SafeLines, folder_line, plain, plain_line, plain_output
from antiphon.tui.text.terminal_colours import coloured
from tests.text.forbidden import forbidden
from tests.transcripts.hostile import TEXTS

PAGE = Page(40, DARK)


def lines(text: str) -> list[str]:
    prose = MarkdownText()
    prose.write(text)
    return [line.text.rstrip() for line in prose.lines(PAGE)]


def patch_texts(patch: str) -> list[str]:
    return [line.text.rstrip() for line in patch_lines(patch, "/", PAGE, limit=1_000)]


def test_text_shows_what_is_in_it_and_does_nothing() -> None:
    assert plain("a\x1b[2Jb\u202ec\n\tx") == "a⟨U+001B⟩[2Jb⟨U+202E⟩c\n    x"
    assert plain_output("a\x1b[2J\x1b]0;t\x07b\u202ec\tx") == "ab⟨U+202E⟩c x"
    assert plain("pass\u200bword") == "pass⟨U+200B⟩word"
    assert plain("a" + "\u0301" * 500) == "a" + "\u0301" * 4 + "⟨496 more marks⟩"
    assert plain_line("one\ntwo\x07") == "one two⟨U+0007⟩"
    assert lines("one &#x202e;two &zwj; three") == ["one ⟨U+202E⟩two ⟨U+200D⟩ three"]
    assert len(plain_line("x" * 10_000_000)) == 400
    assert typed_text("a\r\nb\x1b[31mc\x00") == "a\nb[31mc"


def test_a_folder_in_the_home_of_the_user_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    shown = [folder_line(path) for path in ("/home/me", "/home/me/site", "/home/mean", "/srv\n")]
    assert shown == ["~", "~/site", "/home/mean", "/srv"]


def test_the_last_filter_keeps_the_cells_of_a_line() -> None:
    line = [Segment("a\x1b[31mb\u202ec"), Segment("\u2066d\u3164")]
    shown = "".join(segment.text for segment in SafeLines().apply(line, Color(0, 0, 0)))
    assert forbidden(shown) == []
    assert cell_len(shown) == sum(cell_len(segment.text) for segment in line)


@given(st.text(st.characters(exclude_categories=())) | st.sampled_from(TEXTS))
def test_whatever_a_text_is_its_lines_are_as_wide_as_counted(text: str) -> None:
    for line in [*lines(text), *(line.plain for line in coloured(text, DARK.ansi))]:
        assert forbidden(line) == []
    prose = MarkdownText()
    prose.write(text)
    assert all(cell_len(line.text) <= PAGE.width for line in prose.lines(PAGE))


@given(st.sampled_from(TEXTS), st.integers(1, 9))
def test_markdown_is_the_same_however_it_comes(text: str, size: int) -> None:
    prose = MarkdownText()
    for at in range(0, len(text), size):
        prose.write(text[at : at + size])
    assert [line.text.rstrip() for line in prose.lines(PAGE)] == lines(text)


def test_markdown_is_laid_out() -> None:
    shown = lines("# One\n\n- a **b**\n\n> q\n\n[x](https://e.org) ![i](https://e.org/i.png) <b>\n")
    assert shown == ["One", "", " • a b", "", "│ q", "", "x (https://e.org) i", "(https://e.org/i.png) <b>"]


def test_a_message_that_is_too_long_is_cut_and_says_so() -> None:
    prose = MarkdownText()
    for _ in range(100):
        prose.write("word " * 20_000)
    shown = prose.lines(PAGE)
    assert " ".join(line.text.strip() for line in shown[-2:]).startswith(f"⋮ {10_000_000 - SHOWN:,} more")
    assert len(shown) < 2_000


def test_of_a_terminal_colours_are_heard_and_nothing_else() -> None:
    output = (
        "\x1b[1;31mred\x1b[0m \x1b[38;5;4mb\x1b[38;2;1;2;3mo\x1b[2J\x1b]52;c;eA==\x07 10%\r\x1b[32m20%\r\n"
    )
    first, last = coloured(output, DARK.ansi)
    assert first.plain == "20%"
    assert last.plain == ""
    (line,) = coloured("\x1b[1;31mred\x1b[0m plain\x1b[99999999m!", DARK.ansi)
    assert line.plain == "red plain!"
    assert str(line.spans[0].style) == f"bold {DARK.ansi[1]}"


def test_a_patch_is_cut_and_says_so() -> None:
    patch = "--- a/x\n+++ b/x\n@@ -7 +7 @@ sing\n" + "-a\n+b\n" * 500_000
    shown = [line.text.rstrip() for line in patch_lines(patch, "/", PAGE, limit=5)]
    assert shown[0] == "x  +500,000 −500,000"
    assert shown[1:5] == ["@@ -7 +7 @@ sing", "-a", "+b", "-a"]
    assert shown[5] == "⋮ 999,997 more lines"


def test_what_stands_unchanged_between_changes_is_folded() -> None:
    def numbers(first: int, last: int) -> str:
        return "".join(f" {number}\n" for number in range(first, last + 1))

    body = numbers(1, 40) + "-a\n+b\n" + numbers(42, 51) + "-c\n" + numbers(53, 64) + "-d\n" + numbers(66, 80)
    shown = patch_texts(f"--- a/x\n+++ b/x\n@@ -1,80 +1,78 @@\n{body}")
    assert shown[1:] == [
        "… 37 lines", " 38", " 39", " 40", "-a", "+b",
        *(f" {number}" for number in range(42, 52)), "-c",  # four of them between are not worth it
        " 53", " 54", " 55", "… 6 lines", " 62", " 63", " 64", "-d", " 66", " 67", " 68", "… 12 lines",
    ]  # fmt: skip


def test_a_line_of_a_patch_that_looks_like_a_header_is_shown() -> None:
    shown = patch_texts("--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,2 @@\n--- songs\n+++ voices\n select\n")
    assert shown[1:] == ["--- songs", "+++ voices", " select"]


@pytest.mark.parametrize(("palette", "which"), [(LIGHT, 0), (DARK, 1)])
def test_the_colours_are_those_of_the_page(palette: Palette, which: int) -> None:
    tokens = (Path(__file__).parents[2] / "src/antiphon/web/static/css/tokens.css").read_text()
    named = re.findall(r"--([a-z-]+): light-dark\((#\w+), (#\w+)\)", tokens.partition("@media")[0])
    page = {name: found[which] for name, *found in named}
    for name in ("accent", "ink", "paper", "good", "bad", "wait"):
        assert getattr(palette, name) == page[name], name


@pytest.mark.parametrize(
    ("fault", "shown"),
    [
        ({"kind": "damaged", "found": "x"}, "damaged"),
        ({"kind": "newer", "found": "x"}, "written by a newer version"),
        ({"kind": ["odd"]}, "stored"),
        (None, "stored"),
    ],
)
def test_a_session_that_cannot_be_opened_is_marked_in_the_list(fault: object, shown: str) -> None:
    meta = {"antiphon": {"agent": "a", "fault": fault}}
    info = v2.SessionInfo(session_id=v2.SessionId("s"), cwd="/w", meta=meta)
    assert shown in session_lines(info).plain
