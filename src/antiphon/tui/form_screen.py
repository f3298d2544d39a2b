"""A form that the agent asks to be filled in."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from antiphon.client import Elicitation, Reply
from antiphon.engine import UnknownField
from antiphon.errors import FormInvalid
from antiphon.tui.dialogs import CSS
from antiphon.tui.form_fields import FormField
from antiphon.tui.plain import plain, plain_line


class FormScreen(ModalScreen[Reply | None]):
    """Its result is the answer; None leaves the question open."""

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
        """A field is seen with its title, not the box alone that has the focus."""
        field = next((each for each in event.widget.ancestors if isinstance(each, FormField)), None)
        if field is not None:
            scroll = self.query_one(VerticalScroll)
            self.call_after_refresh(
                self.call_after_refresh, scroll.scroll_to_widget, field, animate=False, top=True
            )

    @on(Button.Pressed, "#send")
    def action_send(self) -> None:
        if any(isinstance(each.field, UnknownField) and each.field.required for each in self._fields):
            self.notify("It wants something of a kind that is not known here.", markup=False)  # ELIC-09
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
