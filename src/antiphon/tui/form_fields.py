"""The fields of a form, each as the widget that fits its kind."""

from __future__ import annotations

from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Checkbox, Input, RadioButton, RadioSet, Select, SelectionList, Static

from antiphon.engine import (
    BooleanField,
    ChoiceField,
    ChoicesField,
    Field,
    IntegerField,
    NumberField,
    Option,
    TextField,
    UnknownField,
)
from antiphon.tui.plain import plain_line

FEW = 8
"""Options that stand below one another; more are unfolded when wanted."""
MOST = 500


class FormField(Vertical):
    DEFAULT_CSS = """
    FormField {
        height: auto; margin: 0 0 1 0;
        & .about { color: $foreground 65%; }
        & .problem { color: $error; display: none; }
        & Input, & RadioSet, & SelectionList { border: round $border; background: $surface; height: auto; }
        & Input { height: 3; }
        & Input:focus, & RadioSet:focus, & SelectionList:focus {
            border: round $accent; background-tint: transparent;
        }
        & RadioSet, & SelectionList { max-height: 10; width: 100%; }
        & Checkbox { border: none; padding: 0; background: transparent; }
    }
    """

    def __init__(self, field: Field) -> None:
        super().__init__()
        self.field = field
        self._problem = Static("", markup=False, classes="problem")
        self._widget = _widget(field)

    def compose(self) -> ComposeResult:
        title = plain_line(self.field.title, limit=120)
        needed = Content.styled("  needed", "$warning") if self.field.required else Content("")
        if not isinstance(self.field, BooleanField):
            yield Static(Content.styled(title, "bold") + needed)
        if self.field.description:
            yield Static(plain_line(self.field.description, limit=600), markup=False, classes="about")
        yield self._widget
        if hint := _hint(self.field):
            yield Static(hint, markup=False, classes="about")
        yield self._problem

    @property
    def value(self) -> Any:
        """What was filled in; None where nothing was."""
        match self._widget:
            case Checkbox() as box:
                return box.value
            case RadioSet() as radio:
                options = self._options()
                return options[radio.pressed_index].value if radio.pressed_index >= 0 else None
            case Select() as select:
                return None if select.value is Select.NULL else select.value
            case SelectionList() as several:
                chosen = list(several.selected)
                return chosen or None
            case Input() as line:
                return _read(self.field, line.value)
        return None

    def _options(self) -> tuple[Option, ...]:
        assert isinstance(self.field, ChoiceField)
        return self.field.options

    def complain(self, problem: str | None) -> None:
        self._problem.update(f"It {problem}." if problem else "")
        self._problem.display = problem is not None


def _widget(field: Field) -> Widget:
    match field:
        case UnknownField():
            return Static("Of a kind that is not known here; it is left out.", markup=False, classes="about")
        case BooleanField():
            return Checkbox(Content(plain_line(field.title, limit=120)), value=bool(field.default))
        case ChoiceField() if len(field.options) <= FEW:
            return RadioSet(
                *(RadioButton(_name(one), value=one.value == field.default) for one in field.options)
            )
        case ChoiceField():
            choices = [(_name(one), one.value) for one in field.options[:MOST]]
            known = any(one.value == field.default for one in field.options)
            return Select(choices, value=field.default if known else Select.NULL, prompt="choose")
        case ChoicesField():
            chosen = field.default if isinstance(field.default, list) else []
            return SelectionList(
                *((_name(one), one.value, one.value in chosen) for one in field.options[:MOST])
            )
    start = "" if field.default is None else plain_line(_spelled(field.default), limit=10_000)
    return Input(value=start, placeholder="may be left out" if not field.required else "")


def _spelled(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _name(option: Option) -> Content:
    about = f"  {plain_line(option.description, limit=120)}" if option.description else ""
    return Content.assemble(plain_line(option.title, limit=120), (about, "$foreground 60%"))


def _read(field: Field, written: str) -> Any:
    written = written.strip()
    if not written:
        return None
    if isinstance(field, IntegerField):
        return int(written) if written.removeprefix("-").isdecimal() and len(written) < 30 else written
    if isinstance(field, NumberField):
        try:
            return float(written)
        except ValueError:
            return written
    return written


def _hint(field: Field) -> str:
    match field:
        case TextField(format=None):
            return _range(field.min_length, field.max_length, "characters")
        case TextField():
            return plain_line(str(field.format), limit=40)
        case IntegerField() | NumberField():
            return _range(field.minimum, field.maximum) or "a number"
        case ChoicesField():
            return _range(field.min_items, field.max_items, "of them")
    return ""


def _range(least: float | None, most: float | None, of: str = "") -> str:
    if least is not None and most is not None:
        return f"{least:g} to {most:g} {of}".strip()
    if least is not None:
        return f"{least:g} or more {of}".strip()
    return "" if most is None else f"up to {most:g} {of}".strip()
