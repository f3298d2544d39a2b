"""Words: how queries and texts are cut into words, without I/O.

Chinese and Japanese are written without spaces, so each of their characters is a word, and several of them in
a query are a phrase. Text for FTS5 gets a separator behind each such character (`searchable`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from antiphon.stores.search.base import MOST_SNIPPET, MOST_WORDS

BREAK = "\x1f"
"""Between two words that touch. Texts are cleared of control characters."""
BEFORE = 60
"""How many characters of a snippet, about, are before the first hit."""
PART = 8000
"""Characters of a long text that are looked at together."""
ELLIPSIS = "…"

_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_alone = re.compile(f"([{_ALONE}])")
_controls = {code: " " for code in range(32) if chr(code) not in "\t\n"}
_MARKS = "\u0300-\u036f"
_word = re.compile(f"(?=[^\\W_])[{_ALONE}]|(?:(?![{_ALONE}])[^\\W_][{_MARKS}]*)+")
_term = re.compile('"([^"]*)("|$)|([^\\s"]+)')
_quotes = str.maketrans("“”„‟", '""""')
_spaces = re.compile(r"\s+")


Word = tuple[str, int, int]
"""A word without case and accents, and its place in the text."""


class Term(NamedTuple):
    """Words that follow each other; the last one may be the beginning of a word."""

    written: tuple[str, ...]
    words: tuple[str, ...]
    """The same without case and accents."""
    is_prefix: bool


def read_query(query: str) -> tuple[Term, ...]:
    """Return the terms that a text must have, all of them. What has no letter or digit says nothing, and
    words beyond `MOST_WORDS` do not count."""
    found: list[Term] = []
    left = MOST_WORDS
    plain = query.encode("utf-8", "replace").decode().translate(_quotes)
    for match in _term.finditer(plain):
        phrase, closed, word = match.groups()
        text = word if phrase is None else phrase
        words = split_words(text)
        is_whole, words = len(words) <= left, words[:left]
        left -= len(words)
        if words:
            written = tuple(text[start:end] for _, start, end in words)
            is_prefix = is_whole and closed != '"' and match.end() >= len(plain.rstrip())
            found.append(Term(written, tuple(each for each, _, _ in words), is_prefix))
    return tuple(found)


def fts5_query(terms: Sequence[Term]) -> str:
    """Return terms in the syntax of FTS5: everything is quoted, so nothing is an operator. A word has
    letters, digits and accents only."""
    return " AND ".join(f'"{" ".join(term.written)}"{" *" if term.is_prefix else ""}' for term in terms)


def searchable(text: str) -> str:
    """Return a text as FTS5 gets it. The parts of a text may be made searchable one by one."""
    text = text.translate(_controls)
    return text if text.isascii() else _alone.sub(rf"\1{BREAK}", text)


def split_words(text: str) -> list[Word]:
    """Return the words of a text, without case and accents, each with its place."""
    return [(plain_text(match[0]), match.start(), match.end()) for match in _word.finditer(text)]


def plain_text(text: str) -> str:
    """Return a text without case and accents."""
    if text.isascii():
        return text.lower()
    bare = (char for char in unicodedata.normalize("NFD", text) if not unicodedata.combining(char))
    return unicodedata.normalize("NFC", "".join(bare)).lower()


def has_terms(text: str, terms: Sequence[Term]) -> bool:
    """Whether a text has all the terms."""
    words = split_words(text)
    return all(next(_hits(words, term), None) is not None for term in terms)


def _hits(words: Sequence[Word], term: Term) -> Iterator[tuple[int, int]]:
    last = len(term.words) - 1
    for at in range(len(words) - last):
        if all(
            words[at + n][0].startswith(word) if term.is_prefix and n == last else words[at + n][0] == word
            for n, word in enumerate(term.words)
        ):
            yield words[at][1], words[at + last][2]


def snippet_of(text: str, terms: Sequence[Term]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return one line of a text, of bounded length, around the longest of the terms, and the ranges of
    characters in it that have terms. A long text is read up to there only."""
    first = _first_hit(text, max(terms, key=lambda term: sum(map(len, term.words))))
    earliest = max(first - 2 * BEFORE, 0)
    begin = 0 if first <= BEFORE else max(text.rfind(" ", earliest, first - BEFORE), earliest)
    end = begin + 3 * MOST_SNIPPET  # spaces and separators go, and the end is cut
    part = text[begin:end]
    words = split_words(part)
    line, ranges = _one_line(part, sorted({hit for term in terms for hit in _hits(words, term)}))
    cut = (ELLIPSIS if begin else "") + line.lstrip()
    shift = len(cut) - len(line)
    if len(cut) > MOST_SNIPPET or end < len(text):
        cut = cut[: MOST_SNIPPET - 1].rstrip() + ELLIPSIS
    moved = ((start + shift, min(stop + shift, len(cut))) for start, stop in ranges)
    return cut, tuple((start, stop) for start, stop in moved if start < stop)


def _first_hit(text: str, term: Term) -> int:
    """Return where a text has a term first; 0 if it has it nowhere."""
    start = 0
    while start < len(text):
        words = split_words(text[start : start + PART])
        hit = next(_hits(words, term), None)
        if hit is not None:
            return start + hit[0]
        # The next part begins with the last words of this one: a term may lie across.
        behind = words[-len(term.words)][1] if len(words) > len(term.words) else PART
        start += behind
    return 0


def _one_line(text: str, ranges: Sequence[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    """Return a text without separators and with single spaces, and its ranges as they are then."""
    line, moved, at = "", list[tuple[int, int]](), 0
    for start, stop in ranges:
        if start < at:
            continue  # inside of the one before
        line = _joined(line, text[at:start])
        opened = len(line)
        line = _joined(line, text[start:stop])
        moved.append((opened, len(line)))
        at = stop
    return _joined(line, text[at:]), moved


def _joined(line: str, part: str) -> str:
    spaced = _spaces.sub(" ", part.replace(BREAK, ""))
    return line + (spaced[1:] if line.endswith(" ") and spaced.startswith(" ") else spaced)
