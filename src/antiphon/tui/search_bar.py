"""Where one writes what to search the transcript for."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static


class SearchBar(Horizontal):
    DEFAULT_CSS = """
    SearchBar {
        display: none; height: 1; padding: 0 2; background: $panel;
        & Static { width: auto; color: $foreground 70%; }
        & Input, & Input:focus {
            width: 1fr; border: none; height: 1; padding: 0 1;
            background: $panel; background-tint: transparent;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,ctrl+n", "found(1)", "Next", show=False),
        Binding("up", "found(-1)", "Previous"),
    ]

    class Wanted(Message):
        def __init__(self, needle: str) -> None:
            super().__init__()
            self.needle = needle

    class Next(Message):
        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self._field = Input(placeholder="words in this session", compact=True)
        self._count = Static("", markup=False)

    def compose(self) -> ComposeResult:
        yield Static("Search", markup=False)
        yield self._field
        yield self._count

    def open(self) -> None:
        self.display = True
        self._field.focus()

    def close(self) -> None:
        self.display = False
        self._field.value = ""

    def tell(self, count: int) -> None:
        words = "nothing" if not count else "1 place" if count == 1 else f"{count:,} places"
        self._count.update(f"{words} · enter for the one before" if self._field.value else "")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Wanted(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Next(-1))

    def action_found(self, by: int) -> None:
        self.post_message(self.Next(by))
