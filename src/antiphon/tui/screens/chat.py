"""The screen of one session: transcript, questions, queue and composer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen

from antiphon.client import ClientSession, Elicitation, Permission, SessionEvent
from antiphon.engine import TurnState
from antiphon.errors import AntiphonError
from antiphon.schema import Unknown, v2
from antiphon.schema.antiphon.messages import QuestionUpdate
from antiphon.transcripts import unanswered_text
from antiphon.tui.history import History
from antiphon.tui.prompts import PromptSender
from antiphon.tui.questions import PendingQuestion, PendingQuestions
from antiphon.tui.screens.dialogs import AskLine, choose_option
from antiphon.tui.screens.form import FormScreen
from antiphon.tui.screens.navigator import Navigator
from antiphon.tui.story.endings import past_turns
from antiphon.tui.story.story import Story
from antiphon.tui.text.plain import plain_line
from antiphon.tui.widgets.composer import CommandsPopup, Composer
from antiphon.tui.widgets.key_bar import KeyBar
from antiphon.tui.widgets.question_card import QuestionCard
from antiphon.tui.widgets.queue_panel import QueuePanel
from antiphon.tui.widgets.search_bar import SearchBar
from antiphon.tui.widgets.sidebar import Sidebar
from antiphon.tui.widgets.status import SessionHeader, StatusLine
from antiphon.tui.widgets.transcript import Transcript

EVENTS_IN_A_ROW = 200
"""Events that are taken before other tasks run."""
SOON = 0.06
"""Seconds in which changes of header, queue and status are collected."""
EMPTY = "No messages yet. Write a prompt below; F1 shows the keys."


class ChatScreen(Screen[None]):
    DEFAULT_CSS = """
    ChatScreen {
        background: $background; overflow: hidden hidden;
        & #body { height: 1fr; min-height: 1; }
        & #foot { height: auto; max-height: 80vh; }
        & Transcript { width: 1fr; height: 1fr; margin: 1 0 0 1; }
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
    VERTICAL_BREAKPOINTS = [(0, "-short"), (16, "-tall")]  # noqa: RUF012  # declared so by Textual

    def __init__(
        self, session: ClientSession, asking: PendingQuestions, history: History, navigator: Navigator
    ) -> None:
        super().__init__()
        self.session = session
        self._asking = asking
        self._navigator = navigator
        self.sending = PromptSender(session)
        self._story = Story(session)
        self._events = session.events()  # from the state of the story on
        self._scheduled = False
        self._working = False
        self._questions = QuestionController(self, asking)
        self._popup = CommandsPopup()
        self.transcript = Transcript(self._story, empty=EMPTY, id="transcript")
        self.composer = Composer(self._popup, history, id="composer")
        self.composer.working = lambda: session.state is not TurnState.IDLE
        self.card = self._questions.card
        self.queue = QueuePanel()
        self._header = SessionHeader()
        self._sidebar = Sidebar(session)
        self._search = SearchBar(self.transcript)
        self._status = StatusLine()
        self.sending.pending.on_change = self.refresh_soon

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
        yield KeyBar()

    def on_mount(self) -> None:
        self.composer.focus()
        self.composer.put(self._navigator.drafts.pop(self.session.id, ""))
        self.run_worker(self._follow())
        self.run_worker(self.sending.pending.run())
        self.run_worker(self._recall_endings())
        self.set_interval(1.0, self._each_second)
        self.questions_changed()
        self._refresh()

    def on_unmount(self) -> None:
        unsent = self.unsent
        if unsent:
            self._navigator.drafts[self.session.id] = "\n\n".join(unsent)
        if self.session.client.find(self.session.id) is self.session and self.session.client.lost is None:
            self.session.client.leave_session(self.session)

    @property
    def unsent(self) -> list[str]:
        """What the user wrote and the agent does not have: prompts that wait for the link, and the draft."""
        waiting = [each.text for each in self.sending.pending.entries if each.sending is None]
        draft = self.composer.text.strip()
        return [*waiting, draft] if draft else waiting

    # --- events ------------------------------------------------------------------------------------

    async def _recall_endings(self) -> None:
        """Show how the turns ended that ended before the session was opened here."""
        turns = await past_turns(self.session)
        if self._story.recall(turns):
            self.transcript.inserted()

    async def _follow(self) -> None:
        taken = 0
        async for event in self._events:
            self._take(event)
            taken += 1
            if taken % EVENTS_IN_A_ROW == 0:
                await asyncio.sleep(0)
        self.note("this terminal no longer follows the session", tone="wait")

    def _take(self, event: SessionEvent) -> None:
        self.transcript.changed(self._story.take(event))
        self._sidebar.take(event.update)
        if event.news is not None:
            self._questions.note_end(event.news)
        if isinstance(event.update, Unknown) and event.update.get("sessionUpdate") == "_antiphon_queue":
            self.sending.paused = event.update.get("paused") is True
        elif isinstance(event.update, v2.StateUpdate) and event.update.state == v2.State.IDLE:
            self._start(self.sending.send_next())
        self.refresh_soon()

    def note(self, words: str, *, tone: str = "soft") -> None:
        self.transcript.changed([self._story.note(words, tone=tone)])

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
        self._sidebar.keep_up()
        self.refresh_status()
        if self._working is not (self.session.state is not TurnState.IDLE):
            self._working = not self._working
            self.refresh_bindings()

    def _each_second(self) -> None:
        if self.sending.pending.entries:
            self.refresh_soon()  # a prompt may have been pending long enough to be shown
        self.refresh_status()

    def refresh_status(self) -> None:
        asked = len(self._asking.of(self.session))
        editing = self.composer.editing
        notes = ["editing a queued prompt: Esc cancels"] if editing else []
        if self.sending.paused and self.sending.queued:
            notes.append("queue paused: send a prompt, or press r in the queue")
        pending = self.sending.pending
        if pending.shown:
            notes.append(
                f"{len(pending.shown)} not sent yet"
                if not self.session.client.link.up
                else f"{len(pending.shown)} not confirmed yet"
            )
        self._status.show(
            self.session,
            waiting=self.sending.queued,
            asked=asked,
            silence=pending.silence,
            note=" · ".join(notes),
        )

    def on_resize(self) -> None:
        self._sidebar.keep_up()

    # --- questions ---------------------------------------------------------------------------------

    def questions_changed(self) -> None:
        """Show the open questions of the session."""
        if self.is_attached:
            self._questions.changed()
            self.refresh_soon()

    @on(QuestionCard.Chosen)
    def _answer(self, chosen: QuestionCard.Chosen) -> None:
        self._questions.answer(chosen.pending, chosen.choice)

    # --- actions of the user -----------------------------------------------------------------------

    @on(Composer.Sent)
    def _sent(self, sent: Composer.Sent) -> None:
        self.transcript.action_end()
        if sent.edited is not None:
            self._start(self.sending.edit(sent.edited.id, sent.text), unsent=sent.text)
        else:
            self._start(self.sending.send(sent.text, sent.delivery), unsent=sent.text)

    @on(Composer.Scrolled)
    def _scrolled(self, scrolled: Composer.Scrolled) -> None:
        self.transcript.scroll_relative(y=scrolled.by * self.transcript.size.height, animate=False)

    @on(QueuePanel.Wanted)
    def _queued(self, wanted: QueuePanel.Wanted) -> None:
        entry = wanted.entry
        if wanted.what == "edit":
            self.composer.edit_queued(entry)
            self.refresh_status()
        elif wanted.what == "withdraw":
            self._start(self.sending.withdraw(entry.id))
        elif wanted.what == "resume":
            self._start(self.sending.resume())
        else:
            self._start(self.sending.move(entry.id, wanted.by))

    def _start(self, work: Awaitable[object], *, unsent: str = "") -> None:
        """Run work in a task. Show its message or its error, and give back a prompt that was not accepted."""

        async def done() -> None:
            try:
                message = await work
            except AntiphonError as error:
                trouble = self._navigator.trouble_of(error)
                if unsent:
                    self.note(trouble.text("The prompt was not accepted"), tone="bad")
                    self.composer.give_back(unsent)
                else:
                    self._navigator.complain(error)
            else:
                if isinstance(message, str):
                    self.notify(message, markup=False)
            self.refresh_soon()

        self.run_worker(done())
        self.refresh_soon()

    @property
    def _writes(self) -> bool:
        """Whether the user writes or answers, and Esc has nothing to close."""
        inside = self._popup.display or self._search.display or self.composer.editing is not None
        return not inside and not self.transcript.has_focus and not self.queue.has_focus

    def action_stop(self) -> None:
        self.cancel_turn()

    def action_leave(self) -> None:
        """Close what is open, or return to the prompt."""
        if self._popup.display:
            self._popup.display = False
        elif self._search.display:
            self._search.close()
        elif self.composer.editing is not None:
            self.composer.leave_editing()
            self.refresh_status()
        else:
            self.transcript.action_end()
            self.composer.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable actions that make no sense now, so that the key bar hides them."""
        if action == "stop":
            return self._writes and self.session.state is not TurnState.IDLE
        if action == "options":
            return bool(self.session.config_options)
        return self._navigator.lists if action == "sessions" else True

    def cancel_turn(self) -> bool:
        """Cancel the turn, and return whether there was one."""
        if self.session.state is TurnState.IDLE:
            return False
        self._start(self.session.cancel())
        return True

    def action_sessions(self) -> None:
        self._navigator.show_sessions()

    def action_sidebar(self) -> None:
        self._sidebar.toggle()

    @on(Transcript.SearchWanted)
    def action_search(self) -> None:
        self._search.open()

    @on(Transcript.Copied)
    def _copied(self, copied: Transcript.Copied) -> None:
        self._navigator.copy(copied.text)

    @on(Transcript.ForkWanted)
    def _fork_wanted(self, wanted: Transcript.ForkWanted) -> None:
        self._navigator.fork_open(self.session, at=wanted.message_id)

    def action_rename(self) -> None:
        def named(title: str | None) -> None:
            if title is not None:
                self._start(self._rename(title))

        self.app.push_screen(AskLine("New title", plain_line(self.session.title or "", limit=200)), named)

    async def _rename(self, title: str) -> None:
        await self.session.set_title(title)

    def action_options(self) -> None:
        session = self.session
        choose_option(self.app, session, lambda id, value: self._start(session.set_config(id, value)))


class QuestionController:
    """Shows the open questions of a session, and passes the answers on."""

    def __init__(self, screen: ChatScreen, asking: PendingQuestions) -> None:
        self._screen = screen
        self._asking = asking
        self._session = screen.session
        self.card = QuestionCard()
        self._form: FormScreen | None = None

    def changed(self) -> None:
        """Show the oldest open question."""
        screen, card = self._screen, self.card
        pending = self._asking.of(self._session)
        first = pending[0] if pending else None
        fresh = first is not None and first is not card.pending
        if first is None and card.focused:
            screen.set_focus(screen.composer)  # before the card is hidden, or the focus moves anywhere
        card.show(first, more=len(pending) - 1)
        if self._form is not None and all(each.asked is not self._form.elicitation for each in pending):
            self._put_away(self._form)
        if fresh and not screen.composer.text:
            card.take_focus()
        elif fresh:
            screen.notify("The agent has a question. Press Tab to answer.", markup=False)

    def answer(self, pending: PendingQuestion, choice: v2.PermissionOption | str) -> None:
        asked = pending.asked
        if isinstance(asked, Elicitation):
            if choice == "fill":
                self._fill_in(pending, asked)
                return
            pending.reply(asked.accept() if choice == "agree" else asked.decline())
            self._note_answer("agreed" if choice == "agree" else "declined")
        elif isinstance(choice, v2.PermissionOption):
            assert isinstance(asked, Permission)
            pending.reply(choice)
            self._note_answer(plain_line(choice.name, limit=120))
        self._screen.set_focus(self._screen.composer)

    def note_end(self, news: QuestionUpdate) -> None:
        """Note how a question ended, also if another client answered it."""
        if news.state == "expired":
            self._screen.note(f"the question was {unanswered_text(news.cause)}", tone="wait")
        elif news.state == "answered":
            mine = news.by is not None and news.by.client_id == self._session.client.who.client_id
            who = (
                "you" if mine else "another client" if news.by is None else plain_line(news.by.name, limit=64)
            )
            answer = plain_line(news.option_name or news.outcome or "", limit=120)
            self._screen.note(f"{who} answered: {answer}" if answer else f"{who} answered")

    def _fill_in(self, pending: PendingQuestion, asked: Elicitation) -> None:
        def filled(reply: Any) -> None:
            self._form = None
            if reply is not None and not pending.answer.done():
                pending.reply(reply)
                accepted = isinstance(reply, v2.ElicitationAcceptAction)
                self._note_answer("the form was sent" if accepted else "declined")
            self._screen.composer.focus()

        self._form = FormScreen(asked)
        self._screen.app.push_screen(self._form, filled)

    def _put_away(self, form: FormScreen) -> None:
        self._form = None
        if form.is_attached and form.is_current:
            form.dismiss(None)
            self._screen.notify("The form was closed: the question has ended.", markup=False)

    def _note_answer(self, answer: str) -> None:
        """Note an answer if the agent does not report answers itself."""
        if not self._session.abilities.extras.presence:
            self._screen.note(f"you answered: {answer}")
