"""The transcript: one widget that draws its lines itself. What was laid out last stands in a window; older
parts of a long session are laid out when somebody scrolls up to them."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from antiphon.tui.entries import Entry
from antiphon.tui.palette import palette_of
from antiphon.tui.prose import Page
from antiphon.tui.story import Story

LAID_OUT = 60
"""Entries that are laid out at first, and more each time when one scrolls to the top."""
MOST = 240
"""Entries that stay laid out while one follows the end."""
MEASURE = 100
"""Columns of text that one reads with ease."""
GUTTER = 2
SOON = 0.04
"""Seconds in which changes are gathered; twice as long as laying them out took, where that is more."""


class Transcript(ScrollView, can_focus=True):
    DEFAULT_CSS = """
    Transcript { scrollbar-size-vertical: 1; overflow-x: hidden; overflow-y: scroll; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "previous", "Up", show=False),
        Binding("down,j", "next", "Down", show=False),
        Binding("enter,space", "unfold", "Fold"),
        Binding("y", "copy", "Copy"),
        Binding("f", "fork", "Fork here"),
        Binding("slash", "search", "Search"),
        Binding("n", "found(-1)", "Next", show=False),
        Binding("N", "found(1)", "Previous", show=False),
        Binding("e", "unfold_all", "Fold all", show=False),
        Binding("g,home", "begin", "Begin", show=False),
        Binding("G,end", "end", "End", show=False),
        Binding("pageup,b", "page_up", "Page up", show=False),
        Binding("pagedown", "page_down", "Page down", show=False),
        Binding("question_mark", "app.help", "Help", show=False),
    ]

    class Copied(Message):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class ForkWanted(Message):
        def __init__(self, message_id: str) -> None:
            super().__init__()
            self.message_id = message_id

    class SearchWanted(Message):
        pass

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self.story: Story | None = None
        self._first = 0
        self._entries: list[Entry] = []
        """The window: what is laid out, from the first of it in the story on."""
        self._by_key: dict[str, Entry] = {}
        self._tops: list[int] = [0]
        self._lines: list[Strip] = []
        self._page: Page | None = None
        self._dirty = True
        self._scheduled = False
        self._took = 0.0
        self._follow = True
        self._cursor: str | None = None
        self._needle = ""
        self._found: list[int] = []
        self._empty = ""

    # --- what it shows -----------------------------------------------------------------------------

    def open(self, story: Story, *, empty: str = "") -> None:
        """Show a session, from its end."""
        self.story, self._empty = story, empty
        self._cursor, self._needle, self._found = None, "", []
        self._show_end()

    def _show_end(self) -> None:
        assert self.story is not None
        self._follow = True
        self._lay_out(len(self.story.keys) - LAID_OUT, len(self.story.keys))

    def _lay_out(self, first: int, end: int) -> None:
        """Have these of the story's entries in the window, and no others."""
        assert self.story is not None
        first, end = max(first, 0), min(end, len(self.story.keys))
        known = self._by_key
        self._first = first
        self._entries = [known.get(key) or self.story.entry(key) for key in self.story.keys[first:end]]
        self._by_key = {entry.key: entry for entry in self._entries}
        self._change()

    def changed(self, keys: Iterable[str]) -> None:
        """These are new, or others than before."""
        assert self.story is not None
        for key in keys:
            entry = self._by_key.get(key)
            if entry is not None:
                entry.touch()
                self._soon()
            elif self._end == len(self.story.keys) - 1:
                self._by_key[key] = self.story.entry(key)
                self._entries.append(self._by_key[key])
                self._soon()
            elif self.newer:
                self._soon()

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

    @property
    def _end(self) -> int:
        return self._first + len(self._entries)

    @property
    def older(self) -> int:
        """How many entries stand before the window."""
        return self._first

    @property
    def newer(self) -> int:
        """How many stand behind it."""
        return 0 if self.story is None else len(self.story.keys) - self._end

    @property
    def laid_out(self) -> int:
        return len(self._entries)

    def _change(self) -> None:
        """Lay out what is in the window."""
        self._dirty = False
        if self._follow and len(self._entries) > MOST:
            dropped = len(self._entries) - LAID_OUT
            for entry in self._entries[:dropped]:
                del self._by_key[entry.key]
            self._first += dropped
            self._entries = self._entries[dropped:]
        width = self.scrollable_content_region.width
        if width <= 0 or self.story is None:
            return
        page = Page(min(width - GUTTER, MEASURE), palette_of(self.app))
        if page == self._page:
            page = self._page
        self._page = page
        lines: list[Strip] = []
        self._tops = []
        if self.older:
            lines += page.text(f"⋮ {self.older:,} before", page.palette.soft)
        elif not self._entries and self._empty:
            lines += page.text(self._empty, page.palette.soft)
        before: Entry | None = None
        for entry in self._entries:
            own = entry.lines(page)
            if own and lines and not entry.stands_close(before):
                lines.append(Strip([]))
            self._tops.append(len(lines))
            lines += own
            before = entry if own else before
        if self.newer:
            lines += [Strip([]), *page.text(f"⋮ {self.newer:,} more", page.palette.soft)]
        self._lines = lines
        self.virtual_size = Size(width, len(lines))
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
        self._follow = at_end and not self.newer
        if new_value < 3 and self.older and round(new_value) < round(old_value):
            self.call_later(self.load_older)
        elif at_end and self.newer:
            self.call_later(self.load_newer)

    def load_older(self) -> None:
        """Lay out more of what came before; what is seen stays where it is."""
        if self.older:
            first = max(0, self.older - LAID_OUT)
            self._keep_seen(first, min(self._end, first + MOST))

    def load_newer(self) -> None:
        """The same with what comes behind the window."""
        if self.newer:
            end = self._end + LAID_OUT
            self._keep_seen(max(self._first, end - MOST), end)

    def _keep_seen(self, first: int, end: int) -> None:
        """Have another window, and what is at the top of the screen again there."""
        seen = self.scroll_offset.y
        at = max(bisect_right(self._tops, seen) - 1, 0)
        entry, within = (self._entries[at], seen - self._tops[at]) if self._entries else (None, 0)
        self._follow = False
        self._lay_out(first, end)
        if entry is not None and entry.key in self._by_key:
            self.scroll_to(y=self._span(entry)[0] + within, animate=False)

    def action_begin(self) -> None:
        if self.story is not None and self.story.keys:
            self._bring(0)
            self._point(self.story.keys[0])
        self.scroll_to(y=0, animate=False)

    def action_end(self) -> None:
        if self.newer:
            self._show_end()
        self._follow = True
        if self._entries:
            self._cursor = self._entries[-1].key
        self.scroll_to(y=self.max_scroll_y, animate=False)
        self.refresh()

    # --- the cursor --------------------------------------------------------------------------------

    def on_focus(self) -> None:
        if self._cursor not in self._by_key and self._entries:
            self._cursor = self._entries[-1].key
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    @property
    def pointed(self) -> Entry | None:
        """What the cursor stands on."""
        return None if self._cursor is None else self._by_key.get(self._cursor)

    def _place(self) -> int:
        pointed = self.pointed
        return len(self._entries) - 1 if pointed is None else self._entries.index(pointed)

    def action_previous(self) -> None:
        self._move(-1)

    def action_next(self) -> None:
        self._move(1)

    def _move(self, by: int) -> None:
        if not self._entries:
            return
        at, pointed = self._place(), self.pointed
        if pointed is not None and self._scrolls_within(pointed, by):
            return
        if at + by < 0 and self.older:
            self.load_older()
            at = self._place()
        elif at + by >= len(self._entries) and self.newer:
            self.load_newer()
            at = self._place()
        self._point(self._entries[max(0, min(at + by, len(self._entries) - 1))].key)

    def _scrolls_within(self, entry: Entry, by: int) -> bool:
        """What is longer than the screen is read to its end before the cursor leaves it."""
        top, end = self._span(entry)
        seen, height = self.scroll_offset.y, self.scrollable_content_region.height
        if by > 0 and top <= seen + height - 1 and end > seen + height:
            self.scroll_to(y=min(seen + height // 2, end - height), animate=False)
            return True
        if by < 0 and end > seen and top < seen:
            self.scroll_to(y=max(seen - height // 2, top), animate=False)
            return True
        return False

    def _span(self, entry: Entry) -> tuple[int, int]:
        at = self._entries.index(entry)
        top = self._tops[at]
        return top, top + len(entry.lines(self._page)) if self._page is not None else top

    def _point(self, key: str) -> None:
        self._cursor = key
        entry = self._by_key.get(key)
        if entry is not None and self._page is not None:
            top, end = self._span(entry)
            seen, height = self.scroll_offset.y, self.scrollable_content_region.height
            if top < seen or end - top >= height:
                self.scroll_to(y=max(top - 1, 0), animate=False)
            elif end > seen + height:
                self.scroll_to(y=end - height, animate=False)
        self.refresh()

    def _bring(self, at: int) -> None:
        """Have a place of the story in the window."""
        if not self._first <= at < self._end:
            self._follow = False
            self._lay_out(at - LAID_OUT // 2, at + LAID_OUT // 2)

    def action_unfold(self) -> None:
        entry = self.pointed
        if entry is not None and entry.folds:
            entry.folded = not entry.folded
            self._keep_place(entry)

    def action_unfold_all(self) -> None:
        folding = [entry for entry in self._entries if entry.folds]
        folded = any(entry.folded for entry in folding)
        for entry in folding:
            entry.folded = not folded
        self._keep_place(self.pointed)

    def _keep_place(self, entry: Entry | None) -> None:
        follow, self._follow = self._follow, False
        self._change()
        self._follow = follow and self.scroll_offset.y >= self.max_scroll_y
        if entry is not None:
            self._point(entry.key)

    def action_copy(self) -> None:
        entry = self.pointed
        if entry is not None:
            self.post_message(self.Copied(entry.text))

    def action_fork(self) -> None:
        entry = self.pointed
        id = None if entry is None or self.story is None else self.story.forkable(entry.key)
        if id is not None:
            self.post_message(self.ForkWanted(id))

    def on_click(self, event: Any) -> None:
        y = event.y + self.scroll_offset.y
        at = bisect_right(self._tops, y) - 1
        if 0 <= at < len(self._entries) and not self.screen.selections:
            entry = self._entries[at]
            self._cursor = entry.key
            if entry.folds and y == self._tops[at]:
                self.action_unfold()
            self.refresh()

    # --- searching ---------------------------------------------------------------------------------

    def action_search(self) -> None:
        self.post_message(self.SearchWanted())

    def search(self, needle: str) -> int:
        """Mark what contains it, and point to the last; how many there are."""
        needle = needle.casefold()
        if self.story is not None:
            keys = self.story.keys
            # Whatever contains more of it contains less of it, too.
            within = self._found if self._needle and needle.startswith(self._needle) else range(len(keys))
            found = [at for at in within if needle in self.story.text(keys[at]).casefold()] if needle else []
            self._needle, self._found = needle, found
            if found:
                self._show_match(found[-1])
        self.refresh()
        return len(self._found)

    def action_found(self, by: int) -> None:
        """To the next one upwards (-1) or downwards (1), and round."""
        if self._found and self.story is not None:
            pointed = self.pointed
            here = self._end if pointed is None else self._first + self._entries.index(pointed)
            beyond = [at for at in self._found if (at - here) * by > 0] or self._found
            self._show_match(beyond[-1] if by < 0 else beyond[0])

    def _show_match(self, at: int) -> None:
        assert self.story is not None
        self._bring(at)
        entry = self._entries[at - self._first]
        if entry.folds and entry.folded:
            entry.folded = False
            self._keep_place(entry)
        self._follow = False
        self._point(entry.key)
        if self._page is None:
            return
        top, _ = self._span(entry)
        for number, line in enumerate(entry.lines(self._page)):
            if self._needle in line.text.casefold():
                height = self.scrollable_content_region.height
                if not self.scroll_offset.y <= top + number < self.scroll_offset.y + height:
                    self.scroll_to(y=max(top + number - height // 2, 0), animate=False)
                return

    # --- drawing -----------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        at = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        base = self.rich_style
        if at >= len(self._lines) or self._page is None:
            return Strip.blank(width, base)
        palette = self._page.palette
        line = self._lines[at]
        line = self._marked(line)
        gutter = Segment(" " * GUTTER)
        pointed = self.pointed
        if pointed is not None and self.has_focus:
            top, end = self._span(pointed)
            if top <= at < end:
                gutter = Segment("▎ ", Style.parse(palette.accent))
        selection = self.text_selection
        whole = Strip([gutter, *line])
        if selection is not None and (span := selection.get_span(at)) is not None:
            whole = self._selected(whole, *span)
        whole = whole.crop_extend(0, width, base).apply_style(base)
        return whole.apply_offsets(0, at)

    def _marked(self, line: Strip) -> Strip:
        if not self._needle:
            return line
        text = line.text.casefold()
        found = text.find(self._needle)
        if found < 0 or len(text) != len(line.text):
            return line
        assert self._page is not None
        look = Style.parse(f"{self._page.palette.paper} on {self._page.palette.wait}")
        start = line.index_to_cell_position(found)
        end = line.index_to_cell_position(found + len(self._needle))
        return _styled(line, start, end, look)

    def _selected(self, line: Strip, start: int, end: int) -> Strip:
        length = len(line.text)
        end = length if end == -1 else min(end, length)
        if start >= end:
            return line
        look = self.screen.get_component_rich_style("screen--selection")
        return _styled(
            line, line.index_to_cell_position(min(start, length)), line.index_to_cell_position(end), look
        )

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        lines = (" " * GUTTER + line.text for line in self._lines)
        return selection.extract("\n".join(lines)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()


def _styled(line: Strip, start: int, end: int, look: Style) -> Strip:
    inside = Strip([Segment(text, (style or Style()) + look) for text, style, _ in line.crop(start, end)])
    return Strip([*line.crop(0, start), *inside, *line.crop(end)])
