"""Dialogs: a confirmation, a line of text, a choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option

from antiphon.client import ClientSession, arranged
from antiphon.engine import offered_values
from antiphon.schema import v2
from antiphon.transcripts import option_value
from antiphon.tui.text.plain import plain_line

T = TypeVar("T")

CSS = """
    {name} {{
        align: center middle; background: $background 60%;
        & > Vertical {{
            width: {width}; max-width: 94%; height: auto; max-height: 100%; padding: 1 2;
            background: $surface; border: round $border;
        }}
        & Static {{ width: 100%; }}
        & .title {{ text-style: bold; margin: 0 0 1 0; }}
        & Horizontal {{ height: auto; margin: 1 0 0 0; align-horizontal: right; }}
        & Button {{ margin: 0 0 0 1; min-width: 10; }}
        & OptionList, & OptionList:focus {{
            border: none; background: $surface; background-tint: transparent; max-height: 20; padding: 0;
        }}
        & Input {{ border: round $border; background: $surface; }}
        & Input:focus {{ border: round $accent; background-tint: transparent; }}
    }}
"""


class Confirm(ModalScreen[bool]):
    """Asks for yes or no. The default is no."""

    DEFAULT_CSS = CSS.format(name="Confirm", width=56)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape", "answer(False)", "No"),
        Binding("left,right", "app.focus_next", show=False),
    ]

    def __init__(self, question: str, about: str, *, yes: str = "Yes") -> None:
        super().__init__()
        self._question, self._about, self._yes = question, about, yes

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._question, markup=False, classes="title")
            yield Static(self._about, markup=False)
            with Horizontal():
                yield Button("Cancel", id="no", compact=True)
                yield Button(self._yes, id="yes", variant="error", compact=True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class AskLine(ModalScreen[str | None]):
    """Asks for one line of text."""

    DEFAULT_CSS = CSS.format(name="AskLine", width=64)
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Cancel")]

    def __init__(self, title: str, value: str = "") -> None:
        super().__init__()
        self._title, self._value = title, value

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._title, markup=False, classes="title")
            yield Input(value=self._value, max_length=200)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)

    def action_leave(self) -> None:
        self.dismiss(None)


class Choose(ModalScreen[T | None], Generic[T]):
    """Asks for one of several choices."""

    DEFAULT_CSS = CSS.format(name="Choose", width=64)
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Cancel")]

    def __init__(self, title: str, choices: Sequence[tuple[Content, T]], *, at: int = 0) -> None:
        super().__init__()
        self._title, self._choices, self._at = title, choices, at

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._title, markup=False, classes="title")
            yield OptionList(*(Option(shown) for shown, _ in self._choices), markup=False)

    def on_mount(self) -> None:
        self.query_one(OptionList).highlighted = self._at if self._choices else None

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._choices[event.option_index][1])

    def action_leave(self) -> None:
        self.dismiss(None)


# --- options of a session ----------------------------------------------------------------------

Known = v2.SessionConfigSelect | v2.SessionConfigBoolean


def choose_option(app: App[Any], session: ClientSession, change: Callable[[str, str | bool], None]) -> None:
    """Ask which option to change, and to which value."""

    def picked(option: Any) -> None:
        if isinstance(option, v2.SessionConfigBoolean):
            change(option.config_id, not option.current_value)
        elif isinstance(option, v2.SessionConfigSelect):
            values = [(described(each.name, each.description), each.value) for each in offered_values(option)]
            at = next((at for at, (_, each) in enumerate(values) if each == option.current_value), 0)
            app.push_screen(
                Choose(plain_line(option.name, limit=60), values, at=at),
                lambda value: None if value is None else change(option.config_id, value),
            )

    options = [option for option in arranged(session.config_options) if isinstance(option, Known)]
    if options:
        app.push_screen(Choose("Options", [(_option(each), each) for each in options]), picked)
    else:
        app.notify("This agent has no options.", markup=False)


def _option(option: Known) -> Content:
    value = plain_line(option_value(option), limit=60)
    about = f"\n{plain_line(option.description, limit=200)}" if option.description else ""
    return Content.assemble(
        plain_line(option.name, limit=60), "  ", (value, "$accent"), (about, "$foreground 60%")
    )


def described(name: str, about: str | None) -> Content:
    """Return a name and its description on one line."""
    shown = f"  {plain_line(about, limit=200)}" if about else ""
    return Content.assemble(plain_line(name, limit=120), (shown, "$foreground 60%"))
