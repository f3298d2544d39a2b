"""Markdown that somebody wrote, put into a document of Markdown: it cannot run, load, or leave its place.

Readers of Markdown differ, so a text is changed little, and then read as the most permissive of them would:
where anything is left that could do something, it is shown as code, line for line.
"""

from __future__ import annotations

import re
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from antiphon.text_safety import is_safe, printed_text
from antiphon.transcripts.reading_limits import is_readable
from antiphon.transcripts.words import is_safe_link

_BEHIND = "behind"
_CODE_SPAN = re.compile(r"(?<![`\\])(`+)(?!`)(?:.*?[^`])\1(?!`)", re.S)
_ACTIVE = re.compile(r"<|!(?=\[)")
_ESCAPED = {"<": "&lt;", "!": "\\!"}
_RUN = re.compile(r"`+")
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&])")


def harmless(text: str) -> str:
    """The text as Markdown for the top level of a document, below headings of the second level."""
    shown = printed_text(text).strip("\n")
    if not is_readable(shown):
        return fenced(shown)
    tamed = _tamed(shown)
    return tamed if _is_harmless(tamed) else fenced(shown)


def fenced(shown: str, language: str = "") -> str:
    """As code, whatever is in it."""
    longest = max(map(len, _RUN.findall(shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


def code(line: str) -> str:
    """One line as a span of code."""
    longest = max(map(len, _RUN.findall(line)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if line[:1] == "`" or line[-1:] == "`" or not line else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def inline(line: str) -> str:
    """One line as plain text between other Markdown."""
    return _SPECIAL.sub(r"\\\1", line)


@lru_cache(maxsize=1)
def _reader() -> MarkdownIt:
    """Takes everything that any reader takes."""
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    reader.validateLink = lambda url: True  # type: ignore[method-assign]  # as its documentation has it
    return reader


def _tamed(text: str) -> str:
    """Tags become text, images links, and headings deeper ones; code stays as it is."""
    lines = text.split("\n")
    tokens = _reader().parse(text)
    codes = {
        line
        for token in tokens
        if token.type in ("fence", "code_block") and token.map is not None
        for line in range(*token.map)
    }
    for token in tokens:
        if token.type == "heading_open" and token.level == 0 and token.map is not None:
            _deepen(lines, token)
    made, run = [], list[str]()
    for number, line in enumerate(lines):
        if number in codes:
            made += [_escaped("\n".join(run))] if run else []
            run = []
            made.append(line)
        else:
            run.append(line)
    made += [_escaped("\n".join(run))] if run else []
    return "\n".join(made)


def _deepen(lines: list[str], token: Token) -> None:
    """A heading of the document's own levels would pass for one of the document's."""
    assert token.map is not None
    first, end = token.map
    if token.markup in ("=", "-"):
        lines[end - 1] = ""  # the line below; the text goes on as a paragraph
    else:
        at = lines[first].index("#")
        lines[first] = lines[first][:at] + "#" * min(2, 6 - len(token.markup)) + lines[first][at:]


def _escaped(text: str) -> str:
    made, at = [], 0
    for span in _CODE_SPAN.finditer(text):
        made += [_ACTIVE.sub(_escape, text[at : span.start()]), span[0]]
        at = span.end()
    return "".join([*made, _ACTIVE.sub(_escape, text[at:])])


def _escape(found: re.Match[str]) -> str:
    return _ESCAPED[found[0]]


def _is_harmless(text: str) -> bool:
    tokens = _reader().parse(f"{text}\n\n## {_BEHIND}\n")
    headings = [token for token in tokens if token.type == "heading_open" and token.level == 0]
    ends = len(tokens) >= 3 and tokens[-3] in headings and tokens[-2].content == _BEHIND
    deep = all(token.tag not in ("h1", "h2") for token in headings[:-1])
    return ends and deep and all(map(_does_nothing, tokens))


def _does_nothing(token: Token) -> bool:
    if token.type in ("html_block", "html_inline", "image"):
        return False
    if not token.children and not is_safe(token.content):  # an entity, such as &#x202e;
        return False
    if token.type == "link_open" and not is_safe_link(str(token.attrGet("href") or "")):
        return False
    return all(map(_does_nothing, token.children or ()))
