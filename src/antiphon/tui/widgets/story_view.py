"""A widget that draws the window of a story and moves it while the user scrolls."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from antiphon.tui.story.story import Story
from antiphon.tui.story.window import LAID_OUT, MOST, Window
from antiphon.tui.text.markdown import Page
from antiphon.tui.text.palette import palette_of


def marked(line: Strip, needle: str, look: Style) -> Strip:
    """Return a line with the first match of `needle`, which is in lower case, in a style."""
    text = line.text.casefold()
    found = text.find(needle) if needle else -1
    if found < 0 or len(text) != len(line.text):
        return line
    return styled(line, found, found + len(needle), look)


def styled(line: Strip, start: int, end: int, look: Style) -> Strip:
    """Return a line with the characters from `start` to `end` in a style; -1 is the end of the line."""
    length = len(line.text)
    end = length if end == -1 else min(end, length)
    if start >= end:
        return line
    left, right = line.index_to_cell_position(start), line.index_to_cell_position(end)
    inside = Strip([Segment(text, (style or Style()) + look) for text, style, _ in line.crop(left, right)])
    return Strip([*line.crop(0, left), *inside, *line.crop(right)])


MEASURE = 100
"""Columns of text that are comfortable to read."""
GUTTER = 2
SOON = 0.04
"""Seconds in which changes are collected; at least twice the time of the last layout."""


class StoryView(ScrollView):
    DEFAULT_CSS = """
    StoryView { scrollbar-size-vertical: 1; overflow-x: hidden; overflow-y: scroll; }
    """

    def __init__(self, story: Story, *, empty: str = "", **named: Any) -> None:
        """`empty`: the text for a session without entries."""
        super().__init__(**named)
        self.story = story
        self.window = Window(story, empty=empty)
        self.needle = ""
        """The text that is marked, in lower case."""
        self._dirty = True
        self._scheduled = False
        self._took = 0.0
        self._follow = True

    @property
    def pointed_lines(self) -> range:
        """The lines that the cursor marks."""
        return range(0)

    # --- content -----------------------------------------------------------------------------------

    def changed(self, keys: Iterable[str]) -> None:
        """Show new or changed entries."""
        if self.window.take(keys):
            self._soon()

    def inserted(self) -> None:
        """Lay out the window anew, because the story has new entries before its end."""
        if self._follow or not self.window.entries:
            self.window.show_end()
            self._soon()
            return
        first = self.story.keys.index(self.window.entries[0].key)
        last = self.story.keys.index(self.window.entries[-1].key)
        self._keep_seen(first, last + 1)

    def _soon(self) -> None:
        self._dirty = True
        if not self._scheduled and self.is_mounted:
            self._scheduled = True
            self.set_timer(max(SOON, 2 * self._took), self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        if self._dirty:
            before = time.perf_counter()
            self._change()
            self._took = time.perf_counter() - before

    def _change(self) -> None:
        """Lay out the window."""
        self._dirty = False
        if self._follow:
            self.window.shorten()
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        self.window.lay_out(Page(min(width - GUTTER, MEASURE), palette_of(self.app)))
        self.virtual_size = Size(width, len(self.window.lines))
        if self._follow:
            self.scroll_to(y=self.max_scroll_y, animate=False)
        self.refresh()

    def on_resize(self) -> None:
        self._change()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self.is_mounted:
            self._soon()

    # --- scrolling ---------------------------------------------------------------------------------

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        at_end = round(new_value) >= self.max_scroll_y
        self._follow = at_end and not self.window.newer
        if new_value < 3 and self.window.older and round(new_value) < round(old_value):
            self.call_later(self.load_older)
        elif at_end and self.window.newer:
            self.call_later(self.load_newer)

    def load_older(self) -> None:
        """Lay out earlier entries. The visible lines stay where they are."""
        if self.window.older:
            first = max(0, self.window.first - LAID_OUT)
            self._keep_seen(first, min(self.window.end, first + MOST))

    def load_newer(self) -> None:
        """Lay out later entries. The visible lines stay where they are."""
        if self.window.newer:
            end = self.window.end + LAID_OUT
            self._keep_seen(max(self.window.first, end - MOST), end)

    def _keep_seen(self, first: int, end: int) -> None:
        """Move the window, and keep the entry at the top of the screen there."""
        seen = self.window.near(self.scroll_offset.y)
        self._follow = False
        self.window.show(first, end)
        self._change()
        if seen is not None and self.window.find(seen[0].key) is not None:
            self.scroll_to(y=self.window.span(seen[0])[0] + seen[1], animate=False)

    def bring(self, at: int) -> None:
        """Move the window so that it has an entry of the story."""
        if self.window.show_around(at):
            self._follow = False
            self._change()

    def follow(self) -> None:
        """Scroll to the end, and follow it from now on."""
        self._follow = True
        if self.window.newer:
            self.window.show_end()
            self._change()
        self.scroll_to(y=self.max_scroll_y, animate=False)

    # --- drawing -----------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        at = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        base = self.rich_style
        if at >= len(self.window.lines) or self.window.page is None:
            return Strip.blank(width, base)
        palette = self.window.page.palette
        look = Style.parse(f"{palette.paper} on {palette.wait}")
        line = marked(self.window.lines[at], self.needle, look)
        gutter = Segment(" " * GUTTER)
        if self.has_focus and at in self.pointed_lines:
            gutter = Segment("▎ ", Style.parse(palette.accent))
        selection = self.text_selection
        whole = Strip([gutter, *line])
        if selection is not None and (span := selection.get_span(at)) is not None:
            whole = styled(whole, *span, self.screen.get_component_rich_style("screen--selection"))
        whole = whole.crop_extend(0, width, base).apply_style(base)
        return whole.apply_offsets(0, at)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        lines = (" " * GUTTER + line.text for line in self.window.lines)
        return selection.extract("\n".join(lines)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()
