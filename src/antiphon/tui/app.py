"""The terminal UI: a client's sessions, one of them on the screen at a time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.filter import LineFilter
from textual.screen import Screen
from textual.widgets import TextArea

from antiphon.client import Client, ClientSession
from antiphon.errors import AntiphonError
from antiphon.schema import v2
from antiphon.tui.history import History
from antiphon.tui.questions import PendingQuestions
from antiphon.tui.screens.chat import ChatScreen
from antiphon.tui.screens.dialogs import Choose
from antiphon.tui.screens.help import HelpScreen
from antiphon.tui.screens.navigator import Place
from antiphon.tui.screens.sessions import SessionsScreen
from antiphon.tui.screens.trouble import TroubleScreen
from antiphon.tui.text.palette import first_theme, themes
from antiphon.tui.text.plain import SafeLines, plain_line
from antiphon.tui.trouble import Trouble, trouble_of
from antiphon.tui.unsent import farewell

AGAIN = 2.0
"""Seconds within which a second Ctrl-C quits."""
COPIED = 100_000
"""Characters that are copied at most. Terminals drop longer texts."""


SLOW = 0.4
"""Seconds after which a session that is being opened is announced."""
SLOW_SHOWN = 3.0
OPENING = "Starting the agent…"
FAILED_TO_OPEN = "The session could not be opened"
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
        """Make the application.

        client: it asks `asking` for decisions
        asking: the open questions
        place: where the sessions are, as text
        session: the id and the folder of the session to open first
        new: start a new session
        """
        super().__init__()
        self.client = client
        self.asking = asking
        self._place = place
        self._history = History(history)
        self._cwd = cwd
        self._first = session
        self._new = new
        self._interrupted = -AGAIN
        self.drafts: dict[str, str] = {}
        self._left = False
        self._wanted_theme = theme
        asking.on_change = lambda: self._in_chat(ChatScreen.questions_changed)

    # --- start -------------------------------------------------------------------------------------

    async def on_mount(self) -> None:
        few = self._wanted_theme is None and self.console.color_system != "truecolor"
        for theme in themes(few_colours=few):
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
        """Whether the agent lists sessions that can be opened."""
        return self.client.abilities.listing and self.client.abilities.load

    @property
    def chat(self) -> ChatScreen | None:
        """The screen of the open session, also below a dialog."""
        return next((each for each in reversed(self.screen_stack) if isinstance(each, ChatScreen)), None)

    def linked(self) -> None:
        """Handle a change of the connection."""
        self._in_chat(ChatScreen.refresh_soon)

    def _in_chat(self, do: Callable[[ChatScreen], None]) -> None:
        """Call a method of the session screen from a task of the client."""
        if self.is_running:
            self.call_later(lambda: None if self.chat is None else do(self.chat))

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), SAFE_LINES]

    # --- sessions ----------------------------------------------------------------------------------

    def open_session(self, session_id: str, cwd: str, *, title: str = "", place: Place | None = None) -> None:
        self._open(
            lambda: self.client.load_session(session_id, cwd),
            place,
            what=f"Opening “{title}”…" if title else OPENING,
        )

    def new_session(self) -> None:
        agents = self.client.agents
        if len(agents) < 2:
            self._open(lambda: self.client.new_session(self._cwd))
            return
        choices = [(Content(plain_line(name, limit=60)), name) for name in agents]

        def chosen(agent: str | None) -> None:
            if agent is not None:
                self._open(lambda: self.client.new_session(self._cwd, agent=agent))

        self.push_screen(Choose("Choose an agent", choices), chosen)

    def action_new_session(self) -> None:
        self.new_session()

    def fork_open(self, session: ClientSession, *, at: str | None = None) -> None:
        """Fork the open session after a message or at its end, and open the fork."""
        if at is not None and not self.client.abilities.fork_at:
            self.notify("This agent can fork a session only at its end.", markup=False)
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
            self.notify("This agent does not list sessions.", markup=False)

    async def _back(self) -> None:
        if self.chat is not None and self.chat.sending.pending.shown:
            self.notify("What was not sent is in the prompt when you open that session again.", markup=False)
        while len(self.screen_stack) > (2 if self.lists else 1):
            await self.pop_screen()

    def _open(
        self,
        opening: Callable[[], Awaitable[ClientSession]],
        place: Place | None = None,
        *,
        what: str = OPENING,
    ) -> None:
        """Open a session in a task, and show it, at a place if one is given. `what` is shown meanwhile."""

        async def work() -> None:
            waiting = self.set_timer(SLOW, lambda: self.notify(what, timeout=SLOW_SHOWN, markup=False))
            try:
                session = await opening()
            except AntiphonError as error:
                trouble = self.trouble_of(error)
                if not self.lists and self.chat is None:
                    self.exit(message=Text(trouble.text(FAILED_TO_OPEN)), return_code=1)
                else:
                    await self.push_screen(TroubleScreen(FAILED_TO_OPEN, trouble, self.copy))
                return
            finally:
                waiting.stop()
            await self._back()
            screen = ChatScreen(session, self.asking, self._history, self)
            await self.push_screen(screen)
            if place is not None:
                screen.call_after_refresh(screen.transcript.reveal, place.key, place.words)

        self.run_worker(work(), exclusive=True, group="opening")

    # --- actions -----------------------------------------------------------------------------------

    def trouble_of(self, error: AntiphonError) -> Trouble:
        return trouble_of(error, self.client)

    def complain(self, error: AntiphonError) -> None:
        trouble = self.trouble_of(error)
        if trouble.details or trouble.stderr or trouble.advice:
            self.push_screen(TroubleScreen("That did not work", trouble, self.copy))
        else:
            self.notify(trouble.message, severity="error", markup=False)

    def copy(self, text: str) -> None:
        self.copy_to_clipboard(text[:COPIED])
        part = f" (the first {COPIED:,} characters)" if len(text) > COPIED else ""
        self.notify(f"Copied{part}", timeout=2, markup=False)

    def exit(self, result: None = None, return_code: int = 0, message: Any = None) -> None:
        """Quit. What was written and not sent goes into the history, and the user is told."""
        words = None if self._left else self._farewell()
        self._left = True
        super().exit(result, return_code, message or (None if words is None else Text(words)))

    def _farewell(self) -> str | None:
        chat = self.chat
        if chat is not None:
            unsent = [*self.drafts.values(), *chat.unsent]
            unconfirmed = [each.text for each in chat.sending.pending.entries if each.sending is not None]
        else:
            unsent, unconfirmed = list(self.drafts.values()), []
        self.drafts.clear()
        lost = [text for text in (*unsent, *unconfirmed) if not self._history.keep(text)]
        return farewell(len(unsent), len(unconfirmed), lost)

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
        message = "Stopping the turn. Press Ctrl-C again to quit." if stops else "Press Ctrl-C again to quit."
        self.notify(message, timeout=AGAIN, markup=False)

    def action_help(self) -> None:
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen())

    def action_toggle_theme(self) -> None:
        self.theme = "antiphon-light" if self.current_theme.dark else "antiphon-dark"

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        yield SystemCommand("Help", "Show all keys", self.action_help)
        yield SystemCommand("New session", "Start a new session", self.new_session)
        yield SystemCommand("Sessions", "All sessions, with their state", self.show_sessions)
        yield SystemCommand("Light or dark", "Change the colours", self.action_toggle_theme)
        yield SystemCommand("Theme", "Choose among Textual's themes", self.action_change_theme)
        chat = self.chat
        if chat is not None:
            yield SystemCommand("Stop", "Cancel the turn", lambda: chat.cancel_turn() and None)
            yield SystemCommand("Search", "Find text in this session", chat.action_search)
            yield SystemCommand("Options", "Modes, models and other options", chat.action_options)
            yield SystemCommand("Sidebar", "Show or hide plan and changed files", chat.action_sidebar)
            yield SystemCommand("Rename", "Change the title of this session", chat.action_rename)
            yield SystemCommand(
                "Fork", "Continue in a copy of this session", lambda: self.fork_open(chat.session)
            )
        yield SystemCommand("Quit", "Quit; a hub keeps the session", self.exit)
