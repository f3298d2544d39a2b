"""The transcript as Markdown: what others wrote stays in its place, and does nothing in whatever shows it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from antiphon.transcripts import to_markdown
from antiphon.transcripts.foreign_markdown import harmless
from tests.cpu_growth import assert_grows_in_proportion
from tests.engine.journals import chunk
from tests.transcripts.hostile import TEXTS, bodies
from tests.transcripts.sample import BODIES, told


def tokens(document: str) -> list[Token]:
    """Of the most permissive reader of Markdown there is."""
    reader = MarkdownIt("commonmark", {"html": True, "maxNesting": 100}).enable(["table", "strikethrough"])
    reader.validateLink = lambda url: True  # type: ignore[method-assign]
    return reader.parse(document)


def check(token: Token) -> None:
    assert token.type not in ("html_block", "html_inline", "image"), token.content
    if token.type == "link_open":
        assert re.match("(https?://|mailto:)", str(token.attrGet("href")), re.I), token.attrs
    for child in token.children or ():
        check(child)


def headings(document: str) -> list[str]:
    found = tokens(document)
    return [
        found[at + 1].content
        for at, token in enumerate(found)
        if token.type == "heading_open" and token.tag in ("h1", "h2") and token.level == 0
    ]


def document(value: str) -> str:
    return "".join(to_markdown(told(bodies(value))))


def checked(value: str) -> None:
    written = document(value)
    for token in tokens(written):
        check(token)
    assert len(headings(written)) == 3, headings(written)  # the title, the user, the agent
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b\u2028\ufeff]", written)


@pytest.mark.parametrize("value", TEXTS, ids=range(len(TEXTS)))
def test_nothing_that_anybody_wrote_does_anything_or_leaves_its_place(value: str) -> None:
    checked(value)


@given(
    st.text(
        st.sampled_from("<>&\"'`[]()!|*_~#-=:; \n\t\\/ajs1.") | st.characters(exclude_categories=["Cs"]),
        max_size=50,
    )
)
def test_nor_does_anything_else(value: str) -> None:
    checked(value)


def test_what_is_harmless_stays_as_it_is() -> None:
    for value in (
        "Plain *words*, `code <b>` and a [link](https://x.example/a).",
        "```html\n<script>\n```\n\nand more",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "- a\n- b\n  - c",
    ):
        assert harmless(value) == value
    assert harmless("A List<String> and `List<String>`") == "A List&lt;String> and `List<String>`"
    assert harmless("# One\n\nTwo\n---\n") == "### One\n\nTwo\n"
    assert harmless("![a](https://x.example)") == "\\![a](https://x.example)"
    assert harmless("[a](javascript:x)") == "```\n[a](javascript:x)\n```"


def test_a_session_reads_as_it_went() -> None:
    written = "".join(to_markdown(told()))
    assert headings(written) == [
        "Why is the build red?",
        "Ada (22:13)",
        "claude (22:13)",
        "Grace (22:15)",
        "claude (22:15)",
    ]
    for words in (
        "- [x] Fix the encoding",
        "- [ ] Rewrite it in another language (cancelled)",
        "```diff\n",
        "[exit 1]",
    ):
        assert words in written


def test_the_time_of_a_transcript_grows_with_its_size_and_not_faster() -> None:
    def write(words: int) -> None:
        told_of = told([BODIES[0], chunk("m", "`<b>` word " * words)])
        assert len("".join(to_markdown(told_of))) > 10 * words

    assert_grows_in_proportion(write, 20_000, times=20)
