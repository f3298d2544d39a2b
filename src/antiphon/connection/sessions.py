"""Which session a frame belongs to, so that it goes into that session's lane."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from antiphon.jsonrpc.frames import UNREADABLE


class _Named(Struct, rename="camel"):
    session_id: str


_named = msgspec.json.Decoder(_Named)


def session_named(raw: Raw | None) -> str | None:
    """The `sessionId` of params or a result that nobody has decoded yet."""
    try:
        return _named.decode(raw or b"{}").session_id
    except UNREADABLE:
        return None


def session_of(params: Any) -> str | None:
    """The session that params belong to, typed or plain."""
    session = params.get("sessionId") if isinstance(params, dict) else getattr(params, "session_id", None)
    return session if isinstance(session, str) else None
