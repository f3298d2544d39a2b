"""The dialog for an error that needs reading: what happened, the agent's own words, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from antiphon.tui.screens.dialogs import CSS
from antiphon.tui.trouble import Trouble


class TroubleScreen(ModalScreen[None]):
    """Stays until the user closes it."""

    DEFAULT_CSS = (
        CSS.format(name="TroubleScreen", width=84)
        + """
    TroubleScreen {
        & .title { color: $error; }
        & VerticalScroll { height: auto; max-height: 60vh; scrollbar-size-vertical: 1; }
        & .label { color: $foreground 60%; margin: 1 0 0 0; }
        & .advice { text-style: bold; }
        & .output { background: $panel; padding: 0 1; }
    }
    """
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Close"),
        Binding("y", "copy", "Copy"),
    ]

    def __init__(self, title: str, trouble: Trouble, copy: Callable[[str], None]) -> None:
        """`copy`: copies a text to the clipboard."""
        super().__init__()
        self._title = title
        self._trouble = trouble
        self._copy = copy

    def compose(self) -> ComposeResult:
        trouble = self._trouble
        with Vertical():
            yield Static(self._title, markup=False, classes="title")
            with VerticalScroll():
                yield Static(trouble.message, markup=False)
                if trouble.details:
                    yield Static("In the agent's words", markup=False, classes="label")
                    yield Static(trouble.details, markup=False)
                if trouble.stderr:
                    yield Static("Last output of the agent", markup=False, classes="label")
                    yield Static(trouble.stderr, markup=False, classes="output")
                if trouble.advice:
                    yield Static("What you can do", markup=False, classes="label")
                    yield Static(trouble.advice, markup=False, classes="advice")
            with Horizontal():
                yield Button("Copy  y", id="copy", compact=True)
                yield Button("Close  esc", id="close", variant="primary", compact=True)

    def on_mount(self) -> None:
        self.query_one("#close", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "copy":
            self.action_copy()
        else:
            self.dismiss()

    def action_copy(self) -> None:
        self._copy(self._trouble.text(self._title))
