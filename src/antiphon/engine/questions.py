"""Questions: permissions and elicitations. They wait for an answer, also without clients, and end once."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from msgspec import Raw
from msgspec.structs import replace

from antiphon.engine.events import NO_RESULT, NOTHING, QuestionClosed, QuestionEnd, QuestionOpened
from antiphon.engine.json_values import Reader, kept
from antiphon.engine.turn import TurnId
from antiphon.engine.who import Named
from antiphon.schema import v2
from antiphon.schema.repair import Malformed
from antiphon.schema.wire import Unknown, Wire

REQUEST_PERMISSION = "session/request_permission"
CREATE_ELICITATION: Final = "elicitation/create"
FORM: Final = "form"
URL: Final = "url"

Elicited: TypeAlias = v2.ElicitationFormMode | v2.ElicitationUrlMode
REMEMBERED = 256
"""How many ended questions a session remembers, to distinguish a late answer from one to an unknown
question."""

_REQUESTS: Reader[v2.RequestPermissionRequest] = Reader(v2.RequestPermissionRequest)
_RESPONSES: Reader[v2.RequestPermissionResponse] = Reader(v2.RequestPermissionResponse)
_ELICITATIONS: Reader[v2.CreateElicitationRequest] = Reader(v2.CreateElicitationRequest)
_ELICITED: Reader[v2.CreateElicitationResponse] = Reader(v2.CreateElicitationResponse)


class QuestionState(StrEnum):
    """Open, or how it ended (`QuestionEnd`)."""

    OPEN = "open"
    ANSWERED = "answered"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Unanswerable(StrEnum):
    """Why an end does not count: the question has ended, or is unknown."""

    ALREADY_ENDED = "already_ended"
    UNKNOWN_QUESTION = "unknown_question"


def read_permission(opened: QuestionOpened) -> v2.RequestPermissionRequest | None:
    """Return the permission request of an opened question, if it is one. The question may have ended
    since."""
    return Question(
        question_id=opened.question_id, method=opened.method, params=opened.params, opened=0
    ).permission


class Question(Wire, frozen=True, kw_only=True):
    """A question of the agent. `turn_id` is set if it belongs to a turn and not to background work. An ended
    question keeps no params."""

    question_id: str
    method: str
    params: Raw
    opened: int
    """The number of the event that opened it."""
    state: QuestionState = QuestionState.OPEN
    turn_id: TurnId | None = None
    tool_call_id: str | None = None
    terminal_id: str | None = None
    origin: Raw = NOTHING
    """The params as a v1 agent wrote them."""
    result: Raw = NO_RESULT
    by: Named | None = None
    operation_id: str | None = None
    """The operation that answered it, if that had an id."""
    ended: int = 0

    @property
    def permission(self) -> v2.RequestPermissionRequest | None:
        """The permission request, if it is one."""
        if self.method != REQUEST_PERMISSION:
            return None
        try:
            return _REQUESTS.read(self.params)
        except Malformed:
            return None

    def chosen(self, result: bytes | Raw) -> v2.PermissionOption | None:
        """Return the offered option that an answer selects; other answers select none (PERM-V2-06, -07,
        -08)."""
        permission = self.permission
        if permission is None:
            return None
        try:
            outcome = _RESPONSES.read(result).outcome
        except Malformed:
            return None
        if not isinstance(outcome, v2.SelectedPermissionOutcome):
            return None
        return next((option for option in permission.options if option.option_id == outcome.option_id), None)


class Ending(NamedTuple):
    """The result of ending a question: the events to append, or the reason of the refusal."""

    events: tuple[QuestionClosed, ...] = ()
    question: Question | None = None
    refusal: Unanswerable | None = None


class Questions:
    """The open questions, in the order they were asked, and the last ones that ended."""

    __slots__ = ("_by_id", "_ended", "_open", "changed")

    def __init__(self) -> None:
        self._by_id: dict[str, Question] = {}
        self._open: dict[str, None] = {}
        self._ended: deque[str] = deque()
        self.changed: set[str] = set()
        """Questions that changed since this was last cleared."""

    @property
    def open(self) -> list[Question]:
        return [self._by_id[id] for id in self._open]

    def get(self, question_id: str) -> Question | None:
        return self._by_id.get(question_id)

    def of_turn(self, turn_id: TurnId) -> list[Question]:
        return [question for question in self.open if question.turn_id == turn_id]

    # Commands

    def answer(
        self,
        question_id: str,
        result: bytes | Raw,
        *,
        by: Named | None = None,
        operation_id: str | None = None,
    ) -> Ending:
        """Answer a question. The first answer counts, also one that approves nothing."""
        ending = self._end(question_id, QuestionEnd.ANSWERED)
        said = kept(result)
        answered = (replace(body, result=said, by=by, operation_id=operation_id) for body in ending.events)
        return ending._replace(events=tuple(answered))

    def cancel(self, question_id: str) -> Ending:
        return self._end(question_id, QuestionEnd.CANCELLED)

    def expire(self, question_id: str) -> Ending:
        return self._end(question_id, QuestionEnd.EXPIRED)

    def close_all(
        self, questions: Sequence[Question], end: QuestionEnd, *, cause: str | None = None
    ) -> tuple[QuestionClosed, ...]:
        ended = (event for q in questions for event in self._end(q.question_id, end).events)
        return tuple(ended if cause is None else (replace(event, cause=cause) for event in ended))

    def _end(self, question_id: str, end: QuestionEnd) -> Ending:
        question = self._by_id.get(question_id)
        if question is None:
            return Ending(refusal=Unanswerable.UNKNOWN_QUESTION)
        if question.state is not QuestionState.OPEN:  # PROMPT-V2-26
            return Ending(question=question, refusal=Unanswerable.ALREADY_ENDED)
        return Ending((QuestionClosed(question_id=question_id, end=end),), question)

    # The fold

    def apply_opened(
        self, body: QuestionOpened, *, seq: int, turn_id: TurnId | None
    ) -> v2.ToolCallUpdate | None:
        """Open a question; return the tool call it is about, to be applied like an update (PERM-V2-03)."""
        if body.question_id in self._by_id:
            return None
        background = body.tool_call_id is not None or body.terminal_id is not None
        question = Question(
            question_id=body.question_id,
            method=body.method,
            params=kept(body.params),
            opened=seq,
            turn_id=None if background else turn_id,
            tool_call_id=body.tool_call_id,
            terminal_id=body.terminal_id,
            origin=NOTHING if body.origin == NOTHING else kept(body.origin),
        )
        self._by_id[question.question_id] = question
        self._open[question.question_id] = None
        self.changed.add(question.question_id)
        permission = question.permission
        subject = None if permission is None else permission.subject
        return subject.tool_call if isinstance(subject, v2.ToolCallPermissionSubject) else None

    def apply_closed(self, body: QuestionClosed, *, seq: int) -> None:
        question = self._by_id.get(body.question_id)
        if question is None or question.state is not QuestionState.OPEN:
            return
        self._by_id[question.question_id] = replace(
            question,
            state=QuestionState(body.end),
            params=Raw(b"{}"),
            origin=NOTHING,
            result=kept(body.result),
            by=body.by,
            operation_id=body.operation_id,
            ended=seq,
        )
        del self._open[question.question_id]
        self.changed.add(question.question_id)
        self._ended.append(question.question_id)
        if len(self._ended) > REMEMBERED:
            forgotten = self._ended.popleft()
            del self._by_id[forgotten]
            self.changed.add(forgotten)

    # To be kept

    @property
    def all(self) -> Mapping[str, Question]:
        """The open ones and those that are remembered."""
        return self._by_id

    def restore(self, questions: Sequence[Question]) -> None:
        self._by_id = {question.question_id: question for question in questions}
        asked = sorted(questions, key=lambda question: question.opened)
        self._open = {q.question_id: None for q in asked if q.state is QuestionState.OPEN}
        ended = sorted((q for q in questions if q.ended), key=lambda question: question.ended)
        self._ended = deque(question.question_id for question in ended)


def elicitation_of(question: Question) -> Elicited | None:
    """Return the elicitation of a question, if it is one of a known mode."""
    if question.method != CREATE_ELICITATION:
        return None
    try:
        request = _ELICITATIONS.read(question.params)
    except Malformed:
        return None
    return None if isinstance(request, Unknown) else request


def mode_of(request: Elicited) -> str:
    return FORM if isinstance(request, v2.ElicitationFormMode) else URL


def read_response(result: bytes) -> v2.CreateElicitationResponse:
    """Read an answer of the journal; an unreadable one is no consent (ELIC-08)."""
    try:
        return _ELICITED.read(result)
    except Malformed:
        return v2.ElicitationCancelAction()


def counted(request: Elicited, response: v2.CreateElicitationResponse) -> v2.CreateElicitationResponse | None:
    """Return the answer that counts: of an accepted form the values that fit, and nothing else (ELIC-07,
    ELIC-10). `None` for a form that is accepted with values that do not fit (ELIC-17)."""
    from antiphon.engine.forms.form import Form  # loaded with the first form

    match response:
        case v2.ElicitationAcceptAction() if isinstance(request, v2.ElicitationFormMode):
            filled = Form(request.requested_schema).read(response.content or {})
            return None if filled.problems else v2.ElicitationAcceptAction(content=filled.values)
        case v2.ElicitationAcceptAction():
            return v2.ElicitationAcceptAction()
        case v2.ElicitationDeclineAction():
            return v2.ElicitationDeclineAction()
    return v2.ElicitationCancelAction()  # ELIC-08: also an unknown action
