"""The other clients of a session, as the agent reports them: who is attached, and who answered a question.

All of it is advisory: what cannot be read is ignored.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, structs

from antiphon.engine.events import NO_RESULT
from antiphon.engine.json_values import encode
from antiphon.engine.recent import Recent
from antiphon.engine.who import ID_LIMIT, UNNAMED, clean_name, clean_who
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import PresenceUpdate, Present, Who
from antiphon.schema.antiphon.messages import QuestionUpdate
from antiphon.schema.antiphon.readers import read_update
from antiphon.schema.wire import Unknown

PRESENCE = "_antiphon_presence"
QUESTION = "_antiphon_question"
REMEMBERED = 64
"""How many ended questions are remembered, until the agent withdraws this client's copy."""


class OtherClients:
    def __init__(self) -> None:
        self.attached: list[Present] = []
        self._ended: Recent[str, QuestionUpdate] = Recent(REMEMBERED)

    def read(self, update: Unknown) -> dict[str, Any]:
        """Read an update of ours; returns what it reports as fields of a `SessionEvent`."""
        if update.get("sessionUpdate") == PRESENCE:
            present = read_update(PresenceUpdate, update)
            self.attached = [] if present is None else [_cleaned(client) for client in present.clients]
            return {"clients": tuple(self.attached)}
        news = read_update(QuestionUpdate, update) if update.get("sessionUpdate") == QUESTION else None
        if news is None:
            return {}
        news = structs.replace(news, by=clean_who(news.by))
        if news.state != "opened":
            self._ended[news.question_id] = news
        return {"news": news}

    def take_answer(self, question_id: str | None) -> tuple[Raw, Who] | None:
        """The answer to a question, by the agent's id of it, and the client that gave it. Returned once. The
        values of a form are not reported."""
        news = None if question_id is None else self._ended.pop(question_id, None)
        if news is None or news.by is None:
            return None
        if news.option_id is None:
            return NO_RESULT, news.by
        chosen = v2.SelectedPermissionOutcome(option_id=v2.PermissionOptionId(news.option_id))
        return Raw(encode(v2.RequestPermissionResponse(outcome=chosen))), news.by


def _cleaned(client: Present) -> Present:
    return structs.replace(
        client,
        client_id=client.client_id[:ID_LIMIT],
        name=clean_name(client.name) or UNNAMED,
        version=clean_name(client.version),
        joined_at=clean_name(client.joined_at),
    )
