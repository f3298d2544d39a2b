"""The help: all keys, where they count."""

from __future__ import annotations

from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from antiphon.tui.dialogs import CSS
from antiphon.tui.keys import KEYS
from antiphon.tui.palette import palette_of


class HelpScreen(ModalScreen[None]):
    DEFAULT_CSS = (
        CSS.format(name="HelpScreen", width=84)
        + """
    HelpScreen VerticalScroll { height: auto; max-height: 80vh; scrollbar-size-vertical: 1; }
    """
    )
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,f1,question_mark,enter", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        with Vertical(), VerticalScroll():
            yield Static(self._table())

    def _table(self) -> Table:
        palette = palette_of(self.app)
        table = Table.grid(padding=(0, 3, 0, 0))
        table.add_column(style=f"bold {palette.ink}", no_wrap=True)
        table.add_column(style=palette.soft)
        for where, keys in KEYS.items():
            table.add_row(Text(where, f"bold {palette.accent}"))
            for key, what in keys:
                table.add_row(Text(key), Text(what))
            table.add_row("")
        return table
