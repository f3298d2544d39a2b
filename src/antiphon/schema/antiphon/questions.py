"""Permission requests and elicitations that several clients see."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType, field

from antiphon.schema.antiphon.clients import Who
from antiphon.schema.antiphon.prompts import OperationId
from antiphon.schema.wire import OwnUpdate, Wire


class AnswerRequest(Wire, frozen=True, kw_only=True):
    """Answer a question by its id."""

    session_id: str  #: The session. The client need not be attached.
    question_id: str
    outcome: Any = UNSET  #: The outcome of a permission request, as in v2.
    action: Any = UNSET  #: The action of an elicitation, as in v2.
    content: Any = UNSET  #: The content of an elicitation, as in v2.
    operation_id: OperationId | None = None
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)
    """The `_meta` of the answer."""


class QuestionUpdate(OwnUpdate, frozen=True, kw_only=True, tag="_antiphon_question"):
    """A question was opened, or has ended."""

    question_id: str
    state: str  #: `opened`, `answered`, `cancelled` or `expired`.
    tool_call_id: str | None = None
    by: Who | None = None  #: The client that answered.
    outcome: str | None = None
    """`selected` or `cancelled` of a permission request; `accept`, `decline` or `cancel` of an
    elicitation."""
    option_id: str | None = None
    option_name: str | None = None
