"""Channel: the alerts for one receiver. They wait in a bounded queue and are delivered one after the other.

`offer` returns at once, whatever the receiver does: no session waits for a receiver.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable

from antiphon.errors import AntiphonError
from antiphon.hub.alerts.alert import Alert
from antiphon.server.tasks import Tasks

logger = logging.getLogger("antiphon.hub.alerts")

QUEUED = 100
"""Alerts that wait for one receiver. A further one replaces the oldest."""


class DeliveryFailed(AntiphonError):
    """An alert was not delivered, and is not sent again."""


class AlertCounts:
    """How many alerts were delivered, failed and were dropped, by channel."""

    def __init__(self) -> None:
        self.delivered: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()


class Channel:
    def __init__(
        self,
        name: str,
        deliver: Callable[[Alert], Awaitable[None]],
        tasks: Tasks,
        counts: AlertCounts,
        *,
        bound: int = QUEUED,
    ) -> None:
        """`deliver` sends one alert, within a time of its own. It raises `DeliveryFailed`."""
        self.name = name
        self._deliver = deliver
        self._tasks = tasks
        self._counts = counts
        self._bound = bound
        self._waiting: deque[Alert] = deque()
        self._running = False
        self._dropping = False
        """Whether the queue has been full since it was last empty: that is logged once."""
        counts.delivered[name] += 0  # so that the metrics have a zero
        counts.failed[name] += 0
        counts.dropped[name] += 0

    def offer(self, alert: Alert) -> None:
        """Queue an alert, and drop the oldest one if too many wait."""
        self._waiting.append(alert)
        if len(self._waiting) > self._bound:
            self._waiting.popleft()
            self._counts.dropped[self.name] += 1
            if not self._dropping:
                self._dropping = True
                logger.warning("alerts dropped: %s does not take them; %d wait", self.name, self._bound)
        if not self._running:
            self._running = True
            self._tasks.start_soon(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._deliver_one(self._waiting.popleft())
            self._dropping = False
        finally:
            self._running = False

    async def _deliver_one(self, alert: Alert) -> None:
        try:
            await self._deliver(alert)
        except DeliveryFailed as error:
            self._counts.failed[self.name] += 1
            logger.warning("alert not delivered: %s: %s: %s", self.name, alert.kind, error)
        except Exception:
            self._counts.failed[self.name] += 1
            logger.exception("alert not delivered: %s", self.name)
        else:
            self._counts.delivered[self.name] += 1
