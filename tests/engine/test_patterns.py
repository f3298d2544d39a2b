"""Patterns mean what ECMA-262 says, and cost no more than their length times the text's."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engine.forms.patterns import VISITS, Pattern, TooCostly, Unsupported, pattern
from tests.requirements.marks import requirement

ALIKE = (
    r"a b . [ab] [^a] [a-c]+? (a|b) (?:ab) (?<n>ab) a* b+ a? (a*)* a{2} (ab){1,2} b{1,} b{0} ^ $ \b \d \w \s"
    r" (a|) (|b)* \. [\d.-]"
)
"""Pieces that mean the same to Python."""


@given(
    st.lists(st.sampled_from(ALIKE.split()), min_size=1, max_size=5),
    st.text("abc1 .", max_size=7),
    st.booleans(),
)
def test_what_both_know_is_matched_as_by_a_backtracking_engine(
    pieces: list[str], text: str, either: bool
) -> None:
    source = ("|" if either else "").join(pieces)
    ours = Pattern(source).found_in(text)
    theirs = re.search(source.replace("$", r"\Z").replace("(?<n>", "(?:"), text, re.ASCII)
    assert ours is (theirs is not None)


@requirement("ELIC-18")
@pytest.mark.parametrize(
    ("source", "text", "found"),
    [
        ("^a$", "a\n", False),  # Python's `$` would take it
        (r"^\d$", "٣", False),  # a digit, but none of ECMA-262's
        (r"^\w$", "é", False),
        (r"^\s$", "\ufeff", True),
        (r"^\s$", "\u2003", True),
        (r"^.$", "\u2028", False),
        (r"^.$", "😀", True),
        (r"^\p{L}+$", "Größe", True),
        (r"^\p{Lu}\P{Lu}$", "Ab", True),
        (r"^\u00e9\x41\u{1F600}$", "éA😀", True),
        (r"^\cJ\t\0$", "\n\t\0", True),
        (r"^[\b]$", "\b", True),
        (r"^[^\W\d]+$", "ab_", True),
        (r"^[^\W\d]+$", "ab1", False),
        ("^[]$", "a", False),
        ("^[^]$", "a", True),
        ("^[a-]$", "-", True),
        (r"^[\]\\]+$", "]\\", True),
        ("^]}$", "]}", True),
        ("", "anything", True),
        ("a|", "", True),
        (r"^\/\-\@$", "/-@", True),
        (r"\B", "", True),
    ],
)
def test_patterns_mean_what_ecma_262_says(source: str, text: str, found: bool) -> None:
    assert pattern(source).found_in(text) is found


MALFORMED = (
    r"( ) [ [a a{2 a{x} {2} * +a a** a+{2} a{2,1} [b-a] [\d-z] \ (?i)a (?P<n>a) (?<>a) (?<n"
    r" \A \Z \u12 \u{110000}"
    r" \u{} \xg1 \ud800 \p \p{ \p{Script=Greek} \01 \c1 a{99999999}"
)
UNBOUNDED = r"(a)\1 \k<n> (?=a) (?!a) (?<=a) (?<!a) ((((((((a{9}){9}){9}){9}){9}){9}){9}){9})"


@requirement("ELIC-18")
@pytest.mark.parametrize("source", [*MALFORMED.split(), *UNBOUNDED.split(), "(" * 60 + ")" * 60, "x" * 1001])
def test_what_is_malformed_or_needs_more_is_refused(source: str) -> None:
    with pytest.raises(Unsupported):
        Pattern(source)


@requirement("ELIC-18")
@pytest.mark.parametrize(
    "source", ["^(a+)+$", "^(a|a)*$", "^(a*)*$", "(a|aa)+$", r"^(\w+\s?)+$", "(.*)(.*)(.*)z"]
)
def test_no_text_makes_a_pattern_slow(source: str) -> None:
    begun = time.perf_counter()
    assert not Pattern(source).found_in("a" * 10_000 + "!")
    assert time.perf_counter() - begun < 5
    with pytest.raises(TooCostly):
        Pattern(source).found_in("a" * VISITS)


@requirement("ELIC-18")
@pytest.mark.parametrize(
    "source", ["^" + "(" * 8 + ")" + "{99999})" * 7 + "{99999}$", "^" + "(" * 40 + ")" + "{9})" * 39 + "{9}$"]
)
def test_no_pattern_is_slow_to_read(source: str) -> None:
    begun = time.perf_counter()
    assert not Pattern(source).found_in("a")
    assert time.perf_counter() - begun < 5
