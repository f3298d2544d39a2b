"""Markdown that somebody wrote, as HTML that can do nothing: no tags of theirs, no images, no odd links."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from antiphon.text_safety import printed_text
from antiphon.transcripts.reading_limits import is_readable
from antiphon.transcripts.words import is_safe_link

_ALIGNED = {"text-align:center": "center", "text-align:right": "right"}


class _Renderer(RendererHTML):
    def image(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        """A page that loads images tells somebody that it is read: the image is a link."""
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
def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    reader.enable(["table", "strikethrough"])
    reader.validateLink = is_safe_link  # type: ignore[method-assign]  # as its documentation has it
    return reader


def prose(text: str) -> str:
    """Markdown as HTML."""
    shown = printed_text(text)
    if not is_readable(shown):
        return preformatted(shown)
    return f'<div class="prose" dir="auto">{_reader().render(shown)}</div>\n'


def preformatted(shown: str, *, kind: str = "plain") -> str:
    """Text that was made visible, line for line."""
    return f'<pre class="{kind}" dir="auto">{escape(shown)}</pre>\n'
