"""The commands that a session offers, while one types a slash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from antiphon.schema import v2
from antiphon.tui.plain import plain_line

MOST = 50


class CommandsPopup(OptionList, can_focus=False):
    DEFAULT_CSS = """
    CommandsPopup {
        text-wrap: nowrap; text-overflow: ellipsis;
        display: none; height: auto; max-height: 8; padding: 0 1; margin: 0 1;
        border: none; background: $panel; scrollbar-size-vertical: 1;
        & > .option-list--option-highlighted { background: $block-cursor-background; }
    }
    """

    def __init__(self, **named: Any) -> None:
        super().__init__(markup=False, **named)
        self.commands: Sequence[v2.AvailableCommand] = ()
        self._offered: list[v2.Command] = []

    @property
    def chosen(self) -> v2.Command | None:
        """The one that is pointed to, while it is shown."""
        if not self.display or self.highlighted is None or self.highlighted >= len(self._offered):
            return None
        return self._offered[self.highlighted]

    def offer(self, written: str) -> None:
        """Show what may be meant by what is written."""
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
