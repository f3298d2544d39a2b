"""Unanswered: what was asked over a client's HTTP connection, by either side, and has no answer yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from antiphon.errors import ErrorObject
from antiphon.jsonrpc.frames import UNREADABLE, encode_failure
from antiphon.transports.http_frames import Outline, key_of
from antiphon.transports.http_reading import StreamRefused

BODY_SHOWN = 8 * 1024


class Pending(Struct, frozen=True):
    """A request of this side."""

    id: Any
    method: str
    session: str | None


class Unanswered:
    def __init__(self, fail: Callable[[bytes], None]) -> None:
        """`fail` gets the answers to what nobody answers any more."""
        self._fail = fail
        self._pending: dict[tuple[str, Any], Pending] = {}
        self._asked: dict[tuple[str, Any], str] = {}
        """Sessions in which the agent asks something, by the ids of the requests (HTTP-09)."""

    def sent(self, about: Outline) -> str | None:
        """A frame is about to go out; the session that it belongs to."""
        if about.is_response:
            return self._asked.pop(key_of(about.id), None)
        if about.id is not UNSET:
            self._pending[key_of(about.id)] = Pending(about.id, about.method or "", about.session)
        return about.session

    def came(self, about: Outline, session: str | None) -> Pending | None:
        """A frame came over the stream of a session, or of none; the request that it answers."""
        if about.is_response:
            return self._pending.pop(key_of(about.id), None)
        if about.id is not UNSET and session is not None:
            self._asked[key_of(about.id)] = session
        return None

    # --- what fails (HTTP-18) ----------------------------------------------------------------------

    def fail(self, id: Any, refused: StreamRefused) -> None:
        pending = self._pending.pop(key_of(id), None)
        if pending is not None:
            data = {"status": refused.status, "body": _shown(refused.body)}
            error = ErrorObject(-32603, f"the server answered with {refused.status}", data)
            self._fail(encode_failure(pending.id, _read_error(refused.body) or error))

    def fail_session(self, session: str, refused: StreamRefused) -> None:
        for pending in tuple(self._pending.values()):
            if pending.session == session:
                self.fail(pending.id, refused)


class _Refusal(Struct):
    error: ErrorObject


def _read_error(body: bytes) -> ErrorObject | None:
    """The JSON-RPC error that a server answered with, where it is one."""
    try:
        return msgspec.json.decode(body, type=_Refusal).error
    except UNREADABLE:
        return None


def _shown(body: bytes) -> Any:
    """What a server said, as far as it is worth showing."""
    try:
        return msgspec.json.decode(body[:BODY_SHOWN])
    except UNREADABLE:
        return body[:BODY_SHOWN].decode("utf-8", "ignore")
