"""Markdown as lines of the screen, rendered block by block: a chunk costs the same in a long message."""

from __future__ import annotations

import io
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments.token import (  # type: ignore[import-untyped]  # Pygments ships no types
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    String,
)
from pygments.token import Token as AnyToken
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import BlockQuote, CodeBlock, Heading, Markdown, MarkdownElement
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text
from rich.theme import Theme
from textual.strip import Strip

from antiphon.transcripts import MarkdownStream, Piece, is_readable, is_safe_link
from antiphon.tui.text.palette import Palette
from antiphon.tui.text.plain import plain, plain_output

SHOWN = 64 * 1024
"""Characters of a message that are shown; the rest is counted."""
LANGUAGES = frozenset(
    """bash c console cpp css diff go html ini java javascript js json jsx kotlin lua make php py python rb
    ruby rs rust sh shell sql swift toml ts tsx typescript xml yaml yml zsh""".split()  # noqa: SIM905  # a hundred quotes would hide the names
)
"""Languages in which code is coloured. A message cannot load any other lexer."""


class Page:
    """The width and the colours for which lines are made."""

    def __init__(self, width: int, palette: Palette) -> None:
        self.width = max(width, 10)
        self.palette = palette
        self.console = _console(palette)
        self.syntax = _syntax(palette)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Page) and (self.width, self.palette) == (other.width, other.palette)

    __hash__ = None  # type: ignore[assignment]  # a page is compared, never looked up

    def narrower(self, columns: int) -> Page:
        return Page(self.width - columns, self.palette)

    def strips(self, renderable: Any) -> list[Strip]:
        """Render a Rich renderable as lines."""
        options = self.console.options.update(width=self.width, height=None)
        lines = self.console.render_lines(renderable, options, pad=False)
        return [Strip([Segment(*part[:2]) for part in line if not part.control]) for line in lines]

    def text(self, text: str, style: str = "") -> list[Strip]:
        """Wrap plain text. Lines that fit skip the wrapping: most lines of a long output do."""
        look = Style.parse(style)
        lines: list[Strip] = []
        for line in text.split("\n"):
            if len(line) <= self.width and cell_len(line) <= self.width:
                lines.append(Strip([Segment(line, look)]))
            else:
                lines += self.strips(Text(line, style, overflow="fold"))
        return lines


@lru_cache(maxsize=4)
def _console(palette: Palette) -> Console:
    return Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
        highlight=False,
        emoji=False,
        markup=False,
        theme=Theme(
            {
                "markdown.h1": f"bold {palette.accent}",
                **{f"markdown.h{level}": "bold" for level in range(2, 8)},
                "markdown.code": f"{palette.accent}",
                "markdown.item.bullet": palette.accent,
                "markdown.item.number": palette.accent,
                "markdown.hr": palette.line,
                "markdown.block_quote": f"italic {palette.soft}",
                "markdown.link": "underline",
                "markdown.link_url": palette.soft,
                "markdown.table.border": palette.line,
                "markdown.table.header": "bold",
            }
        ),
    )


@lru_cache(maxsize=4)
def _syntax(palette: Palette) -> ANSISyntaxTheme:
    return ANSISyntaxTheme(
        {
            AnyToken: Style.parse(palette.ink),
            Comment: Style.parse(f"italic {palette.soft}"),
            Keyword: Style.parse(palette.keyword),
            Operator.Word: Style.parse(palette.keyword),
            Name.Function: Style.parse(palette.name),
            Name.Class: Style.parse(palette.name),
            Name.Builtin: Style.parse(palette.name),
            Number: Style.parse(palette.wait),
            String: Style.parse(palette.good),
        }
    )


