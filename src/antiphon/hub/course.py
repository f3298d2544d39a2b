"""Course: what comes of one session at an agent, on its way to the session of the hub that stands on it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

from antiphon.client import ClientSession, ClientTurn, Permission, SessionEvent
from antiphon.client.elicitation import Elicitation
from antiphon.engine.transcript import MessageChunk
from antiphon.errors import LinkLost
from antiphon.hub.files import Attended


class Hears(Attended, Protocol):
    """A hub session, as what its agent does reaches it: in the lane, at once."""

    def agent_took(self, turn: ClientTurn) -> None: ...
    def agent_did(self, event: SessionEvent) -> None: ...
    def agent_streamed(self, chunk: MessageChunk) -> None: ...
    def agent_left(self, reason: str) -> None: ...
    def agent_paced(self) -> Awaitable[None] | None: ...
    async def agent_asks(self, permission: Permission) -> str | None: ...
    async def agent_elicits(self, elicitation: Elicitation) -> Any: ...


class Course:
    """What comes of one session at an agent. It is kept until a hub session takes it."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self._early: list[SessionEvent] = []
        self._hears: Hears | None = None
        self.ended: str | None = None

    def lead(self, hears: Hears, *, early: bool) -> None:
        """To this session, from here on; with `early`, also what came until now."""
        self._hears = hears
        kept, self._early = self._early, []
        if early:
            for event in kept:
                hears.agent_did(event)
        if self.ended is not None:
            hears.agent_left(self.ended)

    def cut(self) -> None:
        """To nobody any more."""
        self._hears = None
        self.ended = self.ended or "the hub let it go"

    @property
    def hears(self) -> Hears | None:
        return self._hears

    # What the client tells

    def taken(self, turn: ClientTurn) -> None:
        if self._hears is not None:
            self._hears.agent_took(turn)

    def happened(self, event: SessionEvent) -> None:
        if self._hears is not None:
            self._hears.agent_did(event)
        elif self.ended is None:
            self._early.append(event)

    def streamed(self, chunk: MessageChunk) -> None:
        if self._hears is not None:
            self._hears.agent_streamed(chunk)
        else:
            self.happened(SessionEvent(seq=0, turn=None, update=chunk))

    def left(self, reason: LinkLost | str) -> None:
        if self.ended is None:
            self.ended = reason.reason if isinstance(reason, LinkLost) else reason
            if self._hears is not None:
                self._hears.agent_left(self.ended)

    def pace(self) -> Awaitable[None] | None:
        return None if self._hears is None else self._hears.agent_paced()
