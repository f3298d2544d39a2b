"""`_antiphon/sessions`: notifies clients that asked for it which sessions came, changed or went.

Changes are gathered for a moment and sent together. A client that does not read gets the entries once it
reads, as they are by then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import structs

from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.errors import StoreError
from antiphon.jsonrpc.frames import encode_notification
from antiphon.schema import v1, v2
from antiphon.schema.antiphon.hub import SessionsNotification
from antiphon.server.connection import ClientConnection
from antiphon.server.methods.records import info_of
from antiphon.server.registry import SessionRegistry

logger = logging.getLogger("antiphon.hub")

METHOD = "_antiphon/sessions"
SOON = 0.05
PACE = 0.25
"""Seconds between two notifications."""

Infos = tuple[Any, Any]
"""A session as lists of v1 and of v2 have it."""


class SessionChanges:
    """The ids of sessions whose entries in `session/list` may have changed."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self.noted = asyncio.Event()
        """Set while there are changes that were not taken."""

    def note(self, session_id: str) -> None:
        self._ids.add(session_id)
        self.noted.set()

    def take(self) -> set[str]:
        ids, self._ids = self._ids, set()
        self.noted.clear()
        return ids


class SessionListNotifier:
    def __init__(self, changes: SessionChanges, registry: SessionRegistry) -> None:
        self._changes = changes
        self._registry = registry
        self._known: dict[str, bytes] = {}
        """The entries that were sent last, without the times at which the sessions last changed."""
        self._behind: dict[ClientConnection, set[str]] = {}
        """The changes that clients were not sent, because they do not read."""

    async def run(self) -> None:
        """Send changes as they come, until this is cancelled."""
        while True:
            await self._changes.noted.wait()
            await asyncio.sleep(SOON)
            try:
                while self._changes.noted.is_set() or self._behind:
                    await self._notify_clients()
                    await asyncio.sleep(PACE)
            except Exception:
                logger.exception("session list notification failed")  # the next change may be sent

    async def _notify_clients(self) -> None:
        changed = self._changes.take()
        wanting = [link for link in self._registry.connections if link.extras.session_updates]
        self._behind = {link: ids for link, ids in self._behind.items() if link in wanting}
        if not wanting:
            self._known.clear()  # who comes next reads a list first
            return
        looked = await self._look(changed.union(*self._behind.values()))
        news = {id for id in looked if id in changed and self._is_news(id, looked[id])}
        for link in wanting:
            unsent = news | (self._behind.pop(link, set()) & looked.keys())
            ids = {id for id in unsent if link.policy.shows(id)}
            if not ids:
                continue
            if link.wire.congested:
                self._behind[link] = ids
            else:
                link.wire.send(_frame(link, {id: looked[id] for id in ids}))

    async def _look(self, ids: Iterable[str]) -> dict[str, Infos | None]:
        """Return the entries of these sessions: `None` for those that are gone. Sessions that are in no list
        are left out."""
        found: dict[str, Infos | None] = {}
        for id in ids:
            try:
                record = await self._registry.store.get(id)
            except StoreError as error:
                logger.warning("session list entry could not be read: %s", error)
                continue
            if record is None:
                found[id] = None
            elif SUBAGENT_OF not in record.meta:
                found[id] = info_of(self._registry, record, v1), info_of(self._registry, record, v2)
        return found

    def _is_news(self, session_id: str, now: Infos | None) -> bool:
        if now is None:
            self._known.pop(session_id, None)
            return True
        entry = msgspec.json.encode(structs.replace(now[1], updated_at=None))
        before, self._known[session_id] = self._known.get(session_id), entry
        return entry != before


def _frame(link: ClientConnection, sessions: dict[str, Infos | None]) -> bytes:
    entries = [both[0] if link.v1 else both[1] for both in sessions.values() if both is not None]
    gone = [id for id, both in sessions.items() if both is None]
    return encode_notification(METHOD, msgspec.json.encode(SessionsNotification(sessions=entries, gone=gone)))
