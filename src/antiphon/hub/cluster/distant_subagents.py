"""DistantSubagents: clients here follow the subagents that sessions of other hubs begin, as at the owner."""

from __future__ import annotations

import asyncio
import logging

from antiphon.errors import AntiphonError, ResourceNotFound
from antiphon.server.distant.session import DistantSession
from antiphon.server.registry import SessionRegistry
from antiphon.server.subagents import follow_distant
from antiphon.server.tasks import Tasks

logger = logging.getLogger("antiphon.hub")

PATIENCE = 30.0
"""Seconds for which the session of an announced subagent is waited for. An owner that has no room for it
never begins it."""


class DistantSubagents:
    def __init__(self, registry: SessionRegistry, tasks: Tasks) -> None:
        self._registry = registry
        self._tasks = tasks
        self._awaited: dict[str, asyncio.Event] = {}
        """Subagents that are not followed yet. Each event is set when a hub says something of the session."""

    def session_changed(self, session_id: str) -> None:
        """Note that a session has changed, here or at another hub. It may have announced subagents, or be one
        that was announced before its session began."""
        if session_id in self._awaited:
            self._awaited[session_id].set()
        session = self._registry.serving(session_id)
        if isinstance(session, DistantSession):
            for child_id in session.new_subagents():
                self._tasks.start_soon(self._follow(session, child_id))

    async def _follow(self, parent: DistantSession, child_id: str) -> None:
        changed = self._awaited[child_id] = asyncio.Event()
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    changed.clear()
                    try:
                        await follow_distant(self._registry, parent.clients(), parent, child_id)
                        return
                    except ResourceNotFound:
                        await changed.wait()
        except TimeoutError:
            logger.warning("subagent %s of session %s did not begin in time", child_id, parent.id)
        except AntiphonError as error:
            logger.warning("subagent %s of session %s is not followed: %s", child_id, parent.id, error)
        finally:
            del self._awaited[child_id]
