"""Cancelling what an agent behind the hub works on: its turn, or one thing of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from antiphon.errors import AntiphonError

if TYPE_CHECKING:
    from antiphon.hub.session import HubSession

logger = logging.getLogger("antiphon.hub")

CANCEL_AGAIN = 2.0
"""Seconds after which an agent is told once more to cancel a turn that had not opened when it was told."""
CANCEL_GRACE = 30.0
"""Seconds an agent has to end a turn that was cancelled, before it is ended itself."""


class Cancelling:
    def __init__(self, session: HubSession) -> None:
        self._session = session
        self._standing = session.standing
        self._serial = 0
        """How many cancels the agent was sent."""
        session.cancels.calls = _Offered(self._call)
        session.cancels.terminals = _Offered(self._terminal)

    def turn(self, meta: dict[str, Any] | None = None) -> None:
        """`meta` is what its client put beside the cancel (OBS-02)."""
        self._serial += 1
        self.tell_agent(meta)
        if self._standing.course is not None and self._session.parent is None:
            self._later(CANCEL_GRACE, self._end)

    def opened(self) -> None:
        """A turn has opened whose prompt was cancelled before the agent took it. The agent may have been idle
        when it read the cancel, and have ignored it (PROMPT-V2-43); or it is about to end the turn."""
        self._later(CANCEL_AGAIN, self.tell_agent)

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something if what is cancelled now has not ended by then, at the same agent."""
        serial, course = self._serial, self._standing.course

        def due() -> None:
            still = self._session.cancelling and self._serial == serial
            if still and course is not None and self._standing.course is course:
                act()

        asyncio.get_running_loop().call_later(seconds, due)

    def tell_agent(self, meta: dict[str, Any] | None = None) -> None:
        """Send the cancel on; nothing where no agent is at work."""
        if self._standing.course is not None:
            self._session.soon(_quietly(self._standing.course.session.cancel(meta=meta)))

    def _end(self) -> None:
        upstream = self._standing.upstream
        if upstream is not None:
            logger.warning("the agent of session %s did not stop in time, and is ended", self._session.id)
            upstream.end(f"it did not stop within {CANCEL_GRACE:g} s")

    def _call(self, id: str) -> Callable[[], None] | None:
        call, course = self._session.fold.tools.get(id), self._standing.course
        if course is None or call is None or call.final or getattr(call.capabilities, "cancel", None) is None:
            return None
        return lambda: self._session.soon(_quietly(course.session.cancel_tool_call(id)))

    def _terminal(self, id: str) -> Callable[[], None] | None:
        terminal, course = self._session.fold.terminals.get(id), self._standing.course
        able = None if terminal is None else getattr(terminal.capabilities, "cancel", None)
        if course is None or able is None:
            return None
        return lambda: self._session.soon(_quietly(course.session.cancel_terminal(id)))


class _Offered(dict[str, Callable[[], None]]):
    """What clients may cancel by itself: whatever the agent offers just now."""

    def __init__(self, find: Callable[[str], Callable[[], None] | None]) -> None:
        super().__init__()
        self._find = find

    def get(self, id: str, default: Any = None) -> Any:
        return self._find(id)


async def _quietly(work: Awaitable[None]) -> None:
    """An agent that refuses, or is gone, has told so by its updates."""
    with suppress(AntiphonError):
        await work
