"""Window: the entries of a story that are laid out, and their lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from textual.strip import Strip

from antiphon.tui.story.entries import Entry
from antiphon.tui.story.story import Story
from antiphon.tui.text.markdown import Page

LAID_OUT = 60
"""Entries that are laid out at first, and again each time the user scrolls to an end."""
MOST = 240
"""Entries that stay laid out while the view follows the end."""


class Window:
    def __init__(self, story: Story, *, empty: str = "") -> None:
        """`empty`: the text for a story without entries."""
        self.story = story
        self.first = 0
        """The index of the first entry in the story."""
        self.entries: list[Entry] = []
        self.lines: list[Strip] = []
        self.page: Page | None = None
        self._tops: list[int] = []
        self._by_key: dict[str, Entry] = {}
        self._empty = empty
        self.show_end()

    @property
    def end(self) -> int:
        return self.first + len(self.entries)

    @property
    def older(self) -> int:
        """The number of entries before the window."""
        return self.first

    @property
    def newer(self) -> int:
        """The number of entries after the window."""
        return len(self.story.keys) - self.end

    def find(self, key: str | None) -> Entry | None:
        return None if key is None else self._by_key.get(key)

    # --- which entries -----------------------------------------------------------------------------

    def show(self, first: int, end: int) -> None:
        """Show these entries of the story."""
        self.first, end = max(first, 0), min(end, len(self.story.keys))
        known = self._by_key
        self.entries = [known.get(key) or self.story.entry(key) for key in self.story.keys[self.first : end]]
        self._by_key = {entry.key: entry for entry in self.entries}

    def show_end(self) -> None:
        self.show(len(self.story.keys) - LAID_OUT, len(self.story.keys))

    def show_around(self, at: int) -> bool:
        """Show an entry of the story, and return whether the window had to move."""
        moves = not self.first <= at < self.end
        if moves:
            self.show(at - LAID_OUT // 2, at + LAID_OUT // 2)
        return moves

    def take(self, keys: Iterable[str]) -> bool:
        """Take new or changed entries, and return whether the view changes."""
        seen = False
        for key in keys:
            entry = self._by_key.get(key)
            if entry is not None:
                entry.touch()
            elif self.end == len(self.story.keys) - 1:
                self._by_key[key] = self.story.entry(key)
                self.entries.append(self._by_key[key])
            elif not self.newer:
                continue
            seen = True
        return seen

    def shorten(self) -> None:
        """Drop the oldest entries if there are too many."""
        if len(self.entries) > MOST:
            dropped = len(self.entries) - LAID_OUT
            for entry in self.entries[:dropped]:
                del self._by_key[entry.key]
            self.first += dropped
            self.entries = self.entries[dropped:]

    # --- their lines -------------------------------------------------------------------------------

    def lay_out(self, page: Page) -> None:
        if page == self.page:
            page = self.page  # the same object, so that entries keep their lines
        self.page = page
        lines: list[Strip] = []
        self._tops = []
        if self.older:
            lines += page.text(f"⋮ {self.older:,} earlier", page.palette.soft)
        elif not self.entries and self._empty:
            lines += page.text(self._empty, page.palette.soft)
        before: Entry | None = None
        for entry in self.entries:
            own = entry.lines(page)
            if own and lines and not entry.stands_close(before):
                lines.append(Strip([]))
            self._tops.append(len(lines))
            lines += own
            before = entry if own else before
        if self.newer:
            lines += [Strip([]), *page.text(f"⋮ {self.newer:,} more", page.palette.soft)]
        self.lines = lines

    def at(self, line: int) -> tuple[Entry, int] | None:
        """Return the entry on a line, and the line within the entry."""
        found = self.near(line)
        return found if found is not None and found[1] >= 0 else None

    def near(self, line: int) -> tuple[Entry, int] | None:
        """Do the same, but return the first entry and a negative line for a line above all entries."""
        place = max(bisect_right(self._tops, line) - 1, 0)
        return (self.entries[place], line - self._tops[place]) if self._tops else None

    def span(self, entry: Entry) -> tuple[int, int]:
        """Return the lines of an entry; an entry that is not laid out yet begins at the end."""
        place = self.entries.index(entry)
        if self.page is None or place >= len(self._tops):
            return len(self.lines), len(self.lines)
        top = self._tops[place]
        return top, top + len(entry.lines(self.page))
