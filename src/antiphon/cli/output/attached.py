"""A session as plain lines, with what its other clients do: the output of `antiphon attach`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from antiphon.cli.output.descriptions import LONGEST_NOTE
from antiphon.cli.output.plain import PlainScreen
from antiphon.cli.program import short_path
from antiphon.client import Client, ClientSession, SessionEvent
from antiphon.engine import Message, MessageType, is_deletion, sender_in
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import Present, Who
from antiphon.schema.antiphon.messages import QuestionUpdate
from antiphon.text_safety import printed_text, safe_line
from antiphon.transcripts import DELETED, block_text, ending_text

SHOWN = 20
"""Earlier messages that are shown when the user attaches."""
HOW = "type to prompt · Ctrl-C cancels your turn, or detaches if you have none · the session continues"
USER = (v2.UserMessage, v2.UserMessageChunk)


class AttachedScreen(PlainScreen):
    def __init__(self) -> None:
        super().__init__(sys.stdout, sys.stderr)
        self._others: dict[str, str] = {}

    def open(self, client: Client, session: ClientSession) -> None:
        self.begin(client, session)
        said = [message for message in session.messages if message.type is not MessageType.THOUGHT]
        if len(said) > SHOWN:
            self.note(f"{len(said) - SHOWN} earlier messages: antiphon sessions show {session.id}")
        for message in said[-SHOWN:]:
            self._repeat(message)
        title = f" · {safe_line(session.title, limit=40)}" if session.title else ""
        self.note(f"{session.id}{title} · {short_path(session.cwd)} · {session.state}")
        self.note(HOW)
        self._note_clients(session.clients)

    def _repeat(self, message: Message) -> None:
        text = f"[{DELETED}]" if message.deleted else message.text
        if message.type is MessageType.USER:
            self.line(_from(message.sender) + printed_text(text))
        else:
            self._write(message.id, text)
            self._break()

    def note(self, text: str) -> None:
        if self._err.isatty():
            self.line(f"· {safe_line(text, limit=LONGEST_NOTE)}", style="\x1b[2m")
        else:
            super().note(text)

    def show(self, event: SessionEvent, *, mine: bool) -> None:
        update: Any = event.update
        if isinstance(update, USER) and (
            event.turn is None or event.turn.prompt is None
        ):  # of another client
            blocks = [update.content] if isinstance(update, v2.UserMessageChunk) else update.content or ()
            text = safe_line("".join(map(block_text, blocks)), limit=2000)
            if isinstance(update, v2.UserMessage) and is_deletion(update):
                text = f"[{DELETED}]"
            if text:
                self.line(_from(sender_in(update.meta)) + text)
        super().show(event, mine=mine)
        if event.clients is not None:
            self._note_clients(event.clients)
        if event.news is not None:
            self._note_answer(event.news)
        if isinstance(update, v2.StateUpdate) and update.state is v2.State.IDLE and update.stop_reason:
            self.note(ending_text(update.stop_reason))

    def _note_clients(self, clients: Iterable[Present]) -> None:
        others = {each.client_id: each.name for each in clients if not each.you}
        came, left = others.keys() - self._others.keys(), self._others.keys() - others.keys()
        for id in sorted(came):
            self.note(f"{others[id]} is here")
        for id in sorted(left):
            self.note(f"{self._others[id]} has left")
        self._others = others

    def _note_answer(self, news: QuestionUpdate) -> None:
        if news.by is not None and news.by.client_id in self._others:
            answer = news.option_name or news.outcome or news.state
            self.note(f"{news.by.name} answered: {safe_line(answer)}")


def _from(who: Who | None) -> str:
    return "> " if who is None else f"{safe_line(who.name, limit=40)}> "
