"""The form of an elicitation, with a widget for each kind of field."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Checkbox, Input, RadioButton, RadioSet, Select, SelectionList, Static

from antiphon.client import Elicitation, Reply
from antiphon.engine import (
    BooleanField,
    ChoiceField,
    ChoicesField,
    Field,
    Option,
    UnknownField,
)
from antiphon.errors import FormInvalid
from antiphon.transcripts import field_limits, read_number
from antiphon.tui.screens.dialogs import CSS, described
from antiphon.tui.text.plain import plain, plain_line


class FormScreen(ModalScreen[Reply | None]):
    """Shows a form. Its result is the answer; `None` leaves the question open."""

    DEFAULT_CSS = (
        CSS.format(name="FormScreen", width=76)
        + """
    FormScreen VerticalScroll {
        height: auto; max-height: 50vh; scrollbar-size-vertical: 1; padding: 0 1 0 0;
    }
    """
    )
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", "Send", priority=True),
        Binding("escape", "later", "Later"),
    ]

    def __init__(self, elicitation: Elicitation) -> None:
        super().__init__()
        self.elicitation = elicitation
        self._fields = [FormField(field) for field in elicitation.fields]

    def compose(self) -> ComposeResult:
        with Vertical():
            asks = f"{plain_line(self.elicitation.agent, limit=60)} asks"
            yield Static(asks, markup=False, classes="about")
            yield Static(plain(self.elicitation.message[:2_000]), markup=False, classes="title")
            with VerticalScroll(can_focus=False):
                yield from self._fields
            with Horizontal():
                yield Button("Later  esc", id="later", compact=True)
                yield Button("Decline", id="decline", compact=True)
                yield Button("Send  ^s", id="send", variant="primary", compact=True)

    def on_mount(self) -> None:
        boxes = (box for field in self._fields for box in field.children if box.can_focus)
        self.set_focus(next(boxes, None), scroll_visible=False)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Scroll a field into view with its title, not only its focused widget."""
        field = next((each for each in event.widget.ancestors if isinstance(each, FormField)), None)
        if field is not None:
            scroll = self.query_one(VerticalScroll)
            self.call_after_refresh(
                self.call_after_refresh, scroll.scroll_to_widget, field, animate=False, top=True
            )

    @on(Button.Pressed, "#send")
    def action_send(self) -> None:
        if any(isinstance(each.field, UnknownField) and each.field.required for each in self._fields):
            self.notify(
                "A required field has an unknown type. Answer with another client.", markup=False
            )  # ELIC-09
            return
        values = {each.field.name: each.value for each in self._fields}
        try:
            self.dismiss(self.elicitation.accept(values))
        except FormInvalid as error:
            wrong = None
            for each in self._fields:
                problem = error.problems.get(each.field.name)
                each.complain(None if problem is None else plain_line(problem))
                wrong = wrong or (each if problem is not None else None)
            if wrong is not None:
                wrong.scroll_visible()

    @on(Button.Pressed, "#decline")
    def decline(self) -> None:
        self.dismiss(self.elicitation.decline())

    @on(Button.Pressed, "#later")
    def action_later(self) -> None:
        self.dismiss(None)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.focus_next()


FEW = 8
"""Options that are shown as a list; more are in a drop-down."""
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
        needed = Content.styled("  required", "$warning") if self.field.required else Content("")
        if not isinstance(self.field, BooleanField):
            yield Static(Content.styled(title, "bold") + needed)
        if self.field.description:
            yield Static(plain_line(self.field.description, limit=600), markup=False, classes="about")
        yield self._widget
        if hint := plain_line(field_limits(self.field)):
            yield Static(hint, markup=False, classes="about")
        yield self._problem

    @property
    def value(self) -> Any:
        """The value that was filled in, or `None`."""
        match self._widget:
            case Checkbox() as box:
                return box.value
            case RadioSet() as radio:
                assert isinstance(self.field, ChoiceField)
                return self.field.options[radio.pressed_index].value if radio.pressed_index >= 0 else None
            case Select() as select:
                return None if select.value is Select.NULL else select.value
            case SelectionList() as several:
                return list(several.selected) or None
            case Input() as line:
                return read_number(self.field, line.value.strip()) if line.value.strip() else None
        return None

    def complain(self, problem: str | None) -> None:
        self._problem.update(f"It {problem}." if problem else "")
        self._problem.display = problem is not None


def _widget(field: Field) -> Widget:
    match field:
        case UnknownField():
            return Static("Unknown type; this field is left out.", markup=False, classes="about")
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
    return Input(value=start, placeholder="optional" if not field.required else "")


def _spelled(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _name(option: Option) -> Content:
    return described(option.title, option.description)
