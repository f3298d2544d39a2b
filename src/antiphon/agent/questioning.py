"""What an agent asks in a session: questions are facts of its journal, and each is answered once."""

from __future__ import annotations

import asyncio
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from antiphon.agent.asking import Reply, heard_elicitation
from antiphon.agent.checks import check_question
from antiphon.engine.elicitations import CREATE_ELICITATION
from antiphon.engine.events import AnyBody, QuestionClosed, QuestionEnd, QuestionOpened
from antiphon.engine.questions import REQUEST_PERMISSION
from antiphon.engine.reading import encode
from antiphon.engine.session import Session
from antiphon.engine.turn import TurnState
from antiphon.engine.who import Who
from antiphon.live.voice import Voice
from antiphon.schema import v2
from antiphon.schema.codec import codec

if TYPE_CHECKING:
    from antiphon.agent.background import Background
    from antiphon.agent.link import Link
    from antiphon.agent.turn import AgentTurn


class Questioning(ABC):
    """The questions of a session, and the tool calls that wait with them."""

    clients: Callable[[], list[Link]]
    _turn: AgentTurn | None
    _cancelling: bool
    behind: Background

    def __init__(self) -> None:
        self._calls: set[str] = set()
        self._asking: dict[str, str] = {}
        """The open questions of the turn, and what waits with each: a tool call, or the handler itself."""
        self._questions: dict[str, asyncio.Future[Reply]] = {}
        self._hearing: Voice | None = None
        """The attachment whose answer is being noted."""
        self._credential: str | None = None
        """What the client was let in with whose answer is being noted."""

    @property
    @abstractmethod
    def id(self) -> str: ...

    @property
    @abstractmethod
    def fold(self) -> Session: ...

    @abstractmethod
    def emit(self, bodies: Sequence[AnyBody]) -> None: ...

    def attached(self) -> list[Voice]:
        """Those who follow the session now."""
        return [link.voices[self.id] for link in self.clients()]

    def left(self) -> None:
        """A client has left: its questions wait, here, for its return."""
        return

    def calling(self, tool_call_id: str, *, on: bool) -> None:
        """A tool call of the turn has begun to run, or has ended."""
        if on:
            self._calls.add(tool_call_id)
        else:
            self._calls.discard(tool_call_id)
        self._report_waiting()

    def _report_waiting(self) -> None:
        """`requires_action` only while everything that runs in the turn waits for an answer
        (PROMPT-V2-23, PROMPT-V2-25)."""
        if self._turn is None:
            return
        if self._asking and self._calls <= set(self._asking.values()):
            if self.fold.state is TurnState.RUNNING:
                self.emit(self.fold.block())
        elif self.fold.state is TurnState.REQUIRES_ACTION:
            self.emit(self.fold.unblock())

    async def ask(
        self, request: v2.RequestPermissionRequest, *, tool_call_id: str
    ) -> v2.RequestPermissionOutcome:
        """Ask whoever follows the session, and wait for the first answer; with nobody there it waits."""
        check_question(request)
        closed = (await self.pose(REQUEST_PERMISSION, request, tool_call_id=tool_call_id)).closed
        if closed.end is not QuestionEnd.ANSWERED:
            return v2.CancelledPermissionOutcome()  # PERM-V2-08
        response: v2.RequestPermissionResponse = codec(2).result(REQUEST_PERMISSION, closed.result)
        return response.outcome

    async def pose(self, method: str, params: Any, *, tool_call_id: str | None = None) -> Reply:
        """Put a question of whichever kind; how it ended, and who ended it. One of background work belongs to
        that, and not to the turn that happens to be open (PERM-V2-10, ELIC-20)."""
        question_id = f"question_{secrets.token_hex(12)}"
        behind = tool_call_id if tool_call_id in self.behind else None
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._questions[question_id] = reply
        opened = QuestionOpened(
            question_id=question_id, method=method, params=Raw(encode(params)), tool_call_id=behind
        )
        try:
            self.emit([opened])
            if behind is None:
                self._asking[question_id] = tool_call_id or question_id
            self._report_waiting()
            return await reply
        finally:
            self._questions.pop(question_id, None)
            self.emit(self.fold.questions.cancel(question_id).events)
            self._asking.pop(question_id, None)
            if not self._cancelling:
                self._report_waiting()

    def heard(
        self,
        question_id: str,
        answer: Any,
        voice: Voice | None = None,
        *,
        by: Who | None = None,
        credential: str | None = None,
        operation_id: str | None = None,
    ) -> None:
        """Note the answer of a client; only the first one counts.

        voice: its attachment; `by` and `credential` say who it is where it is not attached
        """
        if voice is not None and not voice.counts():
            return  # it waits for others
        question = self.fold.questions.get(question_id)
        if question is not None and question.method == CREATE_ELICITATION:
            result = heard_elicitation(self, question, answer, voice)
        else:
            result = encode(v2.RequestPermissionResponse(outcome=answer))
        if result is not None:
            by = by if voice is None else voice.who
            ending = self.fold.questions.answer(question_id, result, by=by, operation_id=operation_id)
            events = ending.events
            if events:  # a late one changes nothing, in a session that is being put away either
                self._hearing = voice
                self._credential = credential if voice is None else voice.credential
                self.emit(events)
                self._hearing = self._credential = None

    def _closed_question(self, body: QuestionClosed) -> None:
        waiting = self._questions.get(body.question_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(Reply(body, self._hearing))
