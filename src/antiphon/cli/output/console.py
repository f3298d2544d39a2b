"""A rich console that shows safe text, and Markdown as lines for that console."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import ClassVar

from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from antiphon.cli.output.streams import SafeStream
from antiphon.text_safety import safe_text


class _Heading(Heading):
    """A heading on the left, without a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.text.copy()
        text.justify = "left"
        yield text


class _Code(CodeBlock):
    """Code in the terminal's own colours, on its own background."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip("\n")
        syntax = Syntax(code, self.lexer_name, theme="ansi_dark", word_wrap=True, background_color="default")
        yield Padding(syntax, (0, 0, 0, 2))


class Rendered(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
    }

    def __init__(self, text: str, *, style: str) -> None:
        super().__init__(text, style=style, hyperlinks=False)
        for token in self.parsed:
            token.children = list(_without_twins(token.children or []))


def _without_twins(tokens: list[Token]) -> Iterator[Token]:
    """Drop the tokens of links whose text is their address: rich would print the address twice."""
    for at, token in enumerate(tokens):
        before, after = tokens[max(at - 2, 0) : at], tokens[at + 1 : at + 3]
        if token.type == "link_open" and _is_twin(token, after):
            continue
        if token.type == "link_close" and len(before) == 2 and _is_twin(before[0], [before[1], token]):
            continue
        yield token


def _is_twin(opening: Token, rest: list[Token]) -> bool:
    if opening.type != "link_open" or [token.type for token in rest] != ["text", "link_close"]:
        return False
    return opening.attrGet("href") == rest[0].content


STYLES = {
    "markdown.h1": "bold underline",
    "markdown.h2": "bold",
    "markdown.h3": "bold",
    "markdown.h4": "bold dim",
    "markdown.code": "cyan",
    "markdown.item.bullet": "cyan",
    "markdown.item.number": "cyan",
    "markdown.hr": "dim",
    "markdown.block_quote": "italic",
}


def rendered(console: Console, text: str, *, style: str = "none", width: int) -> list[Text]:
    """Return Markdown as lines, without blank lines around it and without padding."""
    options = console.options.update(width=width, height=None)
    lines = console.render_lines(Rendered(text, style=style), options, pad=False)
    made = [_line(line) for line in lines]
    while made and not made[-1].plain.strip():
        made.pop()
    while made and not made[0].plain.strip():
        made.pop(0)
    return made


def _line(segments: list[Segment]) -> Text:
    line = Text(no_wrap=True, end="\n")
    for segment in segments:
        if not segment.control:
            line.append(segment.text, segment.style)
    line.rstrip()
    return line


def safe_console(theme: Theme) -> Console:
    """Return a rich console on stdout that shows safe text, and no links that differ from their text."""
    stream = sys.stdout.stream if isinstance(sys.stdout, SafeStream) else sys.stdout
    console = Console(theme=theme, highlight=False, file=stream)
    console.push_render_hook(SafeRenderHook())
    return console


class SafeRenderable:
    """Renders another renderable with safe text and without links."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from safe_segments(console.render(self._renderable, options))


class SafeRenderHook(RenderHook):
    """Makes everything safe that a console prints."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [SafeRenderable(renderable) for renderable in renderables]


def safe_segments(segments: Iterable[Segment]) -> Iterable[Segment]:
    for segment in segments:
        if segment.control:
            yield segment
            continue
        text, style, _ = segment
        if style is not None and style.link is not None:
            style = style.update_link(None)  # a terminal would show the text and hide the address
        yield Segment(safe_text(text), style)
