"""Elicitations as questions of a session: what one asks, and what an answer to it counts for."""

from __future__ import annotations

from typing import Final, TypeAlias

from antiphon.engine.questions import Question
from antiphon.engine.reading import Reader
from antiphon.schema.repair import Malformed
from antiphon.schema.v2.elicitation import (
    CreateElicitationRequest,
    CreateElicitationResponse,
    ElicitationAcceptAction,
    ElicitationCancelAction,
    ElicitationDeclineAction,
    ElicitationFormMode,
    ElicitationUrlMode,
)
from antiphon.schema.wire import Unknown

CREATE_ELICITATION: Final = "elicitation/create"
FORM: Final = "form"
URL: Final = "url"

Elicited: TypeAlias = ElicitationFormMode | ElicitationUrlMode
_REQUESTS: Reader[CreateElicitationRequest] = Reader(CreateElicitationRequest)
_RESPONSES: Reader[CreateElicitationResponse] = Reader(CreateElicitationResponse)


def elicitation_of(question: Question) -> Elicited | None:
    """What a question asks, where it is an elicitation that is known here."""
    if question.method != CREATE_ELICITATION:
        return None
    try:
        request = _REQUESTS.read(question.params)
    except Malformed:
        return None
    return None if isinstance(request, Unknown) else request


def mode_of(request: Elicited) -> str:
    return FORM if isinstance(request, ElicitationFormMode) else URL


def read_response(result: bytes) -> CreateElicitationResponse:
    """An answer as the journal keeps it; what cannot be read is no consent (ELIC-08)."""
    try:
        return _RESPONSES.read(result)
    except Malformed:
        return ElicitationCancelAction()


def counted(request: Elicited, response: CreateElicitationResponse) -> CreateElicitationResponse | None:
    """An answer as it counts: of an accepted form the values that fit, and nothing else (ELIC-07, ELIC-10).
    `None` for a form that is accepted with values that do not fit (ELIC-17)."""
    from antiphon.engine.forms import Form  # loaded with the first form, not by everybody

    match response:
        case ElicitationAcceptAction() if isinstance(request, ElicitationFormMode):
            filled = Form(request.requested_schema).read(response.content or {})
            return None if filled.problems else ElicitationAcceptAction(content=filled.values)
        case ElicitationAcceptAction():
            return ElicitationAcceptAction()
        case ElicitationDeclineAction():
            return ElicitationDeclineAction()
    return ElicitationCancelAction()  # ELIC-08: also what is not known
