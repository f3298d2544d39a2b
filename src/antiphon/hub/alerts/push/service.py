"""PushService: Web Push for the clients of a hub. They subscribe with their tokens, and get the alerts of the
sessions that their tokens are for, with buttons where they may answer."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Collection
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.client.protocol.questions import first_option
from antiphon.engine.questions import Question, QuestionState
from antiphon.errors import Forbidden, LocalError, RequestError
from antiphon.hub.access.tokens import Grant
from antiphon.hub.access_policy import HubPolicy, PolicySource
from antiphon.hub.alerts.alert import Alert, AlertKind
from antiphon.hub.alerts.channel import AlertCounts, Channel, DeliveryFailed
from antiphon.hub.alerts.push.addresses import PushAddresses
from antiphon.hub.alerts.push.message import write_message
from antiphon.hub.alerts.push.rights import AnswerRight, new_rights
from antiphon.hub.alerts.push.subscriptions import Subscription, Subscriptions
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.antiphon.hub import PushKeyResponse, PushSubscribeRequest, PushUnsubscribeRequest
from antiphon.server.access import AccessPolicy
from antiphon.server.ids import new_id
from antiphon.server.tasks import Tasks

if TYPE_CHECKING:
    from antiphon.hub.alerts.push.sender import PushSender

QUEUED = 10
"""Alerts that wait for one browser."""
ALLOW, REJECT = v2.PermissionOptionKind.ALLOW_ONCE, v2.PermissionOptionKind.REJECT_ONCE
BUTTONS = {"allow": ALLOW, "deny": REJECT}
"""The buttons of a notification. Nothing that lasts longer than this question is decided there."""


def is_available() -> bool:
    """Return whether the package for the encryption is installed."""
    return find_spec("cryptography") is not None


class PushService:
    def __init__(
        self,
        folder: Path,
        hub: PolicySource,
        tasks: Tasks,
        counts: AlertCounts,
        *,
        services: Collection[str],
        contact: str | None,
    ) -> None:
        """
        folder: keeps the key and the subscriptions
        services: origins of push services that may have private addresses
        contact: the address by which push services may find the operator

        Raises `LocalError` for a service that cannot be one.
        """
        self._folder = folder
        self._hub = hub
        self._tasks = tasks
        self._counts = counts
        self._contact = contact if (contact or "").startswith("https:") else None
        self._addresses = PushAddresses(services)
        self.subscriptions = Subscriptions(folder / "push.json", hub.admission.tokens)
        self.rights = new_rights()
        self._channels: dict[str, Channel] = {}
        """By the ids of subscriptions."""
        self._sender: PushSender | None = None
        self._loading = asyncio.Lock()

    # --- what clients ask for ----------------------------------------------------------------------

    async def key(self) -> PushKeyResponse:
        """Answer `_antiphon/push_key`."""
        return PushKeyResponse(key=(await self._loaded()).public_key)

    async def subscribe(self, policy: AccessPolicy, who: Who, params: PushSubscribeRequest) -> None:
        """Answer `_antiphon/push_subscribe`."""
        grant, sender = _grant(policy), await self._loaded()
        sender.check(params.endpoint, params.keys.p256dh, params.keys.auth)
        await self.subscriptions.add(
            Subscription(
                id=new_id("push"),
                endpoint=params.endpoint,
                point=params.keys.p256dh,
                auth=params.keys.auth,
                token=self._hub.admission.tokens.identity(grant),
                who=who,
                turns=params.turns,
            )
        )

    async def unsubscribe(self, policy: AccessPolicy, params: PushUnsubscribeRequest) -> None:
        """Answer `_antiphon/push_unsubscribe`."""
        token = self._hub.admission.tokens.identity(_grant(policy))
        await self.subscriptions.remove(params.endpoint, token)

    async def _loaded(self) -> PushSender:
        """Return the sender. The packages that it needs, and the key, are loaded once, in a thread."""
        async with self._loading:
            if self._sender is None:
                try:
                    self._sender = await asyncio.to_thread(self._load)
                except (OSError, LocalError) as error:
                    raise RequestError(LocalError.code, f"Web Push cannot be used: {error}") from error
        return self._sender

    def _load(self) -> PushSender:
        from antiphon.hub.alerts.push.sender import PushSender
        from antiphon.hub.alerts.push.vapid import CONTACT, Vapid, load_key

        vapid = Vapid(load_key(self._folder / "push-key.pem"), contact=self._contact or CONTACT)
        return PushSender(vapid, self._addresses, tls=ssl.create_default_context())

    # --- alerts ------------------------------------------------------------------------------------

    @property
    def wanted(self) -> bool:
        """Whether a browser has subscribed."""
        return len(self.subscriptions) > 0

    def offer(self, alert: Alert) -> None:
        """Queue an alert for every browser that may see the session."""
        if not alert.needs_user:
            return
        valid = self.subscriptions.valid()
        known = {subscription.id for subscription, _ in valid}
        self._channels = {id: channel for id, channel in self._channels.items() if id in known}
        for subscription, grant in valid:
            wants = subscription.turns or alert.kind is not AlertKind.TURN_ENDED
            if wants and grant.covers(alert.session.id):
                self._channel(subscription.id).offer(alert)

    def _channel(self, id: str) -> Channel:
        channel = self._channels.get(id)
        if channel is None:
            deliver = partial(self._deliver, id)
            channel = Channel("push", deliver, self._tasks, self._counts, bound=QUEUED)
            self._channels[id] = channel
        return channel

    async def _deliver(self, id: str, alert: Alert) -> None:
        found, sender = self.subscriptions.get(id), await self._loaded()
        if found is None or self._is_over(alert):
            return
        subscription, grant = found
        if not grant.covers(alert.session.id):
            return
        message = write_message(alert, self._buttons(alert, subscription, grant))
        if not await sender.send(subscription.endpoint, subscription.point, subscription.auth, message):
            await self.subscriptions.drop(id)
            raise DeliveryFailed("the browser has ended its subscription")

    def _question(self, alert: Alert) -> Question | None:
        """Return the question of an alert, as it is now."""
        session, asked = self._hub.find(alert.session.id), alert.news.question
        return None if session is None or asked is None else session.fold.questions.get(asked.id)

    def _is_over(self, alert: Alert) -> bool:
        if alert.kind is not AlertKind.QUESTION_OPENED:
            return False
        question = self._question(alert)
        return question is None or question.state is not QuestionState.OPEN

    def _buttons(self, alert: Alert, subscription: Subscription, grant: Grant) -> dict[str, str]:
        """Return the codes of the buttons: only of a permission that this token may answer now."""
        question, session = self._question(alert), self._hub.find(alert.session.id)
        permission = None if question is None else question.permission
        if question is None or session is None or permission is None:
            return {}
        policy = HubPolicy(self._hub, grant)
        if not policy.answers(session, question, client_id=subscription.who.client_id):
            return {}
        return {
            name: self.rights.issue(
                AnswerRight(
                    session_id=session.id,
                    question_id=question.question_id,
                    option_id=option.option_id,
                    subscription=subscription.id,
                )
            )
            for name, kind in BUTTONS.items()
            if (option := first_option(permission, kind)) is not None
        }


def _grant(policy: AccessPolicy) -> Grant:
    if not isinstance(policy, HubPolicy):
        raise Forbidden
    return policy.grant
