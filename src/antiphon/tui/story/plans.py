"""Plans as checklists, in the transcript and in the sidebar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.text import Text
from textual.strip import Strip

from antiphon.engine import Plan
from antiphon.transcripts import plan_entries
from antiphon.tui.story.entries import Entry, indented
from antiphon.tui.text.markdown import Page
from antiphon.tui.text.palette import Palette
from antiphon.tui.text.plain import plain_line

BOXES = {"completed": "✓", "in_progress": "▸", "cancelled": "⊘"}
MOST = 200


def steps(plan: Any) -> list[tuple[str, str]]:
    """Return status and text of each step."""
    return [(status, plain_line(text)) for status, text in plan_entries(plan, most=MOST)]


def step_text(status: str, words: str, palette: Palette) -> Text:
    mark, look = {
        "completed": (palette.good, palette.soft),
        "in_progress": (palette.accent, f"bold {palette.ink}"),
        "cancelled": (palette.soft, f"strike {palette.soft}"),
    }.get(status, (palette.soft, palette.ink))
    return Text.assemble((f"{BOXES.get(status, '○')} ", mark), (words, look), overflow="fold")


class PlanEntry(Entry):
    def __init__(self, key: str, find: Callable[[], Plan | None]) -> None:
        super().__init__(key)
        self._find = find
        self._known: Plan | None = None

    def _steps(self) -> list[tuple[str, str]]:
        self._known = self._find() or self._known
        return [] if self._known is None else steps(self._known.latest.plan)

    @property
    def text(self) -> str:
        return "\n".join(f"{BOXES.get(status, '○')} {words}" for status, words in self._steps())

    def _lay(self, page: Page) -> list[Strip]:
        inner = page.narrower(2)
        lines: list[Strip] = []
        for status, words in self._steps():
            strips = inner.strips(step_text(status, words, page.palette))
            lines += [strips[0], *indented(strips[1:], "  ")]
        return lines
