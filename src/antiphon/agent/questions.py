"""TurnQuestions: what an agent asks in a session, and whether its turn waits for an answer."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from antiphon.agent.open_turn import OpenTurn
from antiphon.engine.events import QuestionEnd
from antiphon.engine.questions import REQUEST_PERMISSION
from antiphon.engine.turn import TurnState
from antiphon.schema import v2
from antiphon.schema.codec import codec
from antiphon.server.checks import check_question
from antiphon.server.ids import new_id
from antiphon.server.questions import Reply
from antiphon.server.session import ServedSession


class TurnQuestions:
    def __init__(
        self,
        session: ServedSession,
        open_turn: Callable[[], OpenTurn | None],
        background: Container[str | None],
    ) -> None:
        """`background` holds the ids of the tool calls that work outside of turns."""
        self._session = session
        self._open_turn = open_turn
        self._background = background
        self._calls: set[str] = set()
        """The tool calls of the turn that run."""
        self._waiting: dict[str, str] = {}
        """The open questions of the turn, and what waits with each: a tool call, or the handler itself."""

    def call_began(self, tool_call_id: str) -> None:
        """Note that a tool call of the turn has begun to run."""
        self._calls.add(tool_call_id)
        self._report()

    def call_ended(self, tool_call_id: str) -> None:
        """Note that a tool call of the turn does not run any more."""
        self._calls.discard(tool_call_id)
        self._report()

    def turn_ended(self) -> None:
        self._calls.clear()

    def _report(self) -> None:
        """Report `requires_action` only while everything that runs in the turn waits for an answer
        (PROMPT-V2-23, PROMPT-V2-25)."""
        turn, fold = self._open_turn(), self._session.fold
        if turn is None:
            return
        if self._waiting and self._calls <= set(self._waiting.values()):
            if fold.state is TurnState.RUNNING:
                self._session.emit(fold.block())
        elif fold.state is TurnState.REQUIRES_ACTION:
            self._session.emit(fold.unblock())

    async def permission(
        self, request: v2.RequestPermissionRequest, *, tool_call_id: str
    ) -> v2.RequestPermissionOutcome:
        """Ask the clients of the session, and wait for the first answer; without clients it waits."""
        check_question(request)
        closed = (await self.ask(REQUEST_PERMISSION, request, tool_call_id=tool_call_id)).closed
        if closed.end is not QuestionEnd.ANSWERED:
            return v2.CancelledPermissionOutcome()  # PERM-V2-08
        response: v2.RequestPermissionResponse = codec(2).result(REQUEST_PERMISSION, closed.result)
        return response.outcome

    async def ask(self, method: str, params: Any, *, tool_call_id: str | None = None) -> Reply:
        """Ask a question of whichever kind; return how it ended. One of background work belongs to that, and
        not to the turn that happens to be open (PERM-V2-10, ELIC-20)."""
        questions, question_id = self._session.questions, new_id("question")
        behind = tool_call_id if tool_call_id in self._background else None
        try:
            questions.open(question_id, method, params, tool_call_id=behind)
            if behind is None:
                self._waiting[question_id] = tool_call_id or question_id
            self._report()
            return await questions.reply(question_id)
        finally:
            questions.drop(question_id)
            self._waiting.pop(question_id, None)
            turn = self._open_turn()
            if turn is not None and not turn.cancelling:
                self._report()
