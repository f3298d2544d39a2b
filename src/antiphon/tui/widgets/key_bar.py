"""The keys at the foot of the screen: as many as fit, and always those of the most important actions.

This is one widget that draws all keys. Textual's Footer creates a widget per key whenever the focus moves.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.widget import Widget

KEPT = ("stop", "help")
"""Actions whose keys are shown even on a narrow screen."""


class Shown(NamedTuple):
    key: str
    """The name of the key in Textual."""
    name: str
    word: str
    action: str

    @property
    def width(self) -> int:
        return cell_len(f" {self.name} {self.word} ")


class KeyBar(Widget):
    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"foot--key", "foot--word"}
    DEFAULT_CSS = """
    KeyBar {
        dock: bottom; height: 1; background: $surface;
        & .foot--key { color: $footer-key-foreground; text-style: bold; }
        & .foot--word { color: $footer-description-foreground; }
    }
    """

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def _changed(self, _screen: object) -> None:
        self.refresh()

    def render(self) -> Text:
        line = Text(no_wrap=True, end="")
        key, word = self._look("foot--key"), self._look("foot--word")
        for shown in self._shown():
            line.append(f" {shown.name} ", key)
            line.append(f"{shown.word} ", word)
        return line

    def _look(self, part: str) -> Any:
        return self.get_component_rich_style(part, partial=True)

    def _shown(self) -> list[Shown]:
        keys: dict[str, Shown] = {}
        for _, binding, enabled, _ in self.screen.active_bindings.values():
            if binding.show and enabled and binding.action not in keys:
                name = self.app.get_key_display(binding)
                keys[binding.action] = Shown(binding.key, name, binding.description, binding.action)
        room = self.size.width - sum(key.width for key in keys.values() if key.action in KEPT)
        shown = []
        for key in keys.values():
            fits = key.action in KEPT or key.width <= room
            if fits:
                shown.append(key)
                room -= 0 if key.action in KEPT else key.width
        return shown

    def on_click(self, event: events.Click) -> None:
        """Press the key under the mouse."""
        end = 0
        for shown in self._shown():
            end += shown.width
            if event.x < end:
                self.app.simulate_key(shown.key)
                return
