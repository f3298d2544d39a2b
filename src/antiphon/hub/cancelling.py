"""Cancelling what an agent behind the hub works on: its turn, or one thing of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from antiphon.errors import AntiphonError
from antiphon.hub.course import Course

if TYPE_CHECKING:
    from antiphon.hub.session import HubSession

logger = logging.getLogger("antiphon.hub")

CANCEL_GRACE = 30.0
"""Seconds an agent has to end a turn that was cancelled, before it is ended itself."""


class Cancelling:
    def __init__(self, session: HubSession) -> None:
        self._session = session
        self._standing = session.standing
        session.cancels.calls = _Offered(self._call)
        session.cancels.terminals = _Offered(self._terminal)

    def turn(self, meta: dict[str, Any] | None = None) -> None:
        """`meta` is what its client put beside the cancel (OBS-02)."""
        course, turn = self._standing.course, self._session.fold.turn
        if course is None:
            return
        self._session.soon(_quietly(course.session.cancel(meta=meta)))
        if turn is not None and self._session.parent is None:
            loop = asyncio.get_running_loop()
            loop.call_later(CANCEL_GRACE, self._end, course, turn.turn_id)

    def _end(self, course: Course, turn_id: int) -> None:
        turn, upstream = self._session.fold.turn, self._standing.upstream
        if self._standing.course is course and turn is not None and turn.turn_id == turn_id:
            logger.warning("the agent of session %s did not stop in time, and is ended", self._session.id)
            assert upstream is not None
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
