"""`_antiphon/answer`: a question answered by its id, by a client that lost the request or was never asked.

The params hold what the request would have been answered with, in v2's words.
"""

from __future__ import annotations

from msgspec import Raw

from antiphon.engine.json_values import encode
from antiphon.errors import Forbidden
from antiphon.schema.antiphon.messages import AnswerRequest
from antiphon.schema.antiphon.prompts import Done
from antiphon.server.control.operations import AnswerQuestion
from antiphon.server.questions import unknown_question
from antiphon.server.request import Request


async def answer(request: Request) -> Done:
    client = request.client
    params: AnswerRequest = request.params
    session = await request.registry.distant.served(params.session_id)
    question = None if session is None else session.fold.questions.get(params.question_id)
    if session is None or question is None:
        raise unknown_question()
    if not client.policy.answers(session, question, client_id=client.client_id):
        raise Forbidden
    voice = client.voices.get(session.id)
    asked = AnswerQuestion(
        question_id=question.question_id,
        result=Raw(encode(params)),
        by=(None if voice is None else voice.who) or client.info.who,
        credential=client.policy.credential,
        operation_id=params.operation_id,
    )
    await request.perform(session, asked)
    return Done()
