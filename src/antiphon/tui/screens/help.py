"""The help screen, and the list of keys that the documentation shows too."""

from __future__ import annotations

from typing import ClassVar

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
        ("F1", "this help; also ? outside of text"),
        ("Ctrl-P", "all commands, by name"),
        ("Ctrl-C", "stop the turn; twice: quit"),
        ("Ctrl-Q", "quit; the hub keeps the session"),
        ("Ctrl-T", "light or dark"),
        ("Tab", "move between answers, queue, transcript and prompt"),
    ],
    "Prompt": [
        ("Enter", "send; while the agent works: queue"),
        ("Ctrl-J", "new line; also Alt-Enter and Shift-Enter, if the terminal sends them"),
        ("Ctrl-S", "steer: add the prompt to the current turn"),
        ("Ctrl-G", "interrupt: stop the current turn first"),
        ("Esc", "stop the turn"),
        ("/", "commands of the agent; Tab completes"),
        ("Up, Down", "earlier prompts"),
        ("PgUp, PgDn", "scroll the transcript"),
        ("Ctrl-F", "search"),
        ("Ctrl-B", "show or hide the sidebar"),
        ("Ctrl-O", "options and modes"),
        ("Ctrl-L", "list of sessions"),
        ("Ctrl-N", "new session"),
        ("Ctrl-R", "rename the session"),
    ],
    "Questions": [
        ("y", "allow once"),
        ("a", "allow always"),
        ("n", "reject"),
        ("N", "reject always"),
        ("1…9", "choose by number"),
        ("Up, Down, Enter", "choose from the list"),
        ("PgUp, PgDn", "scroll a long question"),
        ("Ctrl-S", "send a form; Esc leaves it for later"),
    ],
    "Transcript": [
        ("Up, Down", "previous or next entry; also k and j"),
        ("Enter", "fold or unfold; e for all"),
        ("y", "copy the entry; Ctrl-C copies text marked with the mouse"),
        ("f", "fork the session after this message"),
        ("/", "search; n upwards, N downwards"),
        ("g, G", "to the beginning, to the end"),
        ("Esc", "back to the prompt"),
    ],
    "Queue": [
        ("e", "edit; Enter saves"),
        ("Alt-Up, Alt-Down", "move; also K and J"),
        ("d", "withdraw, also a prompt that is not sent yet"),
        ("r", "resume after a stop"),
    ],
    "Sessions": [
        ("Enter", "open"),
        ("n", "new"),
        ("/", "search the contents of all sessions; also Ctrl-F"),
        ("r", "rename"),
        ("f", "fork"),
        ("a", "archive; in the archive: put back"),
        ("v", "archived sessions; again: the others"),
        ("d", "delete, after a confirmation"),
        ("q", "quit"),
    ],
}


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
