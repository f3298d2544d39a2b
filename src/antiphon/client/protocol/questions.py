"""PendingQuestions: the questions that an agent has put to this client and that have no answer yet.

A question is answered once: by the decider, or as `cancelled` when its turn is cancelled or over, or when the
agent withdraws it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Protocol

from msgspec import Raw, Struct

from antiphon.client.protocol.dialect import AgentDialect, AgentEvent
from antiphon.client.protocol.dialect_v1 import AgentDialectV1
from antiphon.client.protocol.tracked_session import (
    TrackedSession,
    is_background,
    shows_background_terminal,
)
from antiphon.engine.events import NOTHING, QuestionClosed, QuestionEnd, QuestionOpened
from antiphon.engine.json_values import encode, is_readable
from antiphon.engine.questions import CREATE_ELICITATION, REQUEST_PERMISSION, Elicited
from antiphon.engine.recent import Recent
from antiphon.engine.session import Session
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.antiphon.messages import QuestionMeta
from antiphon.schema.antiphon.readers import read_meta

CANCELLED = v2.CancelledPermissionOutcome()
REMEMBERED = 256


class Decider(Protocol):
    """Decides on the questions of a session."""

    async def decide_permission(
        self, session_id: str, question_id: str, request: v2.RequestPermissionRequest
    ) -> v2.RequestPermissionResponse | None:
        """None cancels."""

    async def decide_elicitation(
        self, session_id: str, question_id: str, request: Elicited
    ) -> v2.CreateElicitationResponse | None:
        """None cancels."""


class AnswerMemory:
    """The last answers of this client, by session and the agent's question id.

    A client that answers just as the link is lost cannot know whether the answer arrived. A hub that did not
    get it asks again under the same question id, and the user has decided already.
    """

    def __init__(self) -> None:
        self._results: Recent[tuple[str, str], Any] = Recent(REMEMBERED)

    def get(self, session_id: str, question_id: str | None) -> Any:
        """The result that was given; None if there is none."""
        return None if question_id is None else self._results.get((session_id, question_id))

    def keep(self, session_id: str, question_id: str | None, result: Any) -> None:
        if question_id is not None:
            self._results[session_id, question_id] = result


class _Asked(Struct, kw_only=True):
    """A question that is open."""

    question_id: str
    agents_id: str | None
    """The agent's id of it, which is the same if it is asked again."""
    tool_call_id: str | None
    terminal_id: str | None = None
    cancelled: Any
    """The result that means that nobody decided."""
    outside_turns: bool
    origin: Raw = NOTHING
    """How a v1 agent wrote it: a hub asks its v1 clients the same way."""
    result: asyncio.Future[Any]
    deciding: asyncio.Task[None] | None = None


