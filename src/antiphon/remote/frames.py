"""The members of a frame by which an HTTP transport finds its stream."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from antiphon.jsonrpc.frames import UNREADABLE

CONNECTION_ID = "Acp-Connection-Id"
SESSION_ID = "Acp-Session-Id"
ID_LENGTH = 1024
"""The most characters of an id of a client (HTTP-23)."""
CANCEL = "$/cancel_request"
UPDATE = "session/update"
TURN_COMPLETE = b'"update":{"sessionUpdate":"turn_complete"'
ATTACH = "_antiphon/attach"
LOAD = "session/load"
REOPEN = frozenset({LOAD, "session/resume"})
CLOSES = frozenset({"session/close", "session/delete"})
OPENS = frozenset({"session/new", "session/fork"})
"""Methods whose results name a session that the client did not know before."""


_NULL = Raw(b"null")


class _Params(Struct):
    """Members of any type stay raw: to decode all values of a large frame takes seconds."""

    session_id: Raw = msgspec.field(name="sessionId", default=_NULL)
    request_id: str | int | float | None = msgspec.field(name="requestId", default=None)
    meta: Raw = msgspec.field(name="_meta", default=_NULL)


class Outline(Struct):
    """The members of a frame that say which stream it belongs to."""

    id: str | int | float | UnsetType | None = UNSET
    method: str | None = None
    params: _Params | None = None
    error: Raw | UnsetType = UNSET

    @property
    def session(self) -> str | None:
        try:
            return None if self.params is None else _text.decode(self.params.session_id)
        except UNREADABLE:
            return None

    @property
    def is_response(self) -> bool:
        return self.method is None and self.id is not UNSET

    @property
    def cancels(self) -> str | int | float | None:
        """The id of the request that it cancels."""
        return self.params.request_id if self.method == CANCEL and self.params is not None else None

    @property
    def ours(self) -> dict[str, Any]:
        """The `_meta["antiphon"]` of the params."""
        return _ours(_NULL if self.params is None else self.params.meta)


def _ours(meta: Raw) -> dict[str, Any]:
    try:
        return _meta.decode(meta).antiphon
    except UNREADABLE:
        return {}


class _Meta(Struct):
    antiphon: dict[str, Any] = {}


class _Result(Struct):
    session_id: str | None = msgspec.field(name="sessionId", default=None)
    protocol_version: int | None = msgspec.field(name="protocolVersion", default=None)
    meta: Raw = msgspec.field(name="_meta", default=_NULL)


class _Answer(Struct):
    result: _Result | None = None


_outline = msgspec.json.Decoder(Outline)
_answer = msgspec.json.Decoder(_Answer)
_meta = msgspec.json.Decoder(_Meta)
_text = msgspec.json.Decoder(str)


def outline(frame: bytes) -> Outline:
    try:
        return _outline.decode(frame)
    except UNREADABLE:
        return Outline()


def _result(frame: bytes) -> _Result:
    try:
        return _answer.decode(frame).result or _Result()
    except UNREADABLE:
        return _Result()


def opened_session(frame: bytes) -> str | None:
    """Return the session that a result names."""
    return _result(frame).session_id


def result_meta(frame: bytes) -> dict[str, Any]:
    """Return the `_meta["antiphon"]` of a result."""
    return _ours(_result(frame).meta)


def agreed_version(frame: bytes) -> int | None:
    """Return the protocol version in a result of `initialize`."""
    return _result(frame).protocol_version


def key_of(id: Any) -> tuple[str, Any]:
    """Return a dictionary key that tells `1`, `1.0` and `"1"` apart."""
    return type(id).__name__, id