class MarkdownText:
    """The lines of a message that grows."""

    def __init__(self) -> None:
        self._stream = MarkdownStream()
        self._pieces: list[Piece] = []
        self._laid: list[Strip] = []
        self._done = 0
        """How many pieces are rendered."""
        self._page: Page | None = None
        self._length = 0

    def write(self, text: str) -> None:
        room = SHOWN - self._length
        self._length += len(text)
        if room > 0:
            self._pieces += self._stream.write(text[:room])

    def lines(self, page: Page, *, style: str = "") -> list[Strip]:
        if page != self._page:
            self._page, self._laid, self._done = page, [], 0
        _add(self._laid, self._pieces[self._done :], page, style)
        self._done = len(self._pieces)
        lines = list(self._laid)
        _add(lines, self._stream.finish(), page, style)
        if self._length > SHOWN:
            more = f"⋮ {self._length - SHOWN:,} more characters are not shown"
            lines += [*page.text(""), *page.text(more, f"italic {page.palette.wait}")]
        return lines


def _add(lines: list[Strip], pieces: Iterable[Piece], page: Page, style: str) -> None:
    for piece in pieces:
        more = rendered(piece.text, page, style=style)
        if lines and more and not piece.joined:
            lines.append(Strip([]))
        lines += more


def rendered(text: str, page: Page, *, style: str = "") -> list[Strip]:
    """Render Markdown as lines, without blank lines around it. Other text is shown as it is."""
    text = plain_output(text)
    if not is_readable(text):
        return _trimmed(page.text(text, style))
    try:
        lines = page.strips(_Shown(text, page, style))
    except Exception:  # Rich may fail on hostile text, which is then shown as plain text
        lines = page.text(text, style)
    return _trimmed(lines)


def _trimmed(lines: list[Strip]) -> list[Strip]:
    while lines and not lines[-1].text.strip():
        lines.pop()
    while lines and not lines[0].text.strip():
        lines.pop(0)
    return lines


class _Heading(Heading):
    """A heading on the left, without a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.text.copy()
        text.justify = "left"
        yield text


class _Quote(BlockQuote):
    """A quotation with a thin line; a thick line marks prompts."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        inner = options.update(width=max(options.max_width - 2, 4))
        for line in console.render_lines(self.elements, inner, style=self.style, pad=False):
            yield Segment("│ ", console.get_style("markdown.hr"))
            yield from line
            yield Segment.line()


class _Code(CodeBlock):
    page: Page

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> _Code:
        assert isinstance(markdown, _Shown)
        made = cls((token.info or "").partition(" ")[0].lower(), "")
        made.page = markdown.page
        return made

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        page = self.page
        code = str(self.text).rstrip("\n")
        background = Style.parse(f"on {page.palette.raised}")
        width = options.max_width
        if self.lexer_name in LANGUAGES:
            shown = Syntax("", self.lexer_name, theme=page.syntax).highlight(code)
        else:
            shown = Text(code, page.palette.ink)
        shown.rstrip()
        for line in shown.split("\n", allow_blank=True):
            wrapped = line.wrap(console, max(width - 2, 8), overflow="fold") or [line]
            for part in wrapped:
                part.pad_right(max(width - 1 - part.cell_len, 0))
                yield Text.assemble(" ", part, style=background, no_wrap=True)


class _Shown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "blockquote_open": _Quote,
        "fence": _Code,
        "code_block": _Code,
    }

    def __init__(self, text: str, page: Page, style: str) -> None:
        # The base class would make a parser for each message.
        self.page = page
        self.markup = text
        self.style = style or "none"
        self.justify = None
        self.hyperlinks = False
        self.code_theme = self.inline_code_theme = ""
        self.inline_code_lexer = None
        self.parsed = _parser().parse(text)
        for token in self.parsed:
            token.children = [_shown(child) for child in token.children or ()]


def _shown(token: Token) -> Token:
    """Replace an image by its name and address, and make text safe that was written as an entity."""
    if token.type == "image":
        words = f"{token.content or 'image'} ({token.attrGet('src') or ''})"
        return Token("text", "", 0, content=plain(words))
    token.content = plain(token.content)
    return token


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """Return a parser for which tags are text, and only web and mail addresses are links."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.validateLink = is_safe_link  # type: ignore[method-assign]  # as its documentation has it
    return parser
