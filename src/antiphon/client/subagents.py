"""SubagentSessions (unstable): the sessions that work for those that are open here. They are followed, not
opened."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

from antiphon.client.protocol.early_updates import EarlyUpdates
from antiphon.client.session.session import ClientSession, Subagent
from antiphon.engine.subagents import SubagentInfo

logger = logging.getLogger("antiphon.client")

EARLY = 1000
EARLY_BYTES = 16 * 1024 * 1024
"""How many updates, and how many bytes of them, are kept of sessions that are not announced yet."""


class SubagentSessions:
    def __init__(
        self, find: Callable[[str], ClientSession | None], add: Callable[[str, str], ClientSession]
    ) -> None:
        """`find` returns an open session by its id; `add` creates one with an id and a folder."""
        self._find = find
        self._add = add
        self._early: EarlyUpdates[Any] = EarlyUpdates(most=EARLY, most_bytes=EARLY_BYTES)

    def announced(self, parent: ClientSession, info: SubagentInfo) -> None:
        """Follow a child that was announced in the lane of its parent."""
        child = self._find(info.id)
        if child is not None and _works_for(parent, child):
            # Questions go up to the session that works for none; in a circle there is no such session.
            logger.warning("subagent ignored: %s works for %s already", parent.id, info.id)
            return
        if child is None:
            child = self._add(info.id, info.cwd or parent.cwd)
        child.parent = parent
        parent._children[info.id] = Subagent(info, child)
        for early in self._early.take(info.id):
            child._core.receive(early)

    def keep(self, params: Any, size: int) -> None:
        """Keep an update, of `size` bytes, of an unknown session. Sessions are read in parallel, so its
        announcement may have been sent before and not be read yet."""
        self._early.put(params.session_id, params, size)

    async def find_announced(
        self, session_id: str, others: Iterable[str], behind: Callable[[str, Callable[[], None]], None]
    ) -> ClientSession | None:
        """Find a session once everything that was received for the `others` has been handled. `behind` calls
        a function after everything that was received for a session."""
        for other in others:
            read = asyncio.Event()
            behind(other, read.set)
            await read.wait()
        return self._find(session_id)


def _works_for(session: ClientSession, other: ClientSession) -> bool:
    """Whether a session is another one, or works for it. `announced` allows no circles."""
    above: ClientSession | None = session
    while above is not None and above is not other:
        above = above.parent
    return above is other
