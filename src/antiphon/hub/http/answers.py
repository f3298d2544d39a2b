"""`POST /answer`: an answer that a person gave by a button of a notification.

The code of a button is used up by the first request. The answer counts as one of the token that the browser
subscribed with: the token is checked now, by the same rules as for `_antiphon/answer`, and is in the audit
log.
"""

from __future__ import annotations

from typing import Protocol

import msgspec
from msgspec import UNSET, Raw, Struct

from antiphon.engine.json_values import encode
from antiphon.errors import AntiphonError, Forbidden, StoreError
from antiphon.hub.access.limits import limit_of
from antiphon.hub.access.tickets import Tickets
from antiphon.hub.access_policy import ANSWER, HubPolicy, PolicySource
from antiphon.hub.alerts.hub_alerts import HubAlerts
from antiphon.hub.alerts.push.rights import AnswerRight
from antiphon.hub.alerts.push.subscriptions import Subscriptions
from antiphon.hub.http.own_page import OwnPageAction
from antiphon.jsonrpc.frames import UNREADABLE
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.antiphon.messages import AnswerRequest
from antiphon.server.control.operations import AnswerQuestion
from antiphon.server.questions import unknown_question
from antiphon.server.registry import SessionRegistry
from antiphon.transports.http.exchange import Handler, Head, Reply, plain

PATH = "/answer"
SPENT = "This button does not work any more."
OVER = "The question is not open any more."
NO_STORE = {"Cache-Control": "no-store"}


class Answering(PolicySource, Protocol):
    """A hub, as the route uses it."""

    alerts: HubAlerts
    registry: SessionRegistry


def answer_routes(hub: Answering) -> dict[str, Handler]:
    """Return the route, if the hub sends notifications with buttons."""
    push = hub.alerts.push
    if push is None:
        return {}
    answers = NotificationAnswers(hub, push.rights, push.subscriptions)
    return {PATH: OwnPageAction(hub.admission, answers.answer)}


class _Body(Struct):
    code: str = ""


class NotificationAnswers:
    """Gives the answers of buttons."""

    def __init__(self, hub: Answering, rights: Tickets[AnswerRight], subscriptions: Subscriptions) -> None:
        self._admission = hub.admission
        self._hub = hub
        self._registry = hub.registry
        self._rights = rights
        self._subscriptions = subscriptions

    async def answer(self, head: Head, body: bytes) -> Reply:
        try:
            code = msgspec.json.decode(body, type=_Body).code
        except UNREADABLE:
            code = ""
        right = self._rights.redeem(code)
        found = None if right is None else self._subscriptions.get(right.subscription)
        if right is None or found is None:
            return self._admission.refuse(head, 403, SPENT)
        subscription, grant = found
        policy = HubPolicy(self._hub, grant, peer=head.peer)
        try:
            await self._perform(right, policy, subscription.who, size=len(body))
        except Forbidden:
            return plain(403, SPENT)
        except StoreError:
            return plain(503, "The answer was not taken.")
        except AntiphonError as error:
            return plain(429, "Too many answers.") if limit_of(error) else plain(409, OVER)
        return Reply(204, headers=NO_STORE)

    async def _perform(self, right: AnswerRight, policy: HubPolicy, who: Who, *, size: int) -> None:
        """Answer the question. Raises `RequestError` if it is not open any more, and `Forbidden`."""
        outcome = v2.SelectedPermissionOutcome(option_id=v2.PermissionOptionId(right.option_id))
        params = AnswerRequest(
            session_id=right.session_id, question_id=right.question_id, outcome=outcome, meta=UNSET
        )
        await policy.admit(ANSWER, params, size=size, client_id=who.client_id)
        try:
            session = await self._registry.distant.served(right.session_id)
            question = None if session is None else session.fold.questions.get(right.question_id)
            if session is None or question is None:
                raise unknown_question()
            if not policy.answers(session, question, client_id=who.client_id):
                raise Forbidden
            asked = AnswerQuestion(
                question_id=right.question_id,
                result=Raw(encode(params)),
                by=who,
                credential=policy.credential,
            )
            await self._registry.distant.perform(session, asked, policy)
        except Exception as error:
            policy.failed(ANSWER, params, error, client_id=who.client_id)
            raise