class PendingQuestions:
    def __init__(
        self,
        session_id: str,
        tracker: TrackedSession[Any],
        dialect: AgentDialect,
        decider: Decider,
        memory: AnswerMemory,
        handle: Callable[[Iterable[AgentEvent]], None],
    ) -> None:
        """`handle` applies what the dialect returns."""
        self._session_id = session_id
        self._tracker = tracker
        self._dialect = dialect
        self._decider = decider
        self._memory = memory
        self._handle = handle
        self._v1 = isinstance(dialect, AgentDialectV1)
        self._open: dict[str, _Asked] = {}
        self._deciding: set[asyncio.Task[None]] = set()
        self._cancelled: set[asyncio.Task[None]] = set()
        """Deciding tasks of a lost link that were cancelled and may not have ended."""
        self._count = 0

    @property
    def open(self) -> bool:
        """Whether the agent waits for an answer."""
        return bool(self._open)

    @property
    def foreground_calls(self) -> list[str]:
        """The tool calls of the foreground that wait for an answer."""
        return [asked.tool_call_id for asked in self._foreground() if asked.tool_call_id is not None]

    async def ask_permission(self, params: Any, inbound: Inbound) -> Any:
        """Handle `session/request_permission`. It begins in the lane, and waits for the answer outside."""
        asked, request, answer = self._read_permission(params)
        if request is None:
            return answer(CANCELLED)
        if self._v1 and inbound.params is not None and is_readable(inbound.params):
            asked.origin = inbound.params
        decide = partial(self._decider.decide_permission, self._session_id, asked.question_id, request)
        self._begin(asked, REQUEST_PERMISSION, request, decide)
        return answer((await self._result(asked, inbound)).outcome)

    def permission_withdrawn(self, params: Any) -> Any:
        """Answer a permission request that the agent cancelled before it began. It is published as cancelled,
        and nobody is asked (PERM-V2-09)."""
        asked, request, answer = self._read_permission(params)
        if request is not None:
            self._begin(asked, REQUEST_PERMISSION, request, None)
        return answer(CANCELLED)

    def _read_permission(
        self, params: Any
    ) -> tuple[_Asked, v2.RequestPermissionRequest | None, Callable[[Any], Any]]:
        """A permission request in v2 terms, and the function that makes an answer to it."""
        question = self._dialect.permission_asked(params)
        self._handle(question.updates)
        tool_call_id = terminal_id = None
        match None if question.params is None else question.params.subject:
            case v2.ToolCallPermissionSubject(tool_call=call):
                tool_call_id = call.tool_call_id
            case v2.CommandPermissionSubject() as command:
                tool_call_id, terminal_id = command.tool_call_id, command.terminal_id
        asked = self._new_question(
            params,
            tool_call_id=tool_call_id,
            terminal_id=terminal_id,
            cancelled=v2.RequestPermissionResponse(outcome=CANCELLED),
        )
        # PERM-V2-10: asked while nothing is worked on or waits, it is not known to belong to a turn.
        asked.outside_turns = asked.outside_turns and not self._v1
        return asked, question.params, question.answer

    async def ask_elicitation(self, request: Elicited, inbound: Inbound) -> Any:
        """Handle `elicitation/create` of this session."""
        asked = self._new_question(
            request, tool_call_id=request.tool_call_id, cancelled=v2.ElicitationCancelAction()
        )
        decide = partial(self._decider.decide_elicitation, self._session_id, asked.question_id, request)
        self._begin(asked, CREATE_ELICITATION, request, decide)
        return await self._result(asked, inbound)

    def _new_question(
        self, params: Any, *, tool_call_id: str | None, terminal_id: str | None = None, cancelled: Any
    ) -> _Asked:
        self._count += 1
        return _Asked(
            question_id=f"question-{self._count}",
            agents_id=read_meta(QuestionMeta, params.meta).question_id,
            tool_call_id=tool_call_id,
            terminal_id=terminal_id,
            cancelled=cancelled,
            outside_turns=not self._tracker.turns.unfinished(),  # ELIC-20: then it depends on no turn
            result=asyncio.get_running_loop().create_future(),
        )

    async def _result(self, asked: _Asked, inbound: Inbound) -> Any:
        try:
            return await asyncio.shield(asked.result)
        except asyncio.CancelledError:
            if not inbound.cancelled:
                raise  # the link ends
            self._close(asked, None)  # PERM-V2-09: withdrawn by the agent, and answered all the same
            return asked.cancelled

    def _begin(
        self, asked: _Asked, method: str, params: Any, decide: Callable[[], Coroutine[Any, Any, Any]] | None
    ) -> None:
        question_id, call = asked.question_id, asked.tool_call_id
        self._open[question_id] = asked
        background = self._is_background(asked)
        span = self._tracker.turns.open
        self._tracker.apply_question(
            QuestionOpened(
                question_id=question_id,
                method=method,
                params=Raw(encode(params)),
                tool_call_id=call,
                terminal_id=asked.terminal_id,
                origin=asked.origin,
            ),
            background=background,
        )
        # PROMPT-V1-12: it was asked before the agent received the cancel.
        if decide is None or (span is not None and span.cancelled and not background):
            self._close(asked, None)
            return
        if (call is not None or method == CREATE_ELICITATION) and not background:
            self._handle(self._dialect.question_opened(question_id, call or question_id))
        asked.deciding = asyncio.get_running_loop().create_task(self._decide(asked, decide))
        self._deciding.add(asked.deciding)
        asked.deciding.add_done_callback(self._deciding.discard)

    async def _decide(self, asked: _Asked, decide: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        result = None
        try:
            if self._cancelled:
                await asyncio.wait(self._cancelled)  # one of them may be about the same question
                self._cancelled.clear()
            result = self._memory.get(self._session_id, asked.agents_id)
            if result is None:
                result = await decide() or asked.cancelled
                self._memory.keep(self._session_id, asked.agents_id, result)
        finally:  # also if the decider was itself cancelled
            self._close(asked, result)

    def _close(self, asked: _Asked, result: Any) -> None:
        """Answer a question, unless it was answered before. None answers as cancelled."""
        if self._open.pop(asked.question_id, None) is None:
            return
        if asked.deciding is not None and asked.deciding is not asyncio.current_task():
            asked.deciding.cancel()
        result = asked.cancelled if result is None else result
        asked.result.set_result(result)
        self._tracker.note_activity()  # the agent has waited for this client so far
        end = QuestionEnd.CANCELLED if result == asked.cancelled else QuestionEnd.ANSWERED
        published: Raw = Raw(encode(result))
        by: Who | None = None
        elsewhere = self._tracker.answer_elsewhere(asked.agents_id)
        if elsewhere is not None and end is QuestionEnd.CANCELLED:
            end, (published, by) = QuestionEnd.ANSWERED, elsewhere
        self._tracker.apply_question(
            QuestionClosed(question_id=asked.question_id, end=end, result=published, by=by),
            background=self._is_background(asked),
        )
        self._handle(self._dialect.question_closed(asked.question_id))

    def cancel_foreground(self) -> None:
        """Answer the questions of the foreground as `cancelled`, at once (PROMPT-V1-12, PERM-V1-03,
        PERM-V2-10). Questions of background work stay open."""
        if self._tracker.turns.open is None and not self._v1:
            return  # nothing is foreground
        for asked in self._foreground():
            self._close(asked, None)

    def cancel_all(self) -> None:
        """Answer everything as cancelled: the session is over at the agent."""
        for asked in list(self._open.values()):
            self._close(asked, None)

    def link_lost(self) -> None:
        """The agent cannot receive these answers. It asks again what is still open after that."""
        self._cancelled.update(asked.deciding for asked in self._open.values() if asked.deciding is not None)
        self.cancel_all()

    def leave(self) -> None:
        """Stop deciding, and answer nothing: other clients may have been asked too."""
        self._open.clear()
        for task in self._deciding:
            task.cancel()

    def _foreground(self) -> list[_Asked]:
        return [
            asked
            for asked in self._open.values()
            if not asked.outside_turns
            and not self._is_background(asked)
            and not shows_background_terminal(self._tracker.fold, asked.tool_call_id)
        ]

    def _is_background(self, asked: _Asked) -> bool:
        """As of now: background work may be listed as such after it has asked (PERM-V2-10)."""
        return is_background(self._tracker.fold, asked.tool_call_id, asked.terminal_id)


def tool_kind(request: v2.RequestPermissionRequest, fold: Session) -> str:
    """The kind of tool that a permission request is about: `read`, `edit`, `execute`, …"""
    if isinstance(request.subject, v2.CommandPermissionSubject):
        return "execute"
    subject = request.subject
    call = subject.tool_call.tool_call_id if isinstance(subject, v2.ToolCallPermissionSubject) else None
    known = None if call is None else fold.tools.get(call)
    return "other" if known is None else str(known.kind)


def first_option(request: v2.RequestPermissionRequest, *kinds: str) -> v2.PermissionOption | None:
    """The first option of the first of these kinds that is offered."""
    for kind in kinds:
        for option in request.options:
            if option.kind == kind:
                return option
    return None
