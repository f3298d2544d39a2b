"""The keys at the foot of the screen: as many as there is room for, and those that nobody should miss."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

KEPT = ("stop", "help")
"""Actions whose keys stay, however narrow it is."""
PADDING = 3
"""Columns around and between a key and its word."""


class Foot(Footer):
    def __init__(self) -> None:
        super().__init__(show_command_palette=False)
        self._made_for = 0

    def compose(self) -> ComposeResult:
        self._made_for = self.app.size.width
        keys = [key for key in super().compose() if isinstance(key, FooterKey)]
        room = self._made_for - sum(_width(key) for key in keys if key.action in KEPT)
        for key in keys:
            if key.action not in KEPT:
                if _width(key) > room:
                    continue
                room -= _width(key)
            yield key

    async def on_resize(self) -> None:
        if self.app.size.width != self._made_for:
            await self.recompose()


def _width(key: FooterKey) -> int:
    return len(key.key_display) + len(key.description) + PADDING
