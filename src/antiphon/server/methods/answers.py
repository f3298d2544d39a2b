"""`_antiphon/answer`: a question answered by its id, by a client that lost the request or was never asked.

The params hold what the request would have been answered with, in v2's words.
"""

from __future__ import annotations

from typing import Any

from antiphon.engine.json_values import encode
from antiphon.engine.prompt_states import PRECONDITION_FAILED
from antiphon.engine.questions import CREATE_ELICITATION, Question, QuestionState, counted, elicitation_of
from antiphon.errors import Forbidden, InvalidParams, InvalidResult, RequestError, ResourceNotFound
from antiphon.schema import v2
from antiphon.schema.antiphon.messages import AnswerRequest
from antiphon.schema.antiphon.prompts import Done
from antiphon.schema.codec import codec
from antiphon.server.request import Request


async def answer(request: Request) -> Done:
    client = request.client
    params: AnswerRequest = request.params
    session = request.registry.find(params.session_id)
    question = None if session is None else session.fold.questions.get(params.question_id)
    if session is None or question is None:
        raise ResourceNotFound("no such question", data={"reason": "unknown_question"})
    if not client.policy.answers(session, question, client_id=client.client_id):
        raise Forbidden
    operation_id = params.operation_id
    if question.state is QuestionState.OPEN:
        session.control.answer(
            question.question_id,
            _read(question, params),
            client.voices.get(session.id),
            by=client.info.who,
            credential=client.policy.credential,
            operation_id=operation_id,
        )
    elif operation_id is None or operation_id != question.operation_id:
        over = {"reason": f"already_{question.state}"}
        raise RequestError(PRECONDITION_FAILED, "The question is not open any more", data=over)
    await session.feed.durable()  # invariant 1
    return Done()


def _read(question: Question, params: AnswerRequest) -> Any:
    """Return the answer as the request would have been answered. Raises `InvalidParams` for one that does not
    fit the question."""
    try:
        result = codec(2).result(question.method, encode(params))
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
