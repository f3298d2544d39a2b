"""Markdown that streams: cut into complete blocks wherever the chunks end, and nothing lost."""

from __future__ import annotations

import io
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.style import Style

from antiphon.cli.output.console import rendered
from antiphon.transcripts.markdown_stream import LONGEST, MarkdownStream, Piece

LINES = st.sampled_from(
    [
        "",
        "text",
        "# title",
        "- item",
        "  more",
        "1. one",
        "```python",
        "```",
        "~~~",
        "> quote",
        "| a | b |",
        "    ",
    ]
)
TEXTS = st.lists(LINES, max_size=30).map("\n".join)


def written(chunks: list[str]) -> list[Piece]:
    writing = MarkdownStream()
    pieces = [piece for chunk in chunks for piece in writing.write(chunk)]
    return [*pieces, *writing.finish()]


@given(TEXTS, st.lists(st.integers(0, 200), max_size=20))
def test_chunks_make_no_difference_and_nothing_is_lost(text: str, cuts: list[int]) -> None:
    at = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    chunks = [text[begin:end] for begin, end in pairwise(at)]
    pieces = written(chunks)
    assert pieces == written([text])
    assert "".join(piece.text for piece in pieces).split() == text.split()


def test_a_block_is_complete_when_the_next_one_begins() -> None:
    writing = MarkdownStream()
    assert writing.write("# Title\n\nSome *text*") == []
    assert writing.write(" goes on.\n") == [Piece("# Title\n\n")]
    assert writing.write("\n- a list\n\n- is one block\n\n  with more\n") == [
        Piece("Some *text* goes on.\n\n")
    ]
    assert writing.finish() == [Piece("- a list\n\n- is one block\n\n  with more\n")]


def test_a_code_block_with_blank_lines_is_one_block() -> None:
    code = "```python\na = 1\n\nb = 2\n```\n"
    assert written([code, "\nAfter.\n"]) == [Piece(f"{code}\n"), Piece("After.\n")]


def test_a_block_without_an_end_is_printed_in_parts_that_read_as_one() -> None:
    lines = [f"line {n}" for n in range(3000)]
    first, *others = written([f"{line}\n" for line in ["```", *lines, "```"]])
    assert not first.joined
    assert all(piece.joined for piece in others)
    assert all(len(piece.text) < LONGEST + 100 for piece in (first, *others))
    console = Console(file=io.StringIO(), width=40)
    shown = [
        line.plain.strip() for piece in (first, *others) for line in rendered(console, piece.text, width=40)
    ]
    assert shown == lines
    sentences = ["One voice sings. "] * 2000
    assert "".join(piece.text for piece in written(sentences)) == "".join(sentences)


def test_what_is_shown_of_a_long_block_is_its_end() -> None:
    writing = MarkdownStream()
    writing.write("word " * 1000 + "end")
    tail = writing.tail(lines=5, width=20)
    assert len(tail) <= 100
    assert tail.endswith("word end")
    writing = MarkdownStream()
    writing.write("```\n" + "code\n" * 1000)
    assert writing.tail(lines=3, width=20) == "```\ncode\ncode\ncode\n"


def test_a_link_shows_its_address_and_is_none_to_the_terminal() -> None:
    lines = rendered(Console(width=80), "[bank](https://evil.example) <https://e.org>", width=80)
    assert [line.plain for line in lines] == ["bank (https://evil.example) https://e.org"]
    assert all(
        span.style.link is None for line in lines for span in line.spans if isinstance(span.style, Style)
    )
