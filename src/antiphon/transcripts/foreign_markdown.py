"""Markdown from agents and users, as Markdown or HTML that runs, loads and hides nothing.

Readers of Markdown differ. So `harmless` changes a text little, and then parses it as the most permissive
reader would: if anything active is left, the text becomes a code block, line for line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from antiphon.text_safety import is_safe, printed_text
from antiphon.transcripts.words import fenced, is_safe_link

READ = 64 * 1024
"""Characters of a text that is parsed as Markdown."""
BRACKETS = 1000
"""Opening brackets in it. A parser may take very long for text that only looks like Markdown."""

_BEHIND = "behind"
_CODE_SPAN = re.compile(r"(?<![`\\])(`+)(?!`)(?:.*?[^`])\1(?!`)", re.S)
_ACTIVE = re.compile(r"<|!(?=\[)")
_ESCAPED = {"<": "&lt;", "!": "\\!"}
_ALIGNED = {"text-align:center": "center", "text-align:right": "right"}
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&])")


def is_readable(shown: str) -> bool:
    """Return whether a text is parsed as Markdown: not if it is very long or has very many brackets."""
    return len(shown) <= READ and shown.count("[") <= BRACKETS


# --- as Markdown -------------------------------------------------------------------------------


def harmless(text: str) -> str:
    """Return foreign Markdown for the top level of a document, below headings of the second level."""
    shown = printed_text(text).strip("\n")
    if not is_readable(shown):
        return fenced(shown)
    tamed = _tamed(shown)
    return tamed if _is_harmless(tamed) else fenced(shown)


def code(line: str) -> str:
    """Return one line as a code span."""
    longest = max(map(len, re.findall("`+", line)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if line[:1] == "`" or line[-1:] == "`" or not line else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def inline(line: str) -> str:
    """Return one line as plain text inside other Markdown."""
    return _SPECIAL.sub(r"\\\1", line)


@lru_cache(maxsize=1)
def _permissive_parser() -> MarkdownIt:
    """Return a parser that accepts everything that any reader accepts."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # as its documentation has it
    return parser


def _tamed(text: str) -> str:
    """Make tags text, images links and headings deeper. Code stays as it is."""
    lines = text.split("\n")
    tokens = _permissive_parser().parse(text)
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
    """Move a heading below the levels that the document itself uses."""
    assert token.map is not None
    first, end = token.map
    if token.markup in ("=", "-"):
        lines[end - 1] = ""  # the underline; the text stays as a paragraph
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
    tokens = _permissive_parser().parse(f"{text}\n\n## {_BEHIND}\n")
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


# --- as HTML -----------------------------------------------------------------------------------


class _Renderer(RendererHTML):
    def image(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        """Render an image as a link: a page that loads images tells their server that it is read."""
        token = tokens[index]
        words = escape(self.renderInlineAsText(token.children or [], options, env) or "image")
        url = str(token.attrGet("src") or "")
        return f"{_opening(url)}{words}</a>" if is_safe_link(url) else words

    def link_open(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        return _opening(str(tokens[index].attrGet("href") or ""))

    def td_open(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        token = tokens[index]
        aligned = _ALIGNED.get(str(token.attrGet("style") or ""))
        return f"<{token.tag}>" if aligned is None else f'<{token.tag} class="{aligned}">'

    th_open = td_open


def _opening(url: str) -> str:
    return f'<a href="{escape(url)}" rel="noopener noreferrer nofollow">'


@lru_cache(maxsize=1)
def _html_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    parser.enable(["table", "strikethrough"])
    parser.validateLink = is_safe_link  # type: ignore[method-assign]  # as its documentation has it
    return parser


def prose(text: str) -> str:
    """Return foreign Markdown as HTML without its tags and images, and with safe links only."""
    shown = printed_text(text)
    if not is_readable(shown):
        return preformatted(shown)
    return f'<div class="prose" dir="auto">{_html_parser().render(shown)}</div>\n'


def preformatted(shown: str, *, kind: str = "plain") -> str:
    """Return safe text as HTML, line for line."""
    return f'<pre class="{kind}" dir="auto">{escape(shown)}</pre>\n'
