"""The panel with queued and pending prompts, which can be edited, moved and withdrawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from antiphon.tui.prompts import QueuedEntry
from antiphon.tui.text.plain import plain_line

MOST = 100


class QueuePanel(OptionList):
    DEFAULT_CSS = """
    QueuePanel {
        display: none; height: auto; max-height: 7; margin: 1 1 0 1; padding: 0 1;
        border: none; border-left: outer $border; background: $surface; scrollbar-size-vertical: 1;
        & > .option-list--option-highlighted { background: $surface; }
        &:focus > .option-list--option-highlighted { background: $block-cursor-background; }
        &:focus { border: none; border-left: outer $accent; background-tint: transparent; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e,enter", "want('edit')", "Edit"),
        Binding("alt+up,K", "want('move', -1)", "Move up", key_display="⌥↑"),
        Binding("alt+down,J", "want('move', 1)", "Move down", key_display="⌥↓"),
        Binding("d,delete", "want('withdraw')", "Withdraw"),
        Binding("r", "want('resume')", "Resume"),
    ]

    @dataclass
    class Wanted(Message):
        """The user wants to `edit`, `withdraw` or `move` an entry, or to `resume` the queue."""

        what: str
        entry: QueuedEntry
        by: int = 0

    def __init__(self, **named: Any) -> None:
        super().__init__(markup=False, **named)
        self.entries: list[QueuedEntry] = []

    def show(self, entries: Sequence[QueuedEntry]) -> None:
        shown = list(entries)[:MOST]
        if shown == self.entries:
            return
        at, pointed = self.highlighted, self._pointed()
        self.entries = shown
        self.clear_options()
        self.add_options([Option(_line(number, entry)) for number, entry in enumerate(shown, 1)])
        places = [place for place, entry in enumerate(shown) if pointed and entry.id == pointed.id]
        self.highlighted = places[0] if places else (min(at or 0, len(shown) - 1) if shown else None)
        self.display = bool(shown)

    def _pointed(self) -> QueuedEntry | None:
        at = self.highlighted
        return None if at is None or at >= len(self.entries) else self.entries[at]

    def action_want(self, what: str, by: int = 0) -> None:
        entry = self._pointed()
        if entry is not None:
            self.post_message(self.Wanted(what, entry, by))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_want("edit")


def _line(number: int, entry: QueuedEntry) -> Content:
    if entry.pending:
        return Content.assemble((f"{entry.pending}  ", "$warning"), plain_line(entry.text, limit=200))
    return Content.assemble(
        (f"{number} queued  ", "$accent"),
        (f"{entry.sender}: " if entry.sender else "", "$warning"),
        plain_line(entry.text, limit=200),
    )
