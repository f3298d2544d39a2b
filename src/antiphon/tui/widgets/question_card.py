"""The card above the composer with a question of the agent."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from antiphon.client import Elicitation, Permission
from antiphon.schema import v2
from antiphon.transcripts import option_for, option_keys
from antiphon.tui.questions import PendingQuestion
from antiphon.tui.text.plain import plain, plain_line

TOO_SOON = 0.4
"""Seconds in which a key does not answer a new question, because the user typed it for something else."""
SHOWN = 4_000
"""Characters of a question that are shown; the rest is counted."""


class QuestionCard(Vertical):
    DEFAULT_CSS = """
    QuestionCard {
        display: none; height: auto; max-height: 55vh; margin: 1 1 0 1; padding: 0 1;
        background: $surface; border-left: outer $warning;
        & VerticalScroll { height: auto; max-height: 30vh; scrollbar-size-vertical: 1; }
        & Static { width: 100%; }
        & OptionList > .option-list--option-highlighted { background: $surface; }
        & OptionList:focus > .option-list--option-highlighted { background: $block-cursor-background; }
        & OptionList, & OptionList:focus {
            height: auto; max-height: 9; border: none; padding: 0;
            background: $surface; background-tint: transparent;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer('y')", "Yes"),
        Binding("a", "answer('a')", "Always"),
        Binding("n", "answer('n')", "No"),
        Binding("N", "answer('N')", "Never", show=False),
        Binding("1", "choose(1)", "Choose", key_display="1…9"),
        Binding("pageup", "scroll_about(-1)", "Page up", show=False),
        Binding("pagedown", "scroll_about(1)", "Page down", show=False),
        *(Binding(str(number), f"choose({number})", "Choose", show=False) for number in range(2, 10)),
    ]

    @dataclass
    class Chosen(Message):
        """The user chose an answer: an option of a permission, or `fill`, `agree` or `decline`."""

        pending: PendingQuestion
        choice: v2.PermissionOption | str

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self.pending: PendingQuestion | None = None
        self._about = Static("", markup=False)
        self._scroll = VerticalScroll(self._about, can_focus=False)
        self._options = OptionList(markup=False)
        self._choices: list[v2.PermissionOption | str] = []
        self._since = 0.0

    def compose(self) -> ComposeResult:
        yield self._scroll
        yield self._options

    def show(self, pending: PendingQuestion | None, *, more: int = 0) -> None:
        """Show a question, or hide the card."""
        fresh = pending is not self.pending
        self.pending = pending
        self.display = pending is not None
        if pending is None:
            return
        asked = pending.asked
        about = _permission(asked) if isinstance(asked, Permission) else _elicitation(asked)
        if more:
            rest = f"\n{more} more question{'s' if more > 1 else ''} after this one"
            about += Content.styled(rest, "$foreground 60%")
        self._about.update(about)
        if fresh:
            self._since = time.monotonic()
            self._fill(asked)
            self._scroll.scroll_home(animate=False)

    def _fill(self, asked: Permission | Elicitation) -> None:
        if isinstance(asked, Permission):
            self._choices = list(asked.options)
            keys = option_keys(asked.options)
            lines = [_option(at + 1, keys[at], option) for at, option in enumerate(asked.options)]
        else:
            self._choices = ["agree" if asked.url is not None else "fill", "decline"]
            first = "I agree to visit this address" if asked.url is not None else "Fill in the form"
            lines = [_line(1, "y", first, "$success"), _line(2, "n", "Decline", "$error")]
        self._options.clear_options()
        self._options.add_options([Option(line) for line in lines])
        self._options.highlighted = 0 if lines else None

    def take_focus(self) -> None:
        self._options.focus()

    @property
    def focused(self) -> bool:
        return self._options.has_focus

    def action_choose(self, number: int) -> None:
        if self.pending is None or not 0 < number <= len(self._choices):
            return
        if time.monotonic() - self._since < TOO_SOON:
            return
        self.post_message(self.Chosen(self.pending, self._choices[number - 1]))

    def action_scroll_about(self, by: int) -> None:
        if by < 0:
            self._scroll.scroll_page_up(animate=False)
        else:
            self._scroll.scroll_page_down(animate=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_choose(event.option_index + 1)

    def action_answer(self, key: str) -> None:
        choice = self._choice(key)
        at = next((at for at, each in enumerate(self._choices) if each is choice), None)
        if at is not None:
            self.action_choose(at + 1)

    def _choice(self, key: str) -> v2.PermissionOption | str | None:
        """Return what a key chooses, `None` if nothing like it is offered."""
        asked = None if self.pending is None else self.pending.asked
        if isinstance(asked, Permission):
            return option_for(key, asked.options)
        if asked is None or key not in ("y", "n"):
            return None
        return self._choices[0 if key == "y" else 1]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide the keys of answers that are not offered."""
        return action != "answer" or self._choice(str(parameters[0])) is not None


def _permission(asked: Permission) -> Content:
    lines = [Content.styled(_whole(asked.title) or "The agent asks for permission", "bold")]
    if isinstance(asked.request.subject, v2.CommandPermissionSubject):
        lines.append(Content.assemble(("$ ", "$accent"), _whole(asked.request.subject.command)))
    if asked.request.description:
        lines.append(Content.styled(_whole(asked.request.description), "$foreground 70%"))
    return Content("\n").join(lines)


def _elicitation(asked: Elicitation) -> Content:
    lines = [Content.styled(f"{plain_line(asked.agent, limit=60)} asks", "$foreground 70%")]
    if asked.url is not None:  # first, so that a long message cannot push it out of sight
        lines.append(Content.styled(plain(asked.url[:SHOWN]), "$accent"))
        host = plain_line(asked.host or "(unknown)", limit=200)
        lines.append(Content.styled(f"Host: {host}. Nothing is opened from here.", "$warning"))
    lines.append(Content.styled(_whole(asked.message), "bold"))
    return Content("\n").join(lines)


def _whole(text: str) -> str:
    """Return the question without blank lines. Users must see what they agree to, so a cut is marked."""
    shown = "\n".join(line for line in plain(text[:SHOWN]).splitlines() if line.strip())
    more = len(text) - SHOWN
    return shown if more <= 0 else f"{shown}\n⋮ {more:,} more characters are not shown: better decline"


def _option(number: int, key: str, option: v2.PermissionOption) -> Content:
    allows = str(option.kind).startswith("allow")
    return _line(number, key, plain_line(option.name, limit=200), "$success" if allows else "$error")


def _line(number: int, key: str, words: str, style: str) -> Content:
    return Content.assemble((f"{number} ", "$foreground 60%"), (f"{key:1}  ", "bold $accent"), (words, style))
