"""Link: whether the agent of a client can be reached now."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from enum import Enum, StrEnum, auto

from antiphon.client.session.event_log import EventLog
from antiphon.errors import LinkLost


class LinkState(StrEnum):
    CONNECTED = "connected"
    RECONNECTING = "reconnecting"
    """The link was lost, and the client tries to reach the agent again."""
    GONE = "gone"
    """The link was lost for good, or closed."""


class LinkInput(Enum):
    LOST = auto()
    RESTORED = auto()
    ENDED = auto()


STATES: dict[tuple[LinkState, LinkInput], LinkState] = {
    (LinkState.CONNECTED, LinkInput.LOST): LinkState.RECONNECTING,
    (LinkState.CONNECTED, LinkInput.RESTORED): LinkState.CONNECTED,
    (LinkState.CONNECTED, LinkInput.ENDED): LinkState.GONE,
    (LinkState.RECONNECTING, LinkInput.LOST): LinkState.RECONNECTING,
    (LinkState.RECONNECTING, LinkInput.RESTORED): LinkState.CONNECTED,
    (LinkState.RECONNECTING, LinkInput.ENDED): LinkState.GONE,
    (LinkState.GONE, LinkInput.LOST): LinkState.GONE,
    (LinkState.GONE, LinkInput.RESTORED): LinkState.GONE,
    (LinkState.GONE, LinkInput.ENDED): LinkState.GONE,
}


class Link:
    """Whether the agent of a client can be reached (`client.link`). `ClientOptions.on_link` is called with it
    when its state changes, and at each attempt to reconnect."""

    def __init__(self, on_change: Callable[[Link], None] | None = None) -> None:
        self.state = LinkState.CONNECTED
        self.reason = ""
        """Why it was lost; empty while it is connected."""
        self.attempts = 0
        """The number of attempts to reconnect since it was lost."""
        self._on_change = on_change
        self._states: EventLog[LinkState] = EventLog()

    @property
    def up(self) -> bool:
        return self.state is LinkState.CONNECTED

    async def connected(self) -> None:
        """Wait until the agent can be reached. Raises `LinkLost` if the link is lost for good."""
        if self.state is LinkState.RECONNECTING:
            async for state in self.changes():
                if state is LinkState.CONNECTED:
                    return
        if self.state is LinkState.GONE:
            raise LinkLost(self.reason)

    async def changes(self) -> AsyncIterator[LinkState]:
        """The present state, then each new one, until the link is gone."""
        seen = len(self._states.entries)
        yield self.state
        async for state in self._states.watch(after=seen):
            yield state

    def _step(self, input: LinkInput, reason: str = "") -> None:
        before, self.state = self.state, STATES[self.state, input]
        if before is LinkState.GONE:
            return
        self.reason = reason
        if input is LinkInput.RESTORED:
            self.attempts = 0
        if self.state is not before:
            self._states.add(self.state)
            self._changed()
        if self.state is LinkState.GONE:
            self._states.end()

    def _attempted(self) -> None:
        self.attempts += 1
        self._changed()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change(self)
