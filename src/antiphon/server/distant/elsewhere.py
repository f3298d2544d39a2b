"""Elsewhere: the other servers that work on the same store, as a registry sees them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from antiphon.errors import AntiphonError, RequestError
from antiphon.live.feed import SessionFeed
from antiphon.server.control.control import Control
from antiphon.stores.base import SessionRecord


def open_elsewhere(session_id: str) -> RequestError:
    """Return the error for a client whose session can only be worked on elsewhere."""
    return RequestError(
        AntiphonError.code, "The session is open in another process", data={"sessionId": session_id}
    )


class Glance(NamedTuple):
    """What lists show of a session that is open at another server."""

    state: str
    clients: int


class Elsewhere(Protocol):
    def may_own(self, record: SessionRecord) -> bool:
        """Return whether this server may work on a session: its working directory may be on another host."""

    def control(
        self, feed: SessionFeed, record: SessionRecord, take_over: Callable[[], Awaitable[Control]]
    ) -> Control:
        """Return what asks the owner of a session. `take_over` makes this server the owner, if there is none
        any more, and returns the control of the session."""

    async def is_free(self, session_id: str) -> bool:
        """Return whether no other server owns a session."""

    async def close(self, session_id: str, credential: str | None) -> None:
        """Let the owner of a session close it, if it has one, for a client with this credential."""

    def glance(self, session_id: str) -> Glance | None:
        """Return what is known of a session that is open at another server."""

    async def released(self, session_id: str, seq: int, *, closed: bool, waits: bool) -> None:
        """Tell the other servers that a session whose last event is `seq` was put away here.

        closed: a client has closed it
        waits: prompts wait in it, to be sent by whoever owns it next
        """

    def taken_over(self, session_id: str) -> None:
        """Note that this server has become the owner of a session."""
