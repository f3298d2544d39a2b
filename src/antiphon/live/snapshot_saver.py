"""SnapshotSaver: brings the snapshot of a live session in its store up to date, now and then."""

from __future__ import annotations

import logging

from antiphon.engine.session import Session
from antiphon.engine.snapshot import take_dirty
from antiphon.stores.base import Store

logger = logging.getLogger("antiphon.live")

SNAPSHOT_EVERY = 2000
"""After so many events a snapshot is due."""
SAVE_FLOOR = 1024 * 1024
"""Bytes of events, at least, between two snapshots of one turn."""


class SnapshotSaver:
    def __init__(self, store: Store, session_id: str, upto: int) -> None:
        self._store = store
        self._session_id = session_id
        self.upto = upto
        """The last event of the snapshot in the store."""
        self.bytes_since = 0
        """Bytes of the events that were committed since."""
        self._size = 0
        self._failed = False

    def is_due(self, fold: Session) -> bool:
        """Whether a snapshot is worth its cost.

        A snapshot holds a streaming message whole. So within a turn the next one waits until many more bytes
        have come than the last one had: its cost stays a fraction, however long the message gets.
        """
        if self._failed or fold.last_seq - self.upto < SNAPSHOT_EVERY:
            return False
        return fold.turn is None or self.bytes_since >= SAVE_FLOOR + 4 * self._size

    def take(self, fold: Session) -> dict[str, bytes | None] | None:
        """Return the changed parts of the snapshot; `None` after a failure. Then the snapshot stays as it is,
        and the journal has everything after it."""
        if self._failed:
            return None
        try:
            return take_dirty(fold)
        except Exception:
            logger.exception("snapshot failed: session %s; its journal is still written", self._session_id)
            self._failed = True
            return None

    async def save(self, upto: int, parts: dict[str, bytes | None]) -> None:
        """Move the snapshot in the store to the event `upto`, which is committed."""
        await self._store.save_parts(self._session_id, upto, parts)
        self.upto, self.bytes_since = upto, 0
        self._size = sum(len(part) for part in parts.values() if part is not None)
