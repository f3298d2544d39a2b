"""One session on the screen: everything that happens in it, and everything one can do in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.timer import Timer

from antiphon.client import ClientSession, Elicitation, Permission, QuestionNews, SessionEvent
from antiphon.engine.turn import TurnState
from antiphon.errors import AntiphonError
from antiphon.schema import v2
from antiphon.schema.wire import Unknown
from antiphon.tui.commands_popup import CommandsPopup
from antiphon.tui.composer import Composer
from antiphon.tui.dialogs import AskLine, Choose
from antiphon.tui.foot import Foot
from antiphon.tui.form_screen import FormScreen
from antiphon.tui.header import SessionHeader
from antiphon.tui.options import known_options, option_line, value_lines
from antiphon.tui.plain import plain_line
from antiphon.tui.question_card import QuestionCard
from antiphon.tui.queue_panel import QueuePanel
from antiphon.tui.search_bar import SearchBar
from antiphon.tui.sending import Sending
from antiphon.tui.sidebar import Sidebar
from antiphon.tui.status_line import StatusLine
from antiphon.tui.story import Story
from antiphon.tui.transcript import Transcript
from antiphon.tui.waiting import Waits

if TYPE_CHECKING:
    from antiphon.tui.app import ChatApp

AT_A_STRETCH = 200
"""Events that are taken before others get their turn."""
SEARCHED = 0.12
"""Seconds after a key in which a search begins, unless another key follows."""
SOON = 0.06
"""Seconds in which changes of what stands around the transcript are gathered."""
BESIDE = (v2.SessionToolCallUpdate, v2.ToolCallContentChunk, v2.PlanUpdate, v2.PlanRemoved)
"""What the sidebar may show otherwise then."""
SIDEBAR_FROM = 100
"""Columns from which on there is room for a sidebar."""
EMPTY = "Nothing has been said yet. Write below; F1 shows the keys."


class ChatScreen(Screen[None]):
    DEFAULT_CSS = """
    ChatScreen {
        background: $background; overflow: hidden hidden;
        & #body { height: 1fr; min-height: 1; }
        & #foot { height: auto; max-height: 80vh; }
        & Transcript { width: 1fr; height: 1fr; margin: 1 0 0 1; }
        & Footer { background: $surface; }
        &.-short Transcript { margin: 0 0 0 1; }
        &.-short QuestionCard, &.-short QueuePanel { margin: 0 1; }
        &.-short Composer, &.-short Composer:focus { border: none; min-height: 1; padding: 0 2; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop"),
        Binding("escape", "leave", "Back", show=False),
        Binding("ctrl+l", "sessions", "Sessions"),
        Binding("ctrl+f", "search", "Search", priority=True),
        Binding("ctrl+o", "options", "Options", show=False),
        Binding("ctrl+b", "sidebar", "Sidebar", show=False),
        Binding("ctrl+n", "app.new_session", "New session", show=False),
        Binding("ctrl+r", "rename", "Rename", show=False),
    ]

    VERTICAL_BREAKPOINTS = [(0, "-short"), (16, "-tall")]  # noqa: RUF012

    app: ChatApp

    def __init__(self, session: ClientSession) -> None:
        super().__init__()
        self.session = session
        self.sending = Sending(session)
        self._story = Story(session)
        self._events = session.events()  # from the moment of the story on
        self._scheduled = False
        self._side: bool | None = None
        """Whether the sidebar is wanted; None as there is room."""
        self._working = False
        self._side_stale = True
        self._editing: Waits | None = None
        self._searching: Timer | None = None
        self._form: FormScreen | None = None
        self._asked: set[str] = set()
        popup = CommandsPopup()
        self.transcript = Transcript(id="transcript")
        self.composer = Composer(popup, self.app.history, id="composer")
        self.composer.working = lambda: session.state is not TurnState.IDLE
        self.card = QuestionCard()
        self.queue = QueuePanel()
        self._popup = popup
        self._header = SessionHeader()
        self._sidebar = Sidebar()
        self._search = SearchBar()
        self._status = StatusLine()

    def compose(self) -> ComposeResult:
        yield self._header
        with Horizontal(id="body"):
            yield self.transcript
            yield self._sidebar
        with Vertical(id="foot"):
            yield self._search
            yield self.queue
            yield self.card
            yield self._popup
            yield self.composer
        yield self._status
        yield Foot()

    def on_mount(self) -> None:
        self.transcript.open(self._story, empty=EMPTY)
        self.composer.focus()
        self.run_worker(self._follow())
        self.set_interval(1.0, self.refresh_status)
        self.questions_changed()
        self._refresh()

    def on_unmount(self) -> None:
        if self.session.client.find(self.session.id) is self.session and self.session.client.lost is None:
            self.session.client.leave_session(self.session)

    # --- what happens ------------------------------------------------------------------------------

    async def _follow(self) -> None:
        taken = 0
        async for event in self._events:
            self._take(event)
            taken += 1
            if taken % AT_A_STRETCH == 0:
                await asyncio.sleep(0)
        self._note("this session goes on without this terminal", tone="wait")

    def _take(self, event: SessionEvent) -> None:
        self.transcript.changed(self._story.take(event))
        if isinstance(event.update, BESIDE):
            self._side_stale = True
        if event.news is not None:
            self._tell_answer(event.news)
        if isinstance(event.update, Unknown) and event.update.get("sessionUpdate") == "_antiphon_queue":
            self.sending.paused = event.update.get("paused") is True
        elif isinstance(event.update, v2.StateUpdate) and event.update.state == v2.State.IDLE:
            self._start(self.sending.rested())
        self.refresh_soon()

    def _note(self, words: str, *, tone: str = "soft") -> None:
        self.transcript.changed([self._story.note(words, tone=tone)])

    def _tell_answer(self, news: QuestionNews) -> None:
        if news.state == "opened":
            return
        mine = news.by is not None and news.by.client_id == self.session.client.who.client_id
        who = "you" if mine else "somebody" if news.by is None else plain_line(news.by.name, limit=64)
        answer = plain_line(news.option_name or news.outcome or "", limit=120)
        if news.state == "answered":
            self._note(f"{who} answered: {answer}" if answer else f"{who} answered")
        elif news.state == "expired":
            self._note("the question has expired", tone="wait")

    def refresh_soon(self) -> None:
        if not self._scheduled and self.is_attached:
            self._scheduled = True
            self.set_timer(SOON, self._refresh)

    def _refresh(self) -> None:
        self._scheduled = False
        self._header.show(self.session)
        if self.queue.has_focus and not self.sending.entries:
            self.set_focus(self.composer)
        self.queue.show(self.sending.entries)
        if list(self._popup.commands) != self.session.commands:
            self._popup.commands = self.session.commands
            self._popup.offer(self.composer.text)
        self._arrange()
        self.refresh_status()
        if self._working is not (self.session.state is not TurnState.IDLE):
            self._working = not self._working
            self.refresh_bindings()

    def refresh_status(self) -> None:
        asked = len(self.app.asking.of(self.session))
        notes = [f"editing {self._editing.id[-4:]}: esc leaves it" if self._editing else ""]
        if self.sending.paused and self.sending.entries:
            notes.append("queue paused: a prompt, or r in the queue, lets it go on")
        note = " · ".join(filter(None, notes))
        self._status.show(self.session, waiting=len(self.sending.entries), asked=asked, note=note)

    def on_resize(self) -> None:
        self._arrange()

    def _arrange(self) -> None:
        fold = self.session.fold
        told = any(True for _ in fold.tools) or any(True for _ in fold.plans)
        shown = self._side if self._side is not None else self.app.size.width >= SIDEBAR_FROM and told
        if shown is not self._sidebar.display:
            self._sidebar.display = shown
            self._side_stale = True
        if shown and self._side_stale:
            self._side_stale = False
            self._sidebar.show(self.session)

    # --- what the agent asks -----------------------------------------------------------------------

    def questions_changed(self) -> None:
        """One has come, or gone."""
        if not self.is_attached:
            return
        pending = self.app.asking.of(self.session)
        first = pending[0] if pending else None
        fresh = first is not None and first is not self.card.pending
        if first is None and self.card.focused:
            self.set_focus(self.composer)  # before it is hidden, and the focus goes anywhere
        self.card.show(first, more=len(pending) - 1)
        if self._form is not None and all(each.asked is not self._form.elicitation for each in pending):
            form, self._form = self._form, None
            if form.is_attached and form.is_current:
                form.dismiss(None)
                self.notify("The form is not needed any more.", markup=False)
        if fresh and not self.composer.text:
            self.card.take_focus()
        elif fresh:
            self.notify("The agent asks: Tab leads to the answers.", markup=False)
        self.refresh_soon()

    @on(QuestionCard.Chosen)
    def _answer(self, chosen: QuestionCard.Chosen) -> None:
        pending, choice = chosen.pending, chosen.choice
        asked = pending.asked
        if isinstance(asked, Elicitation):
            if choice == "fill":
                self._fill_in(pending, asked)
                return
            pending.reply(asked.accept() if choice == "agree" else asked.decline())
            self._told_here("agreed" if choice == "agree" else "declined")
        elif isinstance(choice, v2.PermissionOption):
            assert isinstance(asked, Permission)
            pending.reply(choice)
            self._told_here(plain_line(choice.name, limit=120))
        self.set_focus(self.composer)

    def _fill_in(self, pending: Any, asked: Elicitation) -> None:
        def filled(reply: Any) -> None:
            self._form = None
            if reply is not None and not pending.answer.done():
                pending.reply(reply)
                accepted = isinstance(reply, v2.ElicitationAcceptAction)
                self._told_here("the form is filled in" if accepted else "declined")
            self.composer.focus()

        self._form = FormScreen(asked)
        self.app.push_screen(self._form, filled)

    def _told_here(self, answer: str) -> None:
        """Where the agent does not tell who answered what, it is told here."""
        if not self.session.abilities.ours.get("presence"):
            self._note(f"you answered: {answer}")

    # --- what one does -----------------------------------------------------------------------------

    @on(Composer.Sent)
    def _sent(self, sent: Composer.Sent) -> None:
        editing, self._editing = self._editing, None
        self.composer.remove_class("-editing")
        self.transcript.action_end()
        if editing is not None:
            self._start(self.sending.edit(editing.id, sent.text))
        else:
            self._start(self.sending.send(sent.text, sent.delivery), unsent=sent.text)

    @on(Composer.Scrolled)
    def _scrolled(self, scrolled: Composer.Scrolled) -> None:
        if scrolled.by < 0:
            self.transcript.scroll_page_up(animate=False)
        else:
            self.transcript.scroll_page_down(animate=False)

    @on(QueuePanel.Wanted)
    def _queued(self, wanted: QueuePanel.Wanted) -> None:
        entry = wanted.entry
        if wanted.what == "edit":
            self._editing = entry
            self.composer.add_class("-editing")
            self.composer.put(entry.text)
            self.composer.focus()
            self.refresh_status()
        elif wanted.what == "withdraw":
            self._start(self.sending.withdraw(entry.id))
        elif wanted.what == "resume":
            self._start(self.sending.resume())
        else:
            self._start(self.sending.move(entry.id, wanted.by))

    def _start(self, work: Awaitable[str | None], *, unsent: str = "") -> None:
        """Do it beside the rest; what goes wrong is told, and a text that was not taken is given back."""

        async def done() -> None:
            try:
                told = await work
            except AntiphonError as error:
                self.app.complain(error)
                if unsent and not self.composer.text:
                    self.composer.put(unsent)
            else:
                if told:
                    self.notify(told, markup=False)
            self.refresh_soon()

        self.run_worker(done())
        self.refresh_soon()

    @property
    def _writes(self) -> bool:
        """Whether one is at the composer, or a question, and in nothing that Esc leads out of."""
        inside = self._popup.display or self._search.display or self._editing is not None
        return not inside and not self.transcript.has_focus and not self.queue.has_focus

    def action_stop(self) -> None:
        self.cancel_turn()

    def action_leave(self) -> None:
        """Out of whatever one is in."""
        if self._popup.display:
            self._popup.display = False
        elif self._search.display:
            self._search.close()
            self.transcript.search("")
            self.transcript.focus()
        elif self._editing is not None:
            self._editing = None
            self.composer.remove_class("-editing")
            self.composer.put("")
            self.refresh_status()
        else:
            self.transcript.action_end()
            self.composer.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What makes no sense now is not among the keys at the foot."""
        if action == "stop":
            return self._writes and self.session.state is not TurnState.IDLE
        if action == "options":
            return bool(self.session.config_options)
        return self.app.lists if action == "sessions" else True

    def cancel_turn(self) -> bool:
        """Whether there was something to cancel."""
        if self.session.state is TurnState.IDLE:
            return False
        self._start(self.sending.cancel())
        return True

    def action_sessions(self) -> None:
        self.app.show_sessions()

    def action_sidebar(self) -> None:
        self._side = not self._sidebar.display
        self._arrange()

    def action_search(self) -> None:
        self._search.open()

    @on(Transcript.SearchWanted)
    def _search_wanted(self) -> None:
        self._search.open()

    @on(SearchBar.Wanted)
    def _searched(self, wanted: SearchBar.Wanted) -> None:
        """Once the word is written, in a long session."""
        if self._searching is not None:
            self._searching.stop()
        self._searching = self.set_timer(SEARCHED, lambda: self._look_for(wanted.needle))

    def _look_for(self, needle: str) -> None:
        self._search.tell(self.transcript.search(needle))

    @on(SearchBar.Next)
    def _search_on(self, wanted: SearchBar.Next) -> None:
        self.transcript.action_found(wanted.by)

    @on(Transcript.Copied)
    def _copied(self, copied: Transcript.Copied) -> None:
        self.app.copy(copied.text)

    @on(Transcript.ForkWanted)
    def _fork_wanted(self, wanted: Transcript.ForkWanted) -> None:
        self.app.fork_open(self.session, at=wanted.message_id)

    def action_rename(self) -> None:
        def named(title: str | None) -> None:
            if title is not None:
                self._start(self._rename(title))

        self.app.push_screen(AskLine("Another title", plain_line(self.session.title or "", limit=200)), named)

    async def _rename(self, title: str) -> None:
        await self.session.set_title(title)

    def action_options(self) -> None:
        options = known_options(self.session)
        if not options:
            self.notify("This agent offers no options.", markup=False)
            return

        def picked(option: Any) -> None:
            if isinstance(option, v2.SessionConfigBoolean):
                self._set(option.config_id, not option.current_value)
            elif isinstance(option, v2.SessionConfigSelect):
                values = value_lines(option)
                at = next((at for at, (_, each) in enumerate(values) if each == option.current_value), 0)
                title = plain_line(option.name, limit=60)
                self.app.push_screen(
                    Choose(title, values, at=at),
                    lambda value: None if value is None else self._set(option.config_id, value),
                )

        self.app.push_screen(Choose("Options", [(option_line(each), each) for each in options]), picked)

    def _set(self, id: str, value: str | bool) -> None:
        async def work() -> None:
            await self.session.set_config(id, value)

        self._start(work())
