"""Others: what an agent tells about the other clients of a session: who is there, and who answered what.

All of it is advisory: what cannot be read is passed over.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from antiphon.engine.events import NO_RESULT
from antiphon.engine.reading import encode
from antiphon.engine.who import Present, Who, clean_name, read_who
from antiphon.schema import v2
from antiphon.schema.wire import Unknown

PRESENCE = "_antiphon_presence"
QUESTION = "_antiphon_question"
REMEMBERED = 64
"""How many ended questions are remembered, until the copy that was put to this client is taken back."""


class QuestionNews(Struct, frozen=True, kw_only=True):
    """What became of a question that all clients of the session were asked."""

    question_id: str
    """As the agent names it, in `_meta["antiphon"].questionId` of the request."""
    state: str
    """`opened`, `answered`, `cancelled` or `expired`."""
    tool_call_id: str | None = None
    by: Who | None = None
    """Who answered."""
    outcome: str | None = None
    """How: `selected` or `cancelled`; for a form or an address `accept`, `decline` or `cancel`."""
    option_id: str | None = None
    option_name: str | None = None

    @property
    def result(self) -> Raw:
        """The answer, as far as it is told: what somebody filled in is not."""
        if self.option_id is None:
            return NO_RESULT
        chosen = v2.SelectedPermissionOutcome(option_id=v2.PermissionOptionId(self.option_id))
        return Raw(encode(v2.RequestPermissionResponse(outcome=chosen)))


class Others:
    def __init__(self) -> None:
        self.clients: list[Present] = []
        self._ended: dict[str, QuestionNews] = {}

    def read(self, update: Unknown) -> dict[str, Any]:
        """What it says, as fields of an event."""
        if update.get("sessionUpdate") == PRESENCE:
            self.clients = _clients(update.get("clients"))
            return {"clients": tuple(self.clients)}
        news = _news(update) if update.get("sessionUpdate") == QUESTION else None
        if news is None:
            return {}
        if news.state != "opened":
            self._ended[news.question_id] = news
            if len(self._ended) > REMEMBERED:
                del self._ended[next(iter(self._ended))]
        return {"news": news}

    def ended(self, question_id: str | None) -> QuestionNews | None:
        """How a question ended, by the agent's name for it."""
        return None if question_id is None else self._ended.pop(question_id, None)


def _clients(given: Any) -> list[Present]:
    found = []
    for one in given if isinstance(given, list) else ():
        who = read_who(one)
        if who is not None:
            found.append(
                Present(
                    client_id=who.client_id,
                    name=who.name,
                    version=clean_name(one.get("version")),
                    joined_at=clean_name(one.get("joinedAt")),
                    you=one.get("you") is True,
                )
            )
    return found


def _news(given: Unknown) -> QuestionNews | None:
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
