"""Handlers: the functions that handle the requests and notifications of the peer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Raw, Struct

from antiphon.connection.sessions import session_of
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema.updates import TextChunk

RequestHandler = Callable[[Any, Inbound], Awaitable[Any]]
NotificationHandler = Callable[[Any], Awaitable[None] | None]
ExtensionNotified = Callable[[str, Any], Awaitable[None] | None]
LaneOf = Callable[[str, Any], str | None]
"""Returns the session in whose lane a method with these params runs; `None` for the connection's lane."""
Unbegun = Callable[[Any], Any]
"""Makes the result of a request that is cancelled before its handler has begun, if that is not an error."""


def session_of_call(method: str, params: Any) -> str | None:
    """Return the session that the params of a method name."""
    return session_of(params)


class Handlers(Struct):
    """The handlers of one connection. `requests`, `notifications` and `unbegun` are by method name."""

    requests: dict[str, RequestHandler]
    notifications: dict[str, NotificationHandler]
    unbegun: dict[str, Unbegun]
    on_extension: RequestHandler | None = None
    """Answers requests of methods that begin with `_` and have no handler (EXT-01)."""
    on_extension_notified: ExtensionNotified | None = None
    """The same for notifications (EXT-02)."""
    lane_of: LaneOf = session_of_call
    on_written: Callable[[tuple[Any, bytes | Raw]], Awaitable[None] | None] | None = None
    """If set, gets every update together with the line or params that it was read from. It gets updates that
    do not decode as unknown ones."""
    on_text_chunks: Callable[[tuple[str, list[TextChunk]]], Awaitable[None] | None] | None = None
    """If set, gets the plain text chunks of a session that were read together, with the session's id."""
    in_one_stream: bool = False
    """Whether extension notifications that name no session wait for the updates that came before them."""
