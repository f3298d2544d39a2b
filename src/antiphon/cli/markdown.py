"""Markdown on the terminal: as lines, in its own colours."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text


class _Heading(Heading):
    """On the left, and without a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.text.copy()
        text.justify = "left"
        yield text


class _Code(CodeBlock):
    """In the terminal's own colours, on its own background."""

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
    """Markdown as lines, without the blank ones around it and the padding behind them."""
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
