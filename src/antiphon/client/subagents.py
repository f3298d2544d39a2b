"""Subagents (unstable): the sessions that work for one that is open here. They are followed, not opened."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from antiphon.client.early import EarlyUpdates
from antiphon.engine.subagents import SubagentInfo
from antiphon.errors import LocalError
from antiphon.schema import v2

if TYPE_CHECKING:
    from antiphon.client.session import ClientSession

logger = logging.getLogger("antiphon.client")

EARLY = 1000
EARLY_BYTES = 16 * 1024 * 1024
"""How many updates are kept of sessions that are not announced yet, and of how many bytes."""
Behind = Callable[[str, Callable[[], None]], None]
"""Does something once everything that was received for a session has been handled."""


class Subagent:
    """A session that works for another one: what was announced of it, and all that it tells, in `session`,
    which has its own messages, tool calls, questions and `events()`."""

    def __init__(self, info: SubagentInfo, session: ClientSession) -> None:
        self._info = info
        self.session = session

    @property
    def id(self) -> str:
        return self._info.id

    @property
    def title(self) -> str | None:
        return self._info.title

    @property
    def description(self) -> str | None:
        return self._info.description

    @property
    def state(self) -> v2.State | None:
        """As its parent told it last; None where that is not confirmed (SUB-02)."""
        state = self._info.state
        return state.state if isinstance(state, v2.StateUpdate) else None

    @property
    def can_cancel(self) -> bool:
        return self._info.can_cancel

    async def cancel(self) -> None:
        """Cancel what it works on, and nothing else. Raises `LocalError` where that was not offered."""
        await self.session.cancel()

    def __repr__(self) -> str:
        return f"Subagent({self.id!r}, title={self.title!r}, state={self.state!s})"


class Following:
    """The children of the sessions of one client."""

    def __init__(
        self,
        find: Callable[[str], ClientSession | None],
        add: Callable[[str, str], ClientSession],
    ) -> None:
        self._find = find
        self._add = add
        self._early: EarlyUpdates[Any] = EarlyUpdates(most=EARLY, most_bytes=EARLY_BYTES)

    def announced(self, parent: ClientSession, info: SubagentInfo) -> None:
        """In the lane of the parent: from here on the child is known."""
        child = self._find(info.id)
        if child is not None and _works_for(parent, child):
            # In a circle nobody could be asked for them: who asks goes up to the session that works for none.
            logger.warning("subagent ignored: %s works for %s already", parent.id, info.id)
            return
        if child is None:
            child = self._add(info.id, info.cwd or parent.cwd)
        child.parent = parent
        parent.children[info.id] = Subagent(info, child)
        for early in self._early.take(info.id):
            child.receive(early)

    def keep(self, params: Any, size: int) -> None:
        """Keep an update, of `size` bytes, of a session that is not known. Sessions are read side by side, so
        its announcement, which was sent before it, may be about to be read."""
        self._early.put(params.session_id, params, size)

    async def known(self, session_id: str, others: Iterable[str], behind: Behind) -> ClientSession | None:
        """A session that is announced, once all has been read that was sent before it was named."""
        for other in others:
            read = asyncio.Event()
            behind(other, read.set)
            await read.wait()
        return self._find(session_id)


def _works_for(session: ClientSession, other: ClientSession) -> bool:
    """Whether a session is another one, or works for it. There are no circles: none is let come about."""
    above: ClientSession | None = session
    while above is not None and above is not other:
        above = above.parent
    return above is other


def check_cancel(session: ClientSession) -> None:
    """Raises `LocalError` for a child that may not be cancelled from here (SUB-02)."""
    if session.parent is not None:
        info = session.parent.fold.subagents.get(session.id)
        if info is None or not info.can_cancel:
            raise LocalError("this subagent cannot be cancelled")


def check_own(session: ClientSession) -> None:
    """Raises `LocalError` for a child: nothing is done to it from here."""
    if session.parent is not None:
        raise LocalError("a subagent's session is only followed")
