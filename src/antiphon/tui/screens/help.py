"""The help screen, and the list of keys that the documentation shows too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from antiphon.tui.screens.dialogs import CSS
from antiphon.tui.text.palette import palette_of

KEYS: dict[str, list[tuple[str, str]]] = {
    "Anywhere": [
        ("F1", "this help; ? too, outside of text"),
        ("Ctrl-P", "all commands, by name"),
        ("Ctrl-C", "stop the turn; again: quit"),
        ("Ctrl-Q", "quit; the session goes on at the hub"),
        ("Ctrl-T", "light or dark"),
        ("Tab", "to the answers, the queue, the transcript, and back"),
    ],
    "Writing": [
        ("Enter", "send; while the agent works: into the queue"),
        ("Ctrl-J", "a new line; Alt-Enter and Shift-Enter too, where the terminal tells them apart"),
        ("Ctrl-S", "steer: into the turn that is at work"),
        ("Ctrl-G", "interrupt: instead of the turn that is at work"),
        ("Esc", "stop the turn"),
        ("/", "commands of the agent; Tab completes"),
        ("Up, Down", "prompts of before"),
        ("PgUp, PgDn", "scroll the transcript"),
        ("Ctrl-F", "search"),
        ("Ctrl-B", "sidebar"),
        ("Ctrl-O", "options and modes"),
        ("Ctrl-L", "sessions"),
        ("Ctrl-N", "a new session"),
        ("Ctrl-R", "rename the session"),
    ],
    "Answering": [
        ("1…9", "choose; y and n allow once and reject"),
        ("Up, Down, Enter", "the same, by pointing"),
        ("PgUp, PgDn", "read what is asked, where it is long"),
        ("Ctrl-S", "send a form; Esc leaves it for later"),
    ],
    "Transcript": [
        ("Up, Down", "from one part to the next; k and j too"),
        ("Enter", "unfold; e unfolds all"),
        ("y", "copy; text that was marked with the mouse: Ctrl-C"),
        ("f", "fork the session after this message"),
        ("/", "search; n upwards, N downwards"),
        ("g, G", "to the beginning, to the end"),
        ("Esc", "back to writing"),
    ],
    "Queue": [
        ("e", "edit; Enter puts it back"),
        ("Alt-Up, Alt-Down", "move; K and J too"),
        ("d", "withdraw"),
        ("r", "go on, after a stop"),
    ],
    "Sessions": [
        ("Enter", "open"),
        ("n", "new"),
        ("r", "rename"),
        ("f", "fork"),
        ("d", "delete, once you agree"),
        ("q", "quit"),
    ],
}


def bound(widget: type[Any]) -> Iterator[str]:
    """The keys that a class of ours binds, as Textual names them."""
    for binding in widget.__dict__.get("BINDINGS", ()):
        assert isinstance(binding, Binding)
        yield from binding.key.split(",")


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
