"""Alert: a question was asked or has ended, or a turn has ended. `SessionRule` decides that. Pure.

The text of an alert is foreign: agents choose titles and questions. It is cut and made safe to show here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.engine.events import AnyBody, Event, QuestionClosed, QuestionEnd, QuestionOpened, Updated
from antiphon.engine.fold import is_state
from antiphon.engine.questions import Question, elicitation_of
from antiphon.engine.turn import AnyStateUpdate, Report, as_state_update, report_of
from antiphon.schema import v2
from antiphon.schema.repair import Malformed
from antiphon.schema.v2.proposed import StateChange
from antiphon.schema.wire import Unknown
from antiphon.text_safety import safe_line

UNTITLED = "Untitled"
TITLE = 120
TEXT = 300
PATH = 1000
MOST_OPTIONS = 20
INTERRUPTED = "interrupted"
CANCELLED = "cancelled"
_ENDS = {
    "end_turn": "Finished",
    "max_tokens": "Stopped: the limit of tokens was reached",
    "max_turn_requests": "Stopped: the limit of model requests was reached",
    "refusal": "The agent refused to continue",
    CANCELLED: "Cancelled",
    INTERRUPTED: "Interrupted: the agent, or the hub, has ended",
}


class AlertKind(StrEnum):
    QUESTION_OPENED = "question.opened"
    QUESTION_CLOSED = "question.closed"
    TURN_ENDED = "turn.ended"


class AlertSession(Struct, frozen=True, kw_only=True):
    """The session of an alert, as it is when the alert is made."""

    id: str
    title: str
    cwd: str
    agent: str

    @classmethod
    def of(cls, session_id: str, *, title: str | None, cwd: str, agent: str) -> AlertSession:
        shown = safe_line(title or "", limit=TITLE) or UNTITLED
        return cls(id=session_id, title=shown, cwd=safe_line(cwd, limit=PATH), agent=agent)


class AlertOption(Struct, frozen=True, kw_only=True):
    id: str
    name: str
    kind: str


class AlertQuestion(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The question of an alert. One that has ended has only its id and its end."""

    id: str
    kind: str = ""
    """`permission` or `elicitation`."""
    title: str = ""
    details: str = ""
    options: tuple[AlertOption, ...] = ()
    end: str = ""
    """`answered`, `cancelled` or `expired`."""


class AlertTurn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    reason: str
    """The stop reason; `interrupted` if the turn was cut short, `error` with `error` if it failed."""
    error: str = ""
    seconds: float | None = None


class News(Struct, frozen=True, kw_only=True):
    """What an event means to a person, without the session."""

    kind: AlertKind
    at: int
    """Milliseconds since 1970."""
    question: AlertQuestion | None = None
    turn: AlertTurn | None = None


class Alert(Struct, frozen=True, kw_only=True):
    id: str
    news: News
    session: AlertSession

    @property
    def kind(self) -> AlertKind:
        return self.news.kind

    @property
    def needs_user(self) -> bool:
        """Whether a person should look: not after an answer or a cancel, which a person has given."""
        turn = self.news.turn
        return self.kind is not AlertKind.QUESTION_CLOSED and (turn is None or turn.reason != CANCELLED)

    @property
    def text(self) -> str:
        """Say what happened in one line."""
        question, turn = self.news.question, self.news.turn
        if question is not None:
            return question.title if self.kind is AlertKind.QUESTION_OPENED else f"Question {question.end}"
        assert turn is not None
        if turn.error and turn.reason == "error":
            return safe_line(f"Failed: {turn.error}", limit=TEXT)
        return _ENDS.get(turn.reason) or safe_line(f"Ended: {turn.reason}", limit=TEXT)

    def to_json(self) -> bytes:
        """Return the alert as receivers get it: `type`, `timestamp` and `data`."""
        news = self.news
        data: dict[str, Any] = {"session": self.session, "text": self.text}
        if news.question is not None:
            data["question"] = news.question
        if news.turn is not None:
            data["turn"] = news.turn
        at = datetime.fromtimestamp(news.at / 1000, UTC).isoformat(timespec="milliseconds")
        said = {"type": news.kind, "timestamp": at.replace("+00:00", "Z"), "data": data}
        return msgspec.json.encode(said)


class SessionRule:
    """Turns the committed events of one session into news."""

    def __init__(self, *, working: bool) -> None:
        """`working`: whether a turn is open before the first event."""
        self._working = working
        self._began: int | None = None
        """When the open turn began, if that was seen."""

    def news_of(self, event: Event) -> News | None:
        body: AnyBody = event.body
        match body:
            case QuestionOpened():
                return News(kind=AlertKind.QUESTION_OPENED, at=event.at, question=_opened(body))
            case QuestionClosed():
                ended = AlertQuestion(id=body.question_id, end=str(QuestionEnd(body.end)))
                return News(kind=AlertKind.QUESTION_CLOSED, at=event.at, question=ended)
            case Updated():
                try:
                    update = body.update
                except Malformed:
                    return None
                return self._state(update, event.at) if is_state(update) else None
        return None

    def _state(self, update: AnyStateUpdate, at: int) -> News | None:
        report = report_of(update)
        if report is Report.OTHER:
            return None
        worked, self._working = self._working, report is not Report.IDLE
        if self._working:
            self._began = self._began if worked else at
            return None
        if not worked:
            return None  # an idle state that is repeated ends nothing
        began, self._began = self._began, None
        seconds = None if began is None else round(max(0, at - began) / 1000, 3)
        return News(kind=AlertKind.TURN_ENDED, at=at, turn=_ended(update, seconds))


def _opened(body: QuestionOpened) -> AlertQuestion:
    question = Question(question_id=body.question_id, method=body.method, params=body.params, opened=0)
    permission = question.permission
    if permission is not None:
        subject = permission.subject
        command = subject.command if isinstance(subject, v2.CommandPermissionSubject) else None
        return AlertQuestion(
            id=body.question_id,
            kind="permission",
            title=safe_line(permission.title, limit=TEXT),
            details=safe_line(command or permission.description or "", limit=TEXT),
            options=tuple(map(_option, permission.options[:MOST_OPTIONS])),
        )
    asked = elicitation_of(question)
    title = "" if asked is None else safe_line(asked.message, limit=TEXT)
    return AlertQuestion(id=body.question_id, kind="elicitation", title=title or "The agent asks")


def _option(option: v2.PermissionOption) -> AlertOption:
    name = safe_line(option.name, limit=TITLE)
    return AlertOption(id=safe_line(option.option_id, limit=TITLE), name=name, kind=str(option.kind))


def _ended(update: AnyStateUpdate, seconds: float | None) -> AlertTurn:
    if isinstance(update, Unknown):  # an idle one is always known
        return AlertTurn(reason="end_turn", seconds=seconds)
    state = as_state_update(update) if isinstance(update, StateChange) else update
    error = state.error
    reason = str(state.stop_reason or "end_turn")
    if error is not None and isinstance(error.data, dict) and error.data.get("reason") == INTERRUPTED:
        reason = INTERRUPTED
    message = "" if error is None else safe_line(error.message, limit=TEXT)
    return AlertTurn(reason=safe_line(reason, limit=TITLE), error=message, seconds=seconds)
