"""The other clients of a session, as the agent reports them: who is attached, and who answered a question.

All of it is advisory: what cannot be read is ignored.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from antiphon.engine.events import NO_RESULT
from antiphon.engine.json_values import encode
from antiphon.engine.who import Present, Who, clean_name, read_who
from antiphon.schema import v2
from antiphon.schema.wire import Unknown

PRESENCE = "_antiphon_presence"
QUESTION = "_antiphon_question"
REMEMBERED = 64
"""How many ended questions are remembered, until the agent withdraws this client's copy."""


class QuestionNews(Struct, frozen=True, kw_only=True):
    """The state of a question that all clients of the session were asked."""

    question_id: str
    """The agent's id of it: `_meta["antiphon"].questionId` of the request."""
    state: str
    """`opened`, `answered`, `cancelled` or `expired`."""
    tool_call_id: str | None = None
    by: Who | None = None
    """The client that answered."""
    outcome: str | None = None
    """`selected` or `cancelled`; for a form or an address `accept`, `decline` or `cancel`."""
    option_id: str | None = None
    option_name: str | None = None

    @property
    def result(self) -> Raw:
        """The answer, as far as it is reported: the values of a form are not."""
        if self.option_id is None:
            return NO_RESULT
        chosen = v2.SelectedPermissionOutcome(option_id=v2.PermissionOptionId(self.option_id))
        return Raw(encode(v2.RequestPermissionResponse(outcome=chosen)))


class OtherClients:
    def __init__(self) -> None:
        self.attached: list[Present] = []
        self._ended: dict[str, QuestionNews] = {}

    def read(self, update: Unknown) -> dict[str, Any]:
        """Read an update of ours; returns what it reports as fields of a `SessionEvent`."""
        if update.get("sessionUpdate") == PRESENCE:
            self.attached = _read_clients(update.get("clients"))
            return {"clients": tuple(self.attached)}
        news = _read_news(update) if update.get("sessionUpdate") == QUESTION else None
        if news is None:
            return {}
        if news.state != "opened":
            self._ended[news.question_id] = news
            if len(self._ended) > REMEMBERED:
                del self._ended[next(iter(self._ended))]
        return {"news": news}

    def take_end(self, question_id: str | None) -> QuestionNews | None:
        """How a question ended, by the agent's id of it. Returned once."""
        return None if question_id is None else self._ended.pop(question_id, None)


def _read_clients(given: Any) -> list[Present]:
    found = []
    for each in given if isinstance(given, list) else ():
        who = read_who(each)
        if who is not None:
            found.append(
                Present(
                    client_id=who.client_id,
                    name=who.name,
                    version=clean_name(each.get("version")),
                    joined_at=clean_name(each.get("joinedAt")),
                    you=each.get("you") is True,
                )
            )
    return found


def _read_news(given: Unknown) -> QuestionNews | None:
    texts = {key: value for key, value in given.items() if isinstance(value, str)}
    if "questionId" not in texts or "state" not in texts:
        return None
    return QuestionNews(
        question_id=texts["questionId"],
        state=texts["state"],
        tool_call_id=texts.get("toolCallId"),
        by=read_who(given.get("by")),
        outcome=texts.get("outcome"),
        option_id=texts.get("optionId"),
        option_name=texts.get("optionName"),
    )
