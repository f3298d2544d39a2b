"""Questions: permissions and elicitations of one session. Each is a fact of its journal, answered once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Raw

from antiphon.engine.events import NOTHING, AnyBody, QuestionClosed, QuestionOpened, present
from antiphon.engine.json_values import encode
from antiphon.engine.prompt_states import PRECONDITION_FAILED
from antiphon.engine.questions import (
    CREATE_ELICITATION,
    Elicited,
    Question,
    QuestionState,
    counted,
    elicitation_of,
    mode_of,
)
from antiphon.engine.session import Session
from antiphon.errors import InvalidParams, InvalidResult, RequestError, ResourceNotFound
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.codec import codec
from antiphon.server.control.operations import AnswerQuestion

logger = logging.getLogger("antiphon.server")

COMPLETE = "elicitation/complete"
CANCEL = v2.ElicitationCancelAction()
Notify = Callable[[str, Any], Awaitable[None]]
"""Sends a notification to one client."""


class Channel(Protocol):
    @property
    def scope(self) -> Mapping[str, Any]:
        """The fields of a request that say what it belongs to."""

    def takes(self, mode: str) -> bool:
        """Return whether a question of this mode can be put."""

    async def put(self, request: Elicited) -> tuple[v2.CreateElicitationResponse, Notify | None]:
        """Return the answer as it counts, and what notifies the client that gave it."""


class Reply(NamedTuple):
    """How a question ended, and the attachment that answered it."""

    closed: QuestionClosed
    voice: AttachmentWriter | None = None


class Questions:
    def __init__(
        self,
        fold: Session,
        emit: Callable[[Sequence[AnyBody]], None],
        attached: Callable[[], list[AttachmentWriter]],
    ) -> None:
        """`emit` commits events; `attached` returns the attachments of the session."""
        self._fold = fold
        self._emit = emit
        self._attached = attached
        self._waiting: dict[str, asyncio.Future[Reply]] = {}
        self._answering: AttachmentWriter | None = None
        """The attachment whose answer is being committed."""
        self.credential: str | None = None
        """The token of the client whose answer is being committed."""

    def open(
        self,
        question_id: str,
        method: str,
        params: Any,
        *,
        tool_call_id: str | None = None,
        origin: Raw = NOTHING,
    ) -> None:
        """Ask a question. `tool_call_id`: it belongs to that background work, and not to the open turn
        (PERM-V2-10, ELIC-20). `origin` is the request of a v1 agent."""
        self._waiting[question_id] = asyncio.get_running_loop().create_future()
        opened = QuestionOpened(
            question_id=question_id,
            method=method,
            params=Raw(encode(params)),
            tool_call_id=tool_call_id,
            origin=origin,
        )
        self._emit([opened])

    def is_open(self, question_id: str) -> bool:
        """Return whether a caller may wait for the reply."""
        return question_id in self._waiting

    async def reply(self, question_id: str) -> Reply:
        """Wait until a question is answered, cancelled or expired."""
        return await self._waiting[question_id]

    def drop(self, question_id: str) -> None:
        """Stop waiting for the reply. A question without an answer is cancelled."""
        self._waiting.pop(question_id, None)
        self._emit(self._fold.questions.cancel(question_id).events)

    def close(self, body: QuestionClosed) -> None:
        """Give the caller that waits how its question ended."""
        waiting = self._waiting.get(body.question_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(Reply(body, self._answering))

    def answer(
        self,
        question_id: str,
        answer: Any,
        voice: AttachmentWriter | None = None,
        *,
        by: Who | None = None,
        credential: str | None = None,
        operation_id: str | None = None,
    ) -> None:
        """Commit the answer of a client; only the first one counts.

        voice: its attachment; `by` and `credential` name a client that is not attached here
        """
        if voice is not None and not voice.counts():
            return  # the question waits for other clients
        question = self._fold.questions.get(question_id)
        if question is not None and question.method == CREATE_ELICITATION:
            result = self._elicitation_result(question, answer, voice)
        else:
            result = encode(v2.RequestPermissionResponse(outcome=answer))
        if result is None:
            return
        by = by if voice is None else voice.who
        events = self._fold.questions.answer(question_id, result, by=by, operation_id=operation_id).events
        if events:  # a late one changes nothing, also in a session that is being put away
            self._answering = voice
            self.credential = credential if voice is None else voice.credential
            self._emit(events)
            self._answering = self.credential = None

    def answer_by_id(self, asked: AnswerQuestion) -> None:
        """Commit an answer in v2's words. Raises `InvalidParams` for one that does not fit the question, and
        `RequestError` if the question is not open any more."""
        question = self._fold.questions.get(asked.question_id)
        if question is None:
            raise unknown_question()
        if question.state is QuestionState.OPEN:
            result = present(asked.result)
            answer = None if result is None else _read(question, result)
            self.answer(
                question.question_id,
                answer,
                self._attachment_of(asked),
                by=asked.by,
                credential=asked.credential,
                operation_id=asked.operation_id,
            )
        elif asked.operation_id is None or asked.operation_id != question.operation_id:
            over = {"reason": f"already_{question.state}"}
            raise RequestError(PRECONDITION_FAILED, "The question is not open any more", data=over)

    def _attachment_of(self, asked: AnswerQuestion) -> AttachmentWriter | None:
        """Return the attachment of the client that answers, if it has one here. A client chooses what it is
        called, but not its token."""
        said = (asked.by, asked.credential)
        return next((voice for voice in self._attached() if (voice.who, voice.credential) == said), None)

    def _elicitation_result(
        self,
        question: Question,
        response: v2.CreateElicitationResponse | None,
        voice: AttachmentWriter | None,
    ) -> bytes | None:
        """Return the result that an answer of one client leads to. An error, or an answer that does not fit,
        decides nothing while others are still to answer, and counts as cancelled if there are none (ELIC-15,
        ELIC-17)."""
        request = elicitation_of(question)
        if request is None:
            return None
        given = None if response is None else counted(request, response)
        if given is None:
            logger.warning("elicitation of mode %s: an answer does not fit", mode_of(request))
            others = (other for other in self._attached() if other is not voice)
            if any(other.asks(question.question_id) for other in others):
                return None
            given = CANCEL
        return encode(given)

    def ask_again(self) -> None:
        """Put the open questions to clients that were not asked: the one that was to answer may have left."""
        for voice in self._attached():
            voice.ask(self._fold.questions.open)


def unknown_question() -> ResourceNotFound:
    return ResourceNotFound("no such question", data={"reason": "unknown_question"})


def _read(question: Question, given: bytes) -> Any:
    """Return the answer as the request would have been answered. Raises `InvalidParams` for one that does not
    fit the question."""
    try:
        result = codec(2).result(question.method, given)
    except InvalidResult as error:
        raise InvalidParams(error.detail) from None
    if question.method == CREATE_ELICITATION:
        request = elicitation_of(question)
        if request is None or counted(request, result) is None:
            raise InvalidParams("the answer does not fit what is asked")  # ELIC-17
        return result
    outcome = result.outcome
    if isinstance(outcome, v2.SelectedPermissionOutcome) and question.chosen(encode(result)) is None:
        raise InvalidParams(f"{outcome.option_id!r} is not one of the options of the question")
    return outcome
