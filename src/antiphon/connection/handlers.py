"""Handlers: what is done with the requests and notifications of the other side."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Raw

from antiphon.connection.sessions import session_of
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema.updates import TextChunk

RequestHandler = Callable[[Any, Inbound], Awaitable[Any]]
NotificationHandler = Callable[[Any], Awaitable[None] | None]
ExtensionNotified = Callable[[str, Any], Awaitable[None] | None]
LaneOf = Callable[[str, Any], str | None]
"""Returns the session in whose lane a method with these params runs; `None`: in that of the connection."""
Unbegun = Callable[[Any], Any]
"""Makes the answer to a request that is cancelled before its handler has begun, where that is no error."""


def session_of_call(method: str, params: Any) -> str | None:
    """Return the session that the params of a method name."""
    return session_of(params)


class Handlers:
    """`requests`, `notifications` and `unbegun` are by the names of methods."""

    __slots__ = (
        "in_one_stream",
        "lane_of",
        "notifications",
        "on_extension",
        "on_extension_notified",
        "on_text_chunks",
        "on_written",
        "requests",
        "unbegun",
    )

    def __init__(
        self,
        requests: Mapping[str, RequestHandler] | None = None,
        notifications: Mapping[str, NotificationHandler] | None = None,
        unbegun: Mapping[str, Unbegun] | None = None,
        *,
        on_extension: RequestHandler | None = None,
        on_extension_notified: ExtensionNotified | None = None,
        lane_of: LaneOf = session_of_call,
    ) -> None:
        self.requests = dict(requests or {})
        self.notifications = dict(notifications or {})
        self.unbegun = dict(unbegun or {})
        self.on_written: Callable[[tuple[Any, bytes | Raw]], Awaitable[None] | None] | None = None
        """Where it is set, updates come here, each with the line that it was read from, or its params; and
        those that do not decode come as unknown ones."""
        self.on_text_chunks: Callable[[tuple[str, list[TextChunk]]], Awaitable[None] | None] | None = None
        """Where it is set, plain text chunks come here: a session's id, and those that were read together."""
        self.on_extension = on_extension
        """Answers requests of methods that begin with `_` and have no handler (EXT-01)."""
        self.on_extension_notified = on_extension_notified
        """The same for notifications (EXT-02)."""
        self.lane_of = lane_of
        self.in_one_stream = False
        """Whether extension notifications that name no session wait for the updates that came before them."""
