"""The screen that searches the contents of all sessions, and opens one at the place."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from antiphon.client import Client
from antiphon.errors import AntiphonError
from antiphon.schema.antiphon.hub import SearchMatch, SearchRole, SearchSessionsResponse
from antiphon.tui.screens.navigator import Navigator, Place
from antiphon.tui.text.plain import plain_line
from antiphon.tui.widgets.key_bar import KeyBar

SOON = 0.2
"""Seconds without a key after which the search begins."""
LIMIT = 50
WHO = {
    SearchRole.USER: "user",
    SearchRole.AGENT: "agent",
    SearchRole.THOUGHT: "thought",
    SearchRole.TOOL: "tool call",
    SearchRole.TITLE: "title",
}


class SearchScreen(Screen[None]):
    DEFAULT_CSS = """
    SearchScreen {
        background: $background;
        & Input, & Input:focus { margin: 1 2 0 2; border: none; height: 1; background: $panel; padding: 0 1; }
        & #count { height: 1; padding: 0 2; margin: 0 0 1 0; color: $foreground 70%; }
        & OptionList, & OptionList:focus {
            height: 1fr; border: none; padding: 0 1; background: $background; background-tint: transparent;
            scrollbar-size-vertical: 1;
        }
        & OptionList > .option-list--option { padding: 0 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open", priority=True),
        Binding("down", "move(1)", "Next", show=False, priority=True),
        Binding("up", "move(-1)", "Previous", show=False, priority=True),
        Binding("escape", "app.pop_screen", "Back"),
    ]

    def __init__(self, client: Client, navigator: Navigator) -> None:
        super().__init__()
        self._client = client
        self._navigator = navigator
        self._matches: list[SearchMatch] = []
        self._begins: Timer | None = None
        self._field = Input(placeholder="Search all sessions", compact=True, max_length=1000)
        self._count = Static("", id="count", markup=False)
        self._list = OptionList(markup=False)

    def compose(self) -> ComposeResult:
        yield self._field
        yield self._count
        yield self._list
        yield KeyBar()

    def on_mount(self) -> None:
        self._field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._begins is not None:
            self._begins.stop()
        self._begins = self.set_timer(SOON, self._begin)

    def _begin(self) -> None:
        # `exclusive` cancels the search before this one, so no answer comes late.
        self.run_worker(self._search(self._field.value.strip()), group="search", exclusive=True)

    async def _search(self, query: str) -> None:
        found = SearchSessionsResponse(matches=[])
        if query:
            try:
                found = await self._client.search_sessions(query, limit=LIMIT)
            except AntiphonError as error:
                self._navigator.complain(error)
                return
        self._matches = found.matches
        self._list.clear_options()
        self._list.add_options([Option(_lines(match)) for match in found.matches])
        self._list.highlighted = 0 if found.matches else None
        self._count.update(_summary(found) if query else "")

    def action_move(self, by: int) -> None:
        if by > 0:
            self._list.action_cursor_down()
        else:
            self._list.action_cursor_up()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_open()

    def action_open(self) -> None:
        at = self._list.highlighted
        if at is not None and at < len(self._matches):
            self.run_worker(self._open(self._matches[at]), group="open", exclusive=True)

    async def _open(self, match: SearchMatch) -> None:
        try:
            async for info in self._client.list_sessions(archived="include"):
                if info.session_id == match.session_id:
                    self._navigator.open_session(info.session_id, info.cwd, place=_place(match))
                    return
        except AntiphonError as error:
            self._navigator.complain(error)
            return
        self._count.update("The session is gone.")


def _place(match: SearchMatch) -> Place | None:
    words = match.snippet[slice(*match.ranges[0])] if match.ranges else ""
    if match.message_id is not None:
        return Place(f"message/{match.role}/{match.message_id}", words)
    return None if match.tool_call_id is None else Place(f"tool/{match.tool_call_id}", words)


def _summary(found: SearchSessionsResponse) -> str:
    more = "+" if found.next_cursor else ""
    words = f"{len(found.matches)}{more} found" if found.matches else "Nothing found"
    return f"{words}. Some sessions are not indexed yet." if found.incomplete else words


def _lines(match: SearchMatch) -> Content:
    parts: list[tuple[str, str]] = []
    at = 0
    for start, stop in match.ranges:
        parts += [(_shown(match.snippet[at:start]), ""), (_shown(match.snippet[start:stop]), "bold $accent")]
        at = stop
    parts.append((_shown(match.snippet[at:]), ""))
    return Content.assemble(
        (plain_line(match.title or "Untitled", limit=80), "bold"),
        (f"   {WHO[match.role]} · {_when(match.at)}", "$foreground 60%"),
        "\n",
        *(part for part in parts if part[0]),
    )


def _shown(text: str) -> str:
    """Return a part of a line that is safe to show, with its spaces at both ends."""
    line = plain_line(text, limit=240)
    return f"{' ' * text[:1].isspace()}{line}{' ' * text[-1:].isspace()}" if line else " " * bool(text)


def _when(at: int) -> str:
    try:
        return datetime.fromtimestamp(at / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return ""
