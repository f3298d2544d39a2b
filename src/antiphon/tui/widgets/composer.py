"""The composer, where the user writes to the agent, and its popup of slash commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, TextArea
from textual.widgets.option_list import Option

from antiphon.schema import v2
from antiphon.text_safety import typed_text
from antiphon.tui.history import History
from antiphon.tui.prompts import QueuedEntry
from antiphon.tui.text.plain import plain_line

MOST = 50


class CommandsPopup(OptionList, can_focus=False):
    DEFAULT_CSS = """
    CommandsPopup {
        text-wrap: nowrap; text-overflow: ellipsis;
        display: none; height: auto; max-height: 8; padding: 0 1; margin: 0 1;
        border: none; background: $panel; scrollbar-size-vertical: 1;
        & > .option-list--option-highlighted {
            color: $block-cursor-foreground; background: $block-cursor-background;
            text-style: $block-cursor-text-style;
        }
    }
    """

    def __init__(self, **named: Any) -> None:
        super().__init__(markup=False, **named)
        self.commands: Sequence[v2.AvailableCommand] = ()
        self._offered: list[v2.Command] = []

    @property
    def chosen(self) -> v2.Command | None:
        """The highlighted command, while the popup is shown."""
        if not self.display or self.highlighted is None or self.highlighted >= len(self._offered):
            return None
        return self._offered[self.highlighted]

    def offer(self, written: str) -> None:
        """Show the commands that match the text."""
        word = written[1:].casefold()
        wanted = written.startswith("/") and not any(character.isspace() for character in written)
        known = [command for command in self.commands if isinstance(command, v2.Command)]
        begins = [command for command in known if command.name.casefold().startswith(word)]
        others = [command for command in known if word in command.name.casefold() and command not in begins]
        self._offered = (begins + others)[:MOST] if wanted else []
        self.clear_options()
        longest = max((len(command.name) for command in self._offered), default=0)
        self.add_options([Option(_line(command, min(longest, 20))) for command in self._offered])
        self.display = bool(self._offered)
        self.highlighted = 0 if self._offered else None


def _line(command: v2.Command, width: int) -> Content:
    hint = command.input.hint if isinstance(command.input, v2.TextCommandInput) else ""
    return Content.assemble(
        (f"/{plain_line(command.name, limit=40):<{width}}  ", "$accent"),
        plain_line(command.description, limit=160),
        (f"   {plain_line(hint, limit=60)}" if hint else "", "italic $foreground 55%"),
    )


class Composer(TextArea):
    DEFAULT_CSS = """
    Composer {
        height: auto; max-height: 10; min-height: 3; padding: 0 1;
        border: round $border; background: $background;
        & .text-area--placeholder { color: $foreground 45%; }
        &:focus { border: round $accent; }
        &.-editing { border: round $warning; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send"),
        Binding("ctrl+j,alt+enter,shift+enter", "newline", "New line", show=False),
        Binding("ctrl+s", "send('steer')", "Steer"),
        Binding("ctrl+g", "send('interrupt')", "Interrupt"),
        Binding("tab", "complete", "Next", show=False),
        Binding("pageup", "scroll(-1)", "Page up", show=False),
        Binding("pagedown", "scroll(1)", "Page down", show=False),
    ]

    @dataclass
    class Sent(Message):
        """The user sent a prompt.

        delivery: what the prompt does while the session works
        edited: the queued prompt that it replaces
        """

        text: str
        delivery: str
        edited: QueuedEntry | None

    @dataclass
    class Scrolled(Message):
        by: int

    def __init__(self, popup: CommandsPopup, history: History, **named: Any) -> None:
        super().__init__(
            soft_wrap=True,
            show_line_numbers=False,
            highlight_cursor_line=False,
            placeholder="Write a prompt; / lists the commands",
            **named,
        )
        self._popup = popup
        self._history = history
        self.working: Callable[[], bool] = lambda: False
        """Returns whether the session works."""
        self.editing: QueuedEntry | None = None
        """The queued prompt that is being edited."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key in ("enter", "tab"):
            event.prevent_default()  # these keys have bindings

    async def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        self.insert(typed_text(event.text))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Allow steering and interrupting only while the session works."""
        return not parameters or action != "send" or self.working()

    def put(self, text: str) -> None:
        """Set the text, with the cursor at its end."""
        self.text = text
        self.move_cursor(self.document.end)

    def give_back(self, text: str) -> None:
        """Add a prompt that was not sent to what was written since."""
        self.put(f"{self.text.rstrip()}\n\n{text}" if self.text.strip() else text)

    def edit_queued(self, entry: QueuedEntry) -> None:
        self._edit(entry)
        self.put(entry.text)
        self.focus()

    def leave_editing(self) -> None:
        self._edit(None)
        self.put("")

    def _edit(self, entry: QueuedEntry | None) -> None:
        self.editing = entry
        self.set_class(entry is not None, "-editing")

    def on_text_area_changed(self) -> None:
        self._popup.offer(self.text)

    def action_newline(self) -> None:
        self.insert("\n")

    def action_send(self, delivery: str = "queue") -> None:
        command = self._popup.chosen if delivery == "queue" else None
        if command is not None and self.text != f"/{command.name}":
            self.action_complete()
            return
        text = self.text.strip()
        if text:
            self._history.add(text)
            self.text = ""
            self._popup.offer("")
            self.post_message(self.Sent(text, delivery, self.editing))
            self._edit(None)

    def action_complete(self) -> None:
        command = self._popup.chosen
        if command is None:
            self.screen.focus_next()
        else:
            self.put(f"/{command.name} " if command.input is not None else f"/{command.name}")

    def action_cursor_up(self, select: bool = False) -> None:
        if self._popup.display:
            self._popup.action_cursor_up()
        elif not select and self.cursor_at_first_line:
            self._recall(self._history.previous(self.text))
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        if self._popup.display:
            self._popup.action_cursor_down()
        elif not select and self.cursor_at_last_line:
            self._recall(self._history.next())
        else:
            super().action_cursor_down(select)

    def _recall(self, text: str | None) -> None:
        if text is not None:
            self.put(text)
            self._popup.offer("")

    def action_scroll(self, by: int) -> None:
        self.post_message(self.Scrolled(by))
