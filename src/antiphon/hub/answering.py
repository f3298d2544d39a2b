"""Who answers an agent's question behind a hub: those whom the policy names, or nobody, in time or not."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from antiphon.agent.session import AgentSession
from antiphon.client import Permission
from antiphon.engine.events import NOTHING, QuestionClosed, QuestionEnd
from antiphon.engine.questions import REQUEST_PERMISSION, Question
from antiphon.engine.who import Who
from antiphon.errors import AntiphonError
from antiphon.hub.policies import READS, Unattended
from antiphon.live.voice import Voice
from antiphon.schema import v2

if TYPE_CHECKING:
    from antiphon.hub.sessions import HubSessions

NO_OPTION = v2.PermissionOption(
    option_id=v2.PermissionOptionId(""), name="", kind=v2.PermissionOptionKind.REJECT_ONCE
)
"""Decided, where none of the options says so."""


class Answering(AgentSession):
    unattended: str
    """What becomes of a question with nobody there who may answer."""
    _hub: HubSessions

    def answering(self) -> list[Voice]:
        """Those who are there and would be asked now."""
        turn = self.fold.turn
        asked = Question(
            question_id="",
            method=REQUEST_PERMISSION,
            params=NOTHING,
            opened=0,
            turn_id=None if turn is None else turn.turn_id,
        )
        return [link.voices[self.id] for link in self.clients() if link.permit.answers(link, self, asked)]

    def decide_alone(self, permission: Permission) -> v2.PermissionOption | None:
        """What is decided where nobody is there who may; `None` where somebody is to be waited for: also the
        client that begins the session and is about to follow it."""
        if self.unattended == Unattended.WAIT or self.answering() or self.start is not None:
            return None
        if self.unattended == Unattended.REJECT:
            decided: v2.PermissionOption | None = permission.reject() or NO_OPTION
        else:
            reads = permission.kind in READS
            decided = permission.option(v2.PermissionOptionKind.ALLOW_ONCE) if reads else None
        if decided is not None:
            self._hub.audit.note("answer", f"unattended: {decided.kind}", session=self.id)
        return decided

    def left(self) -> None:
        """The one who was to answer may have left: then the others are asked."""
        if self.fold.questions.open:
            asyncio.get_running_loop().call_soon(self._ask_again)

    def _ask_again(self) -> None:
        for voice in self.attached():
            voice.ask(self.fold.questions.open)

    def let_expire(self, question_id: str) -> None:
        seconds = self._hub.question_expiry
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, self._expire, question_id)

    def _expire(self, question_id: str) -> None:
        events = self.fold.questions.expire(question_id).events
        if events:
            with suppress(AntiphonError):  # the session is being let go
                self.emit(events)
                self._hub.audit.note("answer", "expired", session=self.id, question=question_id)

    def _closed_question(self, body: QuestionClosed) -> None:
        super()._closed_question(body)
        if body.end is not QuestionEnd.ANSWERED:
            return
        by = body.by
        self._hub.audit.note(
            "answer",
            "allowed",
            token=self._credential,
            client=by.client_id if isinstance(by, Who) else by,
            session=self.id,
            question=body.question_id,
        )
