"""SessionFeed: what attachments need of a session, whichever process writes it.

`LiveSession` is the feed of a session that is worked in here, `FollowedSession` of one that another process
works in.
"""

from __future__ import annotations

from typing import Protocol
from weakref import WeakValueDictionary

from antiphon.engine.events import Event
from antiphon.engine.session import Session
from antiphon.live.journal import LiveJournal
from antiphon.live.presence import Presence


class SessionFeed(Protocol):
    @property
    def session_id(self) -> str: ...

    @property
    def fold(self) -> Session:
        """The session; it may be ahead of the committed events."""

    @property
    def journal(self) -> LiveJournal:
        """The committed events."""

    @property
    def presence(self) -> Presence:
        """The clients that are attached now."""

    @property
    def replays(self) -> WeakValueDictionary[int, object]:
        """The replays that are being sent, by the last event of each (`live.replay`)."""

    @property
    def failed(self) -> bool:
        """Whether nothing more comes, because of the store."""

    def now(self) -> int:
        """Return the time by the session's clock, in milliseconds since 1970."""

    async def durable(self, seq: int | None = None) -> None:
        """Wait until everything up to `seq`, or everything in the fold, is committed."""

    async def after(self, cursor: int) -> list[Event]:
        """Wait for committed events after a cursor, and return the next ones, at least one."""
