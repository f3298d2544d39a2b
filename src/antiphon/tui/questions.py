"""The questions of a session on the screen: put to whoever sits here, answered, and told in what follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antiphon.client import Elicitation, Permission, QuestionNews
from antiphon.schema import v2
from antiphon.tui.asking import Pending
from antiphon.tui.form_screen import FormScreen
from antiphon.tui.plain import plain_line
from antiphon.tui.question_card import QuestionCard

if TYPE_CHECKING:
    from antiphon.tui.chat_screen import ChatScreen


class Questions:
    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._session = screen.session
        self.card = QuestionCard()
        self._form: FormScreen | None = None

    def changed(self) -> None:
        """One has come, or gone."""
        screen, card = self._screen, self.card
        pending = screen.app.asking.of(self._session)
        first = pending[0] if pending else None
        fresh = first is not None and first is not card.pending
        if first is None and card.focused:
            screen.set_focus(screen.composer)  # before it is hidden, and the focus goes anywhere
        card.show(first, more=len(pending) - 1)
        if self._form is not None and all(each.asked is not self._form.elicitation for each in pending):
            self._put_away(self._form)
        if fresh and not screen.composer.text:
            card.take_focus()
        elif fresh:
            screen.notify("The agent asks: Tab leads to the answers.", markup=False)

    def answer(self, pending: Pending, choice: v2.PermissionOption | str) -> None:
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
        self._screen.set_focus(self._screen.composer)

    def tell(self, news: QuestionNews) -> None:
        """Note how one has ended, wherever it was answered."""
        if news.state == "expired":
            self._screen.note("the question has expired", tone="wait")
        elif news.state == "answered":
            mine = news.by is not None and news.by.client_id == self._session.client.who.client_id
            who = "you" if mine else "somebody" if news.by is None else plain_line(news.by.name, limit=64)
            answer = plain_line(news.option_name or news.outcome or "", limit=120)
            self._screen.note(f"{who} answered: {answer}" if answer else f"{who} answered")

    def _fill_in(self, pending: Pending, asked: Elicitation) -> None:
        def filled(reply: Any) -> None:
            self._form = None
            if reply is not None and not pending.answer.done():
                pending.reply(reply)
                accepted = isinstance(reply, v2.ElicitationAcceptAction)
                self._told_here("the form is filled in" if accepted else "declined")
            self._screen.composer.focus()

        self._form = FormScreen(asked)
        self._screen.app.push_screen(self._form, filled)

    def _put_away(self, form: FormScreen) -> None:
        self._form = None
        if form.is_attached and form.is_current:
            form.dismiss(None)
            self._screen.notify("The form is not needed any more.", markup=False)

    def _told_here(self, answer: str) -> None:
        """Where the agent does not tell who answered what, it is told here."""
        if not self._session.abilities.ours.get("presence"):
            self._screen.note(f"you answered: {answer}")
