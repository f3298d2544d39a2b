"""HubAlerts: watches the sessions of a hub and hands their alerts to every channel.

What happens is read from committed events, so no alert tells of something that a crash could take back. A hub
tells of the sessions that it works on, and not of those that other hubs on its store own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from antiphon.engine.events import Event
from antiphon.hub.access_policy import PolicySource
from antiphon.hub.alerts.alert import Alert, AlertSession, News, SessionRule
from antiphon.hub.alerts.channel import AlertCounts, Channel
from antiphon.hub.alerts.command import NotifyCommand
from antiphon.hub.alerts.push.service import PushService, is_available
from antiphon.hub.options import AlertOptions
from antiphon.server.ids import new_id
from antiphon.server.session import ServedSession
from antiphon.server.tasks import Tasks
from antiphon.transcripts.titles import title_of_first_prompt

logger = logging.getLogger("antiphon.hub.alerts")


class HubAlerts:
    def __init__(
        self,
        options: AlertOptions,
        hub: PolicySource,
        tasks: Tasks,
        *,
        contact: str | None,
        agent_of: Callable[[ServedSession], str],
    ) -> None:
        """
        contact: the public address of the hub, by which push services may find the operator
        agent_of: returns the name of a session's agent

        Raises `LocalError` for options that cannot be used.
        """
        self.counts = AlertCounts()
        self._agent_of = agent_of
        self._channels: list[Channel] = []
        """Those that get every alert."""
        self._needed: list[Channel] = []
        """Those that get the alerts after which a person should look."""
        self.push: PushService | None = None
        if options.notify:
            command = NotifyCommand(options.notify)
            self._needed.append(Channel("notify", command.deliver, tasks, self.counts))
        if options.webhook is not None:
            from antiphon.hub.alerts.webhook import Webhook

            webhook = Webhook(options.webhook, options.webhook_secret)
            self._channels.append(Channel("webhook", webhook.deliver, tasks, self.counts))
        if options.push is not None and is_available():
            self.push = PushService(
                options.push, hub, tasks, self.counts, services=options.push_services, contact=contact
            )

    def watch(self, session: ServedSession) -> None:
        """Watch a session that is open from now on. Work for another session is not watched: its questions
        are asked through that one."""
        watched = self._channels or self._needed or self.push is not None
        if not watched or session.subagent_of is not None:
            return
        rule = SessionRule(working=session.fold.turn is not None)

        def committed(events: Sequence[Event]) -> None:
            try:
                for event in events:
                    news = rule.news_of(event)
                    if news is not None:
                        self._send(session, news)
            except Exception:  # the session goes on
                logger.exception("alerts of session %s failed", session.id)

        session.live.watch(committed)

    def _send(self, session: ServedSession, news: News) -> None:
        pushes = self.push is not None and self.push.wanted
        if not (self._channels or self._needed or pushes):
            return
        info = session.fold.facts.info
        title = None if info is None else info.title
        about = AlertSession.of(
            session.id,
            title=title or title_of_first_prompt(session.fold),
            cwd=session.cwd,
            agent=self._agent_of(session),
        )
        alert = Alert(id=new_id("alert"), news=news, session=about)
        for channel in self._channels:
            channel.offer(alert)
        if alert.needs_user:
            for channel in self._needed:
                channel.offer(alert)
        if self.push is not None and pushes:
            self.push.offer(alert)
