"""Cancelling what an agent behind the hub works on: its turn, or one thing of it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from antiphon.errors import AntiphonError
from antiphon.hub.work import UpstreamWork

logger = logging.getLogger("antiphon.hub")

CANCEL_AGAIN = 2.0
"""Seconds after which an agent is told once more to cancel a turn that had not opened when it was told."""
CANCEL_GRACE = 30.0
"""Seconds an agent has to end a turn that was cancelled, before it is ended itself."""


class Cancelling:
    def __init__(self, work: UpstreamWork) -> None:
        self._work = work
        self._binding = work.binding
        self._serial = 0
        """How many cancels the agent was sent."""

    def turn(self, meta: dict[str, Any] | None = None) -> None:
        """`meta` is what its client put beside the cancel (OBS-02)."""
        self._serial += 1
        self.tell_agent(meta)
        if self._binding.feed is not None and self._work.session.parent is None:
            self._later(CANCEL_GRACE, self._end)

    def opened(self) -> None:
        """A turn has opened whose prompt was cancelled before the agent took it. The agent may have been idle
        when it read the cancel, and have ignored it (PROMPT-V2-43); or it is about to end the turn."""
        self._later(CANCEL_AGAIN, self.tell_agent)

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something if what is cancelled now has not ended by then, at the same agent."""
        serial, feed = self._serial, self._binding.feed

        def due() -> None:
            still = self._work.cancelling and self._serial == serial
            if still and feed is not None and self._binding.feed is feed:
                act()

        self._work.session.tasks.call_later(seconds, due)

    def tell_agent(self, meta: dict[str, Any] | None = None) -> None:
        """Send the cancel on; nothing where no agent is at work."""
        if self._binding.feed is not None:
            self._work.session.tasks.start_soon(_quietly(self._binding.feed.session.cancel(meta=meta)))

    def _end(self) -> None:
        upstream = self._binding.upstream
        if upstream is not None:
            logger.warning("the agent of session %s did not stop in time, and is ended", self._work.id)
            upstream.end(f"it did not stop within {CANCEL_GRACE:g} s")

    def tool_call(self, id: str) -> bool:
        """Cancel one tool call; return whether the agent offers that."""
        call, feed = self._work.fold.tools.get(id), self._binding.feed
        if feed is None or call is None or call.final or getattr(call.capabilities, "cancel", None) is None:
            return False
        self._work.session.tasks.start_soon(_quietly(feed.session.cancel_tool_call(id)))
        return True

    def terminal(self, id: str) -> bool:
        """Cancel one terminal; return whether the agent offers that."""
        terminal, feed = self._work.fold.terminals.get(id), self._binding.feed
        able = None if terminal is None else getattr(terminal.capabilities, "cancel", None)
        if feed is None or able is None:
            return False
        self._work.session.tasks.start_soon(_quietly(feed.session.cancel_terminal(id)))
        return True


async def _quietly(work: Awaitable[None]) -> None:
    """An agent that refuses, or is gone, has told so by its updates."""
    with suppress(AntiphonError):
        await work
