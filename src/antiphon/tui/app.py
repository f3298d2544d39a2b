"""The terminal UI: a client's sessions, one of them on the screen at a time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.filter import LineFilter
from textual.screen import Screen
from textual.widgets import TextArea

from antiphon.client import Client, ClientSession
from antiphon.errors import AntiphonError, CallFailed, LinkLost
from antiphon.schema import v2
from antiphon.tui.history import History
from antiphon.tui.questions import PendingQuestions
from antiphon.tui.screens.chat import ChatScreen
from antiphon.tui.screens.dialogs import Choose
from antiphon.tui.screens.help import HelpScreen
from antiphon.tui.screens.sessions import SessionsScreen
from antiphon.tui.text.palette import first_theme, themes
from antiphon.tui.text.plain import SafeLines, plain_line

AGAIN = 2.0
"""Seconds in which a second Ctrl-C quits."""
COPIED = 100_000
"""Characters that are given to the terminal's clipboard at most: more than that terminals drop."""


SAFE_LINES = SafeLines()


class ChatApp(App[None]):
    CSS = """
    Button, Button.-textual-compact {
        background: $panel; color: $foreground; text-style: none; border: none; height: 1;
    }
    Button:hover { background: $panel; color: $accent; }
    Button:focus, Button.-textual-compact:focus { background: $accent; color: $background; text-style: bold; }
    Button.-error { color: $error; }
    Button.-primary { color: $accent; }
    CommandPalette SearchIcon { display: none; }
    Button.-error:focus { background: $error; color: $background; }
    Toast { background: $panel; border-left: outer $accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", "Stop", priority=True, show=False),
        Binding("f1", "help", "Help", key_display="F1", priority=True),
        Binding("ctrl+t", "toggle_theme", "Light or dark", show=False, priority=True),
    ]
    TITLE = "antiphon"

    def __init__(
        self,
        client: Client,
        asking: PendingQuestions,
        *,
        cwd: str,
        place: str = "",
        session: tuple[str, str] | None = None,
        new: bool = False,
        history: Path | None = None,
        theme: str | None = None,
    ) -> None:
        """`client` decides by `asking`. `place` is where its sessions are, in words. `session` is the one to
        begin with, its id and its folder; `new` begins another one; otherwise they are listed."""
        super().__init__()
        self.client = client
        self.asking = asking
        self._place = place
        self._history = History(history)
        self._cwd = cwd
        self._first = session
        self._new = new
        self._interrupted = -AGAIN
        self._wanted_theme = theme
        asking.on_change = self._questions_changed

    # --- beginning and ending ----------------------------------------------------------------------

    async def on_mount(self) -> None:
        for theme in themes():
            self.register_theme(theme)
        self.theme = self._wanted_theme or first_theme()
        if self.lists:
            await self.push_screen(SessionsScreen(self.client, self._place, self))
        if self._first is not None:
            self.open_session(*self._first)
        elif self._new or not self.lists:
            self.new_session()

    @property
    def lists(self) -> bool:
        """Whether one can go back to a list of sessions."""
        return self.client.abilities.listing and self.client.abilities.load

    @property
    def chat(self) -> ChatScreen | None:
        """The session on the screen, whatever stands over it."""
        return next((each for each in reversed(self.screen_stack) if isinstance(each, ChatScreen)), None)

    def linked(self) -> None:
        """The link is another one than before, or none."""
        self._in_chat(ChatScreen.refresh_soon)

    def _questions_changed(self) -> None:
        self._in_chat(ChatScreen.questions_changed)

    def _in_chat(self, do: Callable[[ChatScreen], None]) -> None:
        """Let the session on the screen do something: who asks for it is the client, in a task of its own."""
        if self.is_running:
            self.call_later(lambda: None if self.chat is None else do(self.chat))

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), SAFE_LINES]

    # --- sessions ----------------------------------------------------------------------------------

    def open_session(self, session_id: str, cwd: str) -> None:
        self._open(lambda: self.client.load_session(session_id, cwd))

    def new_session(self) -> None:
        agents = self.client.agents
        if len(agents) < 2:
            self._open(lambda: self.client.new_session(self._cwd))
            return
        choices = [(Content(plain_line(name, limit=60)), name) for name in agents]

        def chosen(agent: str | None) -> None:
            if agent is not None:
                self._open(lambda: self.client.new_session(self._cwd, agent=agent))

        self.push_screen(Choose("With which agent?", choices), chosen)

    def action_new_session(self) -> None:
        self.new_session()

    def fork_open(self, session: ClientSession, *, at: str | None = None) -> None:
        """Go on in a fork of a session that is open here, after a message or from where it is."""
        if at is not None and not self.client.abilities.fork_at:
            self.notify("This agent forks sessions at their end alone.", markup=False)
            return
        self._open(lambda: session.fork(at=at))

    def fork_session(self, info: v2.SessionInfo) -> None:
        async def fork() -> ClientSession:
            session = await self.client.load_session(info.session_id, info.cwd)
            forked = await session.fork()
            self.client.leave_session(session)
            return forked

        self._open(fork)

    def show_sessions(self) -> None:
        if self.lists:
            self.run_worker(self._back())
        else:
            self.notify("This agent keeps no list of sessions.", markup=False)

    async def _back(self) -> None:
        while len(self.screen_stack) > (2 if self.lists else 1):
            await self.pop_screen()

    def _open(self, opening: Callable[[], Awaitable[ClientSession]]) -> None:
        async def work() -> None:
            try:
                session = await opening()
            except AntiphonError as error:
                self.complain(error)
                if not self.lists and self.chat is None:
                    self.exit(message=plain_line(_words(error)), return_code=1)
                return
            await self._back()
            await self.push_screen(ChatScreen(session, self.asking, self._history, self))

        self.run_worker(work(), exclusive=True, group="opening")

    # --- what is done from everywhere --------------------------------------------------------------

    def complain(self, error: AntiphonError) -> None:
        self.notify(plain_line(_words(error), limit=600), severity="error", markup=False)

    def copy(self, text: str) -> None:
        self.copy_to_clipboard(text[:COPIED])
        part = f" (the first {COPIED:,} characters)" if len(text) > COPIED else ""
        self.notify(f"Copied{part}", timeout=2, markup=False)

    def action_interrupt(self) -> None:
        selected = self.screen.get_selected_text()
        focused = self.focused
        if not selected and isinstance(focused, TextArea):
            selected = focused.selected_text
        if selected:
            self.copy(selected)
            self.screen.clear_selection()
            return
        now = time.monotonic()
        twice, self._interrupted = now - self._interrupted < AGAIN, now
        if twice:
            self.exit()
            return
        stops = self.chat is not None and self.chat.cancel_turn()
        said = "Stopping; Ctrl-C again quits." if stops else "Ctrl-C again quits."
        self.notify(said, timeout=AGAIN, markup=False)

    def action_help(self) -> None:
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen())

    def action_toggle_theme(self) -> None:
        self.theme = "antiphon-light" if self.current_theme.dark else "antiphon-dark"

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        yield SystemCommand("Help", "All keys", self.action_help)
        yield SystemCommand("New session", "Begin another session", self.new_session)
        yield SystemCommand("Sessions", "All sessions, with their state", self.show_sessions)
        yield SystemCommand("Light or dark", "Change the colours", self.action_toggle_theme)
        yield SystemCommand("Theme", "Choose among Textual's themes", self.action_change_theme)
        chat = self.chat
        if chat is not None:
            yield SystemCommand("Stop", "Cancel the turn", lambda: chat.cancel_turn() and None)
            yield SystemCommand("Search", "Find words in this session", chat.action_search)
            yield SystemCommand("Options", "Modes, models and the like", chat.action_options)
            yield SystemCommand("Sidebar", "Plan and files, shown or not", chat.action_sidebar)
            yield SystemCommand("Rename", "Give this session another title", chat.action_rename)
            yield SystemCommand(
                "Fork", "Go on in a copy of this session", lambda: self.fork_open(chat.session)
            )
        yield SystemCommand("Quit", "Leave; at a hub the session goes on", self.exit)


def _words(error: AntiphonError) -> str:
    if isinstance(error, CallFailed):
        return error.error.message
    return f"the link is gone: {error.reason}" if isinstance(error, LinkLost) else str(error)
