"""The screen with the list of sessions."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from antiphon.client import Client
from antiphon.errors import AntiphonError
from antiphon.schema import v2
from antiphon.schema.antiphon.hub import SessionInfoMeta
from antiphon.schema.antiphon.readers import read_meta
from antiphon.tui.screens.dialogs import AskLine, Confirm
from antiphon.tui.screens.navigator import Navigator
from antiphon.tui.screens.search import SearchScreen
from antiphon.tui.text.plain import folder_line, plain_line
from antiphon.tui.widgets.key_bar import KeyBar
from antiphon.tui.widgets.status import UNTITLED

EVERY = 1.5
"""Seconds between two requests for the list."""
MOST = 1_000
NONE = "There are no sessions yet. Press n to start one."
NONE_ARCHIVED = "There are no archived sessions. Press v to see the others."
STATES = {
    "running": ("● working", "$accent"),
    "requires_action": ("● waiting for an answer", "$warning"),
    "idle": ("○ ready", "$success"),
}
FAULTS = {
    "damaged": ("✕ damaged", "$error"),
    "newer": ("✕ written by a newer version", "$warning"),
}
"""Sessions that cannot be opened."""


class SessionList(OptionList):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "Open")]


class SessionsScreen(Screen[None]):
    DEFAULT_CSS = """
    SessionsScreen {
        background: $background;
        & #head { height: 3; padding: 1 2; background: $background; }
        & #none { padding: 1 2; color: $foreground 70%; display: none; }
        & OptionList, & OptionList:focus {
            height: 1fr; border: none; padding: 0 1; background: $background; background-tint: transparent;
            scrollbar-size-vertical: 1;
        }
        & OptionList > .option-list--option { padding: 0 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n,ctrl+n", "new", "New"),
        Binding("slash,ctrl+f", "search", "Search"),
        Binding("r", "rename", "Rename"),
        Binding("f", "fork", "Fork"),
        Binding("a", "archive", "Archive"),
        Binding("v", "view", "Archived", show=False),
        Binding("d,delete", "delete", "Delete"),
        Binding("escape", "back", "Back"),
        Binding("q", "app.quit", "Quit", show=False),
        Binding("question_mark", "app.help", "Help", show=False),
    ]

    def __init__(self, client: Client, place: str, navigator: Navigator) -> None:
        super().__init__()
        self._client = client
        self._place = place
        self._navigator = navigator
        self._infos: list[v2.SessionInfo] = []
        self._shown: list[str] = []
        self._archived = False
        """Whether the list shows the archived sessions."""
        self._head = Static("", id="head", markup=False)
        self._none = Static(NONE, id="none", markup=False)
        self._list = SessionList(markup=False)

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._none
        yield self._list
        yield KeyBar()

    def on_mount(self) -> None:
        self.run_worker(self._watch())

    async def _watch(self) -> None:
        while True:
            if self.is_current:
                await self._look_again()
            await asyncio.sleep(EVERY)

    def on_screen_resume(self) -> None:
        self.run_worker(self._look_again())

    async def _look_again(self) -> None:
        with suppress(AntiphonError):  # disconnected; the status line shows that
            await self.look()

    async def look(self) -> None:
        """Request the list, and show it."""
        archived = self._archived
        infos = []
        async for info in self._client.list_sessions(archived="only" if archived else None):
            infos.append(info)
            if len(infos) >= MOST:
                break
        if archived is not self._archived:
            return  # the user chose the other list meanwhile
        infos.sort(key=_used, reverse=True)
        lines = [_lines(info) for info in infos]
        plain = [line.plain for line in lines]
        head = Content.assemble(
            ("Antiphon", "bold $accent"),
            (
                f"   {_count(len(infos), archived=archived)} · {plain_line(self._place, limit=120)}",
                "$foreground 70%",
            ),
        )
        self._head.update(head)
        self._none.update(NONE_ARCHIVED if archived else NONE)
        self._none.display = not infos
        if plain == self._shown or not self.is_attached:
            return
        options = self._list
        pointed = self._pointed()
        self._infos, self._shown = infos, plain
        options.clear_options()
        options.add_options([Option(line) for line in lines])
        ids = [info.session_id for info in infos]
        if infos:
            here = None if pointed is None else pointed.session_id
            options.highlighted = ids.index(here) if here in ids else 0
        options.focus()
        self.refresh_bindings()

    def _pointed(self) -> v2.SessionInfo | None:
        at = self._list.highlighted
        return None if at is None or at >= len(self._infos) else self._infos[at]

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.action_open()

    def action_open(self) -> None:
        info = self._pointed()
        if info is not None:
            self._navigator.open_session(info.session_id, info.cwd, title=_title(info))

    def action_new(self) -> None:
        self._navigator.new_session()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide what the agent does not offer."""
        abilities = self._client.abilities
        offered = {
            "archive": abilities.archive,
            "view": abilities.archive,
            "rename": abilities.title,
            "delete": abilities.delete,
            "fork": abilities.fork,
        }
        return offered.get(action, True)

    def action_archive(self) -> None:
        """Archive the session, or put an archived one back."""
        info = self._pointed()
        if info is None:
            return
        if self._archived:
            self._do(self._client.unarchive(info.session_id), done=f"“{_title(info)}” is in the list again")
        else:
            done = f"“{_title(info)}” was archived; v shows archived sessions"
            self._do(self._client.archive(info.session_id), done=done)

    def action_view(self) -> None:
        """Change between the usual list and the archived sessions."""
        self._archived = not self._archived
        self.run_worker(self._look_again())

    def action_search(self) -> None:
        if self._client.abilities.ours.search_sessions is None:
            self.notify("This agent does not search sessions.", markup=False)
        else:
            self.app.push_screen(SearchScreen(self._client, self._navigator))

    def action_back(self) -> None:
        if self._archived:
            self.action_view()
            return
        if len(self.app.screen_stack) > 2:
            self.app.pop_screen()

    def action_rename(self) -> None:
        info = self._pointed()
        if info is None:
            return

        def named(title: str | None) -> None:
            if title is not None:
                self._do(self._client.set_title(info.session_id, title))

        self.app.push_screen(AskLine("New title", plain_line(info.title or "", limit=200)), named)

    def action_delete(self) -> None:
        info = self._pointed()
        if info is None:
            return

        def confirmed(yes: bool | None) -> None:
            if yes:
                self._do(self._client.delete_session(info.session_id))

        title = _title(info)
        about = "This deletes the whole conversation, for all users. It cannot be undone."
        self.app.push_screen(Confirm(f"Delete “{title}”?", about, yes="Delete"), confirmed)

    def action_fork(self) -> None:
        info = self._pointed()
        if info is not None:
            self._navigator.fork_session(info)

    def _do(self, work: Any, *, done: str = "") -> None:
        """Run work in a task. Show its error, or that it is `done`."""

        async def run() -> None:
            try:
                await work
            except AntiphonError as error:
                self._navigator.complain(error)
            else:
                if done:
                    self.notify(done, markup=False)
            await self._look_again()

        self.run_worker(run())


def _count(sessions: int, *, archived: bool) -> str:
    what = "archived session" if archived else "session"
    return f"1 {what}" if sessions == 1 else f"{sessions:,} {what}s"


def _title(info: v2.SessionInfo) -> str:
    return plain_line(info.title or UNTITLED, limit=160)


def _used(info: v2.SessionInfo) -> float:
    """Return when a session was last used, for sorting; 0 if that is not known."""
    then = _time(info.updated_at)
    return 0.0 if then is None else then.timestamp()


def _lines(info: v2.SessionInfo) -> Content:
    ours = read_meta(SessionInfoMeta, info.meta)
    words, style = STATES.get(ours.state or "", ("○ stored", "$foreground 60%"))
    if ours.fault is not None:
        words, style = FAULTS.get(ours.fault.kind, FAULTS["damaged"])
    about = [
        plain_line(ours.agent or "", limit=40),
        f"{ours.clients} attached" if ours.clients else "",
        _ago(info.updated_at),
        folder_line(info.cwd, limit=80),
    ]
    return Content.assemble(
        (_title(info), "bold"),
        "\n",
        (words, style),
        ("   " + " · ".join(part for part in about if part), "$foreground 60%"),
    )


def _time(at: str | None) -> datetime | None:
    try:
        then = datetime.fromisoformat(at or "")
    except ValueError:
        return None
    return then.replace(tzinfo=UTC) if then.tzinfo is None else then


def _ago(at: str | None) -> str:
    then = _time(at)
    if then is None:
        return ""
    minutes = int((datetime.now(UTC) - then).total_seconds()) // 60
    if minutes < 1:
        return "just now"
    if minutes < 60:
        return f"{minutes} min ago"
    return f"{minutes // 60} h ago" if minutes < 48 * 60 else f"{minutes // 1440} days ago"
