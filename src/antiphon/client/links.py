"""Link: whether the agent of a client can be reached just now, for who wants to show it or wait for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from enum import StrEnum

from antiphon.client.watching import Log
from antiphon.errors import LinkLost


class LinkState(StrEnum):
    CONNECTED = "connected"
    RECONNECTING = "reconnecting"
    """It was lost, and is tried again."""
    GONE = "gone"
    """It was lost for good, or closed."""


class Link:
    """`client.link`. `on_link` of `connect` is called with it whenever its state is another one, and at each
    attempt to come back."""

    def __init__(self, on_change: Callable[[Link], None] | None = None) -> None:
        self.state = LinkState.CONNECTED
        self.reason = ""
        """Why it was lost; empty while it is there."""
        self.attempts = 0
        """How often it was tried since it was lost."""
        self._on_change = on_change
        self._states: Log[LinkState] = Log()

    @property
    def up(self) -> bool:
        return self.state is LinkState.CONNECTED

    async def connected(self) -> None:
        """Wait until the agent can be reached. Raises `LinkLost` where that will not be again."""
        if self.state is LinkState.RECONNECTING:
            async for state in self.changes():
                if state is LinkState.CONNECTED:
                    return
        if self.state is LinkState.GONE:
            raise LinkLost(self.reason)

    async def changes(self) -> AsyncIterator[LinkState]:
        """Its states from now on, the present one first, until it is gone."""
        seen = len(self._states.entries)
        yield self.state
        async for state in self._states.watch(after=seen):
            yield state

    # What the client tells

    def lose(self, reason: str) -> None:
        self.reason = reason
        self._become(LinkState.RECONNECTING)

    def tried(self) -> None:
        self.attempts += 1
        self._changed()

    def restore(self) -> None:
        self.reason, self.attempts = "", 0
        self._become(LinkState.CONNECTED)

    def end(self, reason: str) -> None:
        self.reason = reason
        self._become(LinkState.GONE)
        self._states.end()

    def _become(self, state: LinkState) -> None:
        if state is not self.state:
            self.state = state
            self._states.add(state)
            self._changed()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change(self)
