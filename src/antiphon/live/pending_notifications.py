"""PendingNotifications: notifications outside the journal, each with its place among the events of one
client.

The extension notifications of an agent are not stored. A client still gets each of them after every event
that the agent caused before it, and before every later one.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from antiphon.connection.fault_log import FaultLog
from antiphon.live.tail import Stretch

logger = logging.getLogger("antiphon.live")

MOST = 1000
MOST_BYTES = 1024 * 1024
"""How many notifications, and of what size, may wait for one client; more are dropped."""

Send = Callable[[], None]


class PendingNotifications:
    """Notifications that wait, in their order, for events that the client was not sent yet."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, int, Send]] = deque()
        self._size = 0
        self._dropped = FaultLog(logger, "notification dropped")

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, seq: int, size: int, send: Send) -> None:
        """Call `send` right after the event `seq`, or drop it if too much waits."""
        if len(self._waiting) >= MOST or (self._waiting and self._size + size > MOST_BYTES):
            self._dropped.note(
                f"{len(self._waiting)} notifications of {self._size} bytes wait for a slow client"
            )
            return
        self._waiting.append((seq, size, send))
        self._size += size

    def flush(self, upto: int) -> None:
        """Send what waits for events up to `upto`."""
        while self._waiting and self._waiting[0][0] <= upto:
            _, size, send = self._waiting.popleft()
            self._size -= size
            send()

    def write(self, stretch: Stretch, write: Callable[[Stretch], None]) -> None:
        """Write events, and the notifications at their places between them."""
        cursor = stretch.events[0].seq - 1
        self.flush(cursor)
        while self._waiting and (place := self._waiting[0][0]) < stretch.last:
            write(stretch.between(cursor, place))
            cursor = place
            self.flush(cursor)
        write(stretch.between(cursor, stretch.last))
        self.flush(stretch.last)
