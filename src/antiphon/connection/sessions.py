"""Finds the session, and so the lane, that a frame belongs to."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from antiphon.jsonrpc.frames import UNREADABLE


class _Named(Struct, rename="camel"):
    session_id: str


_named = msgspec.json.Decoder(_Named)


def session_named(raw: Raw | None) -> str | None:
    """Return the `sessionId` of raw params or a raw result."""
    try:
        return _named.decode(raw or b"{}").session_id
    except UNREADABLE:
        return None


def session_of(params: Any) -> str | None:
    """Return the session of decoded params, typed or plain."""
    session = params.get("sessionId") if isinstance(params, dict) else getattr(params, "session_id", None)
    return session if isinstance(session, str) else None
