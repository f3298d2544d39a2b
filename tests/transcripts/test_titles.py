"""The title of a session whose agent sends none."""

from __future__ import annotations

import pytest

from antiphon.schema import v2
from antiphon.transcripts.titles import LONGEST, title_of_first_prompt, title_of_prompt
from tests.engine.journals import folded, update


def text(words: str) -> v2.TextContent:
    return v2.TextContent(text=words)


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("run the tests", "run the tests"),
        ("\n\n  ## Fix   the\tbuild  \nIt is red.", "Fix the build"),
        ("> - * quoted list", "quoted list"),
        ("---\n\nReal words", "Real words"),
        ("**Bold** `code` in __init__.py", "Bold code in __init__.py"),
        ("/tour", "/tour"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("\x1b[31mred", "red"),
        ("...", None),
        ("", None),
    ],
)
def test_a_title_is_the_first_line_with_words(prompt: str, title: str | None) -> None:
    assert title_of_prompt([text(prompt)]) == title


def test_a_long_line_is_cut_at_a_word_and_a_long_word_anywhere() -> None:
    line = "Please look at the failing integration tests, and then fix all"
    assert title_of_prompt([text(line)]) == "Please look at the failing integration tests, and then fix…"
    assert title_of_prompt([text("x" * 500)]) == "x" * (LONGEST - 1) + "…"
    assert len(title_of_prompt([text("word " * 10_000)]) or "") <= LONGEST


def test_content_without_words_is_passed_over() -> None:
    image = v2.ImageContent(data="aGk=", mime_type="image/png")
    assert title_of_prompt([image, text("What is this?")]) == "What is this?"
    assert title_of_prompt([image]) is None


def test_a_session_has_the_title_of_its_first_prompt_with_words() -> None:
    said = [
        update("agent_message", messageId="a", content=[{"type": "text", "text": "Welcome"}]),
        update("user_message", messageId="b", content=[{"type": "text", "text": "..."}]),
        update("user_message", messageId="c", content=[{"type": "text", "text": "Fix it"}]),
        update("user_message", messageId="d", content=[{"type": "text", "text": "Later"}]),
    ]
    assert title_of_first_prompt(folded(*said)) == "Fix it"
    assert title_of_first_prompt(folded(*said[:2])) is None
