"""Where in a story some words are."""

from __future__ import annotations

from collections.abc import Sequence

from antiphon.tui.story import Story


class Matches:
    def __init__(self, story: Story) -> None:
        self._story = story
        self.needle = ""
        self.places: list[int] = []
        """The entries that contain it, in the order of the story."""

    def look_for(self, needle: str) -> None:
        needle, keys = needle.casefold(), self._story.keys
        # Whatever contains more of it contains less of it, too.
        narrower = self.needle and needle.startswith(self.needle)
        within: Sequence[int] = self.places if narrower else range(len(keys))
        self.needle = needle
        self.places = (
            [at for at in within if needle in self._story.text(keys[at]).casefold()] if needle else []
        )

    def beyond(self, here: int, by: int) -> int | None:
        """The next one upwards (-1) or downwards (1), and round."""
        beyond = [at for at in self.places if (at - here) * by > 0] or self.places
        return (beyond[-1] if by < 0 else beyond[0]) if beyond else None
