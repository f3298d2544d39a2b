"""What rich prints, made safe segment by segment: its own control codes stay, foreign ones are named."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook, RenderResult
from rich.segment import Segment

from antiphon.text_safety import safe_text


class SafeRenderable:
    """Renders as another renderable does, with safe text and without links."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from safe_segments(console.render(self._renderable, options))


class SafeRenderHook(RenderHook):
    """Makes safe whatever is printed with a console."""

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
