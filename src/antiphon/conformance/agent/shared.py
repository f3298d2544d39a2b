"""SharedConnection: one connection that several scenarios use, one after the other.

Most of the time of a run is the start of agents. A scenario that leaves a connection as it found it, apart
from the sessions it made, may pass it on. A connection with open work or an open question is not passed on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from antiphon.conformance.agent.conversation import Conversation, is_idle, state
from antiphon.conformance.link import Link, NotSeen
from antiphon.conformance.recording import RecordedFrame, Role

SETTLE_SECONDS = 3.0
"""How long a connection may take to come to rest at the end of a scenario."""


class SharedConnection:
    """Scenarios that use it hold `turn`, so that one uses it at a time."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self._link: Link | None = None
        self._initialized: dict[str, Any] = {}
        self._wanted = True
        """Whether the agent passes on any connection: one that answers no request never does."""

    def take(self, cwd: str) -> Conversation | None:
        """Return the connection for the next scenario; `None` if there is none."""
        if self._link is None or self._link.ended:
            return None
        self._link.begin()
        return Conversation(self._link, self._initialized, cwd=cwd)

    async def put_back(self, link: Link, initialized: dict[str, Any]) -> None:
        """Keep a connection for the next scenario, or close it."""
        self._link = None
        if self._wanted and await self._comes_to_rest(link):
            self._link, self._initialized = link, initialized
        else:
            await link.aclose()

    async def aclose(self) -> None:
        if self._link is not None:
            await self._link.aclose()

    async def _comes_to_rest(self, link: Link) -> bool:
        try:
            seen = await link.barrier(timeout=SETTLE_SECONDS)
        except NotSeen:
            self._wanted = link.ended
            return False
        frames = link.recording.frames[link.first :]
        if _questions(frames):
            return False
        if not _works(frames):
            return True
        try:
            await link.wait(
                lambda frame: not _works(link.recording.frames[link.first : frame.index + 1]),
                "the end of the work", after=seen, timeout=SETTLE_SECONDS,
            )  # fmt: skip
        except NotSeen:
            return False
        return not _questions(link.recording.frames[link.first :])


def _works(frames: Sequence[RecordedFrame]) -> bool:
    """Whether a request of the judge is open, or the last state of a session is not idle."""
    if _open_requests(frames, Role.CLIENT):
        return True
    states = {frame.session_id: frame for frame in frames if state(frame) is not None}
    return not all(map(is_idle, states.values()))


def _questions(frames: Sequence[RecordedFrame]) -> bool:
    """Whether a request of the agent is open."""
    return bool(_open_requests(frames, Role.AGENT))


def _open_requests(frames: Sequence[RecordedFrame], sender: Role) -> set[str]:
    """Return the ids of requests without a response. JSON types of ids count (RPC-05)."""
    asked = {repr(frame.id) for frame in frames if frame.sender is sender and frame.is_request}
    return asked - {repr(frame.id) for frame in frames if frame.sender is not sender and frame.is_response}
