"""The search bar of the transcript."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widgets import Input, Static

from antiphon.tui.widgets.transcript import Transcript

SOON = 0.12
"""Seconds after the last key before a search begins, because a search in a long session takes time."""


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

    def __init__(self, transcript: Transcript, **named: Any) -> None:
        super().__init__(**named)
        self._transcript = transcript
        self._field = Input(placeholder="text in this session", compact=True)
        self._count = Static("", markup=False)
        self._begins: Timer | None = None

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
        self._search()
        self._transcript.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._begins is not None:
            self._begins.stop()
        self._begins = self.set_timer(SOON, self._search)

    def _search(self) -> None:
        needle = self._field.value
        count = self._transcript.search(needle)
        words = "no matches" if not count else "1 match" if count == 1 else f"{count:,} matches"
        self._count.update(f"{words} · Enter: previous" if needle else "")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_found(-1)

    def action_found(self, by: int) -> None:
        self._transcript.action_found(by)
