"""The transcript: a story view with a cursor, for folding, copying, forking and searching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from antiphon.tui.story.entries import Entry
from antiphon.tui.story.story import Story
from antiphon.tui.widgets.story_view import StoryView


class Matches:
    """The entries of a story that contain a text."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self.needle = ""
        self.places: list[int] = []
        """The indexes of the entries, in order."""

    def look_for(self, needle: str) -> None:
        needle, keys = needle.casefold(), self._story.keys
        # Entries that contain the longer text are among those that contain the shorter one.
        narrower = self.needle and needle.startswith(self.needle)
        within: Sequence[int] = self.places if narrower else range(len(keys))
        self.needle = needle
        self.places = (
            [at for at in within if needle in self._story.text(keys[at]).casefold()] if needle else []
        )

    def beyond(self, here: int, by: int) -> int | None:
        """Return the next match upwards (-1) or downwards (1), and wrap around."""
        beyond = [at for at in self.places if (at - here) * by > 0] or self.places
        return (beyond[-1] if by < 0 else beyond[0]) if beyond else None


class Transcript(StoryView, can_focus=True):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
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

    @dataclass
    class Copied(Message):
        text: str

    @dataclass
    class ForkWanted(Message):
        message_id: str

    class SearchWanted(Message):
        pass

    def __init__(self, story: Story, *, empty: str = "", **named: Any) -> None:
        super().__init__(story, empty=empty, **named)
        self._matches = Matches(story)
        self._cursor: str | None = None

    # --- the cursor --------------------------------------------------------------------------------

    def action_begin(self) -> None:
        if self.story.keys:
            self.bring(0)
            self._point(self.story.keys[0])
        self.scroll_to(y=0, animate=False)

    def action_end(self) -> None:
        self.follow()
        if self.window.entries:
            self._cursor = self.window.entries[-1].key
        self.refresh()

    def on_focus(self) -> None:
        if self.pointed is None and self.window.entries:
            self._cursor = self.window.entries[-1].key
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    @property
    def pointed(self) -> Entry | None:
        """The entry at the cursor."""
        return self.window.find(self._cursor)

    @property
    def pointed_lines(self) -> range:
        pointed = self.pointed
        return range(0) if pointed is None else range(*self.window.span(pointed))

    def _place(self) -> int:
        pointed = self.pointed
        return len(self.window.entries) - 1 if pointed is None else self.window.entries.index(pointed)

    def action_move(self, by: int) -> None:
        if not self.window.entries:
            return
        at, pointed = self._place(), self.pointed
        if pointed is not None and self._scrolls_within(pointed, by):
            return
        if at + by < 0 and self.window.older:
            self.load_older()
            at = self._place()
        elif at + by >= len(self.window.entries) and self.window.newer:
            self.load_newer()
            at = self._place()
        self._point(self.window.entries[max(0, min(at + by, len(self.window.entries) - 1))].key)

    def _scrolls_within(self, entry: Entry, by: int) -> bool:
        """Scroll within an entry that is longer than the screen, and return whether it did."""
        top, end = self.window.span(entry)
        seen, height = self.scroll_offset.y, self.scrollable_content_region.height
        if by > 0 and top <= seen + height - 1 and end > seen + height:
            self.scroll_to(y=min(seen + height // 2, end - height), animate=False)
            return True
        if by < 0 and end > seen and top < seen:
            self.scroll_to(y=max(seen - height // 2, top), animate=False)
            return True
        return False

    def _point(self, key: str) -> None:
        self._cursor = key
        entry = self.window.find(key)
        if entry is not None and self.window.page is not None:
            top, end = self.window.span(entry)
            seen, height = self.scroll_offset.y, self.scrollable_content_region.height
            if top < seen or end - top >= height:
                self.scroll_to(y=max(top - 1, 0), animate=False)
            elif end > seen + height:
                self.scroll_to(y=end - height, animate=False)
        self.refresh()

    def action_unfold(self) -> None:
        entry = self.pointed
        if entry is not None and entry.folds:
            entry.folded = not entry.folded
            self._keep_place(entry)

    def action_unfold_all(self) -> None:
        folding = [entry for entry in self.window.entries if entry.folds]
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
        id = None if entry is None else self.story.forkable(entry.key)
        if id is not None:
            self.post_message(self.ForkWanted(id))

    def on_click(self, event: Any) -> None:
        clicked = self.window.at(event.y + self.scroll_offset.y)
        if clicked is not None and not self.screen.selections:
            entry, line = clicked
            self._cursor = entry.key
            if entry.folds and line == 0:
                self.action_unfold()
            self.refresh()

    # --- searching ---------------------------------------------------------------------------------

    def action_search(self) -> None:
        self.post_message(self.SearchWanted())

    def search(self, needle: str) -> int:
        """Mark all matches, move the cursor to the last one, and return their number."""
        self._matches.look_for(needle)
        self.needle = self._matches.needle
        if self._matches.places:
            self._show_match(self._matches.places[-1])
        self.refresh()
        return len(self._matches.places)

    def reveal(self, key: str, words: str) -> None:
        """Move the cursor to an entry, and mark words in it and in all others."""
        if key in self.story.keys:
            self._matches.look_for(words)
            self.needle = self._matches.needle
            self.focus()
            self._show_match(self.story.keys.index(key))

    def action_found(self, by: int) -> None:
        """Move the cursor to the next match upwards (-1) or downwards (1)."""
        window, pointed = self.window, self.pointed
        here = window.end if pointed is None else window.first + window.entries.index(pointed)
        at = self._matches.beyond(here, by)
        if at is not None:
            self._show_match(at)

    def _show_match(self, at: int) -> None:
        self.bring(at)
        entry = self.window.entries[at - self.window.first]
        if entry.folds and entry.folded:
            entry.folded = False
            self._keep_place(entry)
        self._follow = False
        self._point(entry.key)
        if self.window.page is None:
            return
        top, _ = self.window.span(entry)
        for number, line in enumerate(entry.lines(self.window.page)):
            if self.needle in line.text.casefold():
                height = self.scrollable_content_region.height
                if not self.scroll_offset.y <= top + number < self.scroll_offset.y + height:
                    self.scroll_to(y=max(top + number - height // 2, 0), animate=False)
                return
