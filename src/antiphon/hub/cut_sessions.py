"""CutSessions: ends the open work of sessions whose process is gone (invariant 4)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from antiphon.engine.events import Updated
from antiphon.engine.turn import Cause
from antiphon.errors import AntiphonError
from antiphon.schema import v2
from antiphon.server.registry import SessionRegistry
from antiphon.stores.base import SessionRecord, Store, all_records

RESTARTED = "The hub was restarted"
OWNER_GONE = "The hub that worked on this session is gone"
CUT = "The work in this session was cut short."


class CutSessions:
    def __init__(
        self,
        store: Store,
        registry: SessionRegistry,
        *,
        may_own: Callable[[SessionRecord], bool],
        attended: bool,
    ) -> None:
        """End turns that were cut short, in the sessions of a store.

        may_own: whether a session may be worked on here
        attended: whether clients of other hubs may wait for their prompts
        """
        self._store = store
        self._registry = registry
        self._may_own = may_own
        self._attended = attended

    async def end_all(self) -> None:
        """End what an earlier process left unfinished when it was killed."""
        async for record in all_records(self._store):
            if record.state != "idle" and self._may_own(record):
                with contextlib.suppress(AntiphonError):  # open in another process, or unreadable
                    await self._end(record.session_id, RESTARTED)

    async def end_of_lost_owner(self, session_id: str) -> bool:
        """End what a hub that is gone left unfinished in a session. Return whether prompts wait in it."""
        return await self._end(session_id, OWNER_GONE)

    async def _end(self, session_id: str, why: str) -> bool:
        notice = v2.Notice(severity=v2.NoticeSeverity.WARNING, title=why, description=CUT)
        async with self._registry.borrow(session_id) as live:
            ended = live.fold.interrupt(attended=self._attended, cause=Cause.HUB_LOST)
            live.emit([*ended, Updated.of(notice)])
            return bool(live.fold.prompts.queued) and not live.fold.prompts.paused
