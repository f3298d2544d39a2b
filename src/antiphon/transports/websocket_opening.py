"""WebSocketOpening: what a server lets through of a WebSocket before and after `initialize` (WS-03).

A socket that begins with anything else is somebody's mistake, and is closed; over stdio the connection would
say so and wait. What is no JSON, or no message at all, goes on to the connection, which answers it (WS-05).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from antiphon.errors import ErrorObject, InvalidRequest
from antiphon.jsonrpc.frames import UNREADABLE, encode_failure
from antiphon.jsonrpc.lines import Received
from antiphon.transports.http_frames import ID_LENGTH, outline

PROTOCOL_ERROR = 1002
POLICY_VIOLATION = 1008
INITIALIZE = "initialize"
_AGAIN = ErrorObject(InvalidRequest.code, "this connection is already initialized")


class Closing(Exception):
    """The socket is to be closed with this code."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class State(StrEnum):
    NEW = "new"
    ASKED = "asked"
    """`initialize` is being answered."""
    OPEN = "open"


class _First(Struct):
    id: Any = UNSET
    method: Any = None
    error: Raw | UnsetType = UNSET


_first = msgspec.json.Decoder(_First)


def _read(frame: bytes) -> _First:
    try:
        return _first.decode(frame)
    except UNREADABLE:
        return _First()


class WebSocketOpening:
    def __init__(self) -> None:
        self._state = State.NEW
        self._id: Any = None

    def receive(self, frames: list[Received]) -> tuple[list[Received], list[bytes]]:
        """Of what came, what goes on, and what is answered at once. Raises `Closing`."""
        passed: list[Received] = []
        answers: list[bytes] = []
        for frame in frames:
            answer = self._receive(frame) if isinstance(frame, bytes) else None
            if answer is None:
                passed.append(frame)
            else:
                answers.append(answer)
        return passed, answers

    def _receive(self, frame: bytes) -> bytes | None:
        if len(frame) > ID_LENGTH:
            _check_ids(frame)
        if self._state is State.OPEN and b'"initialize"' not in frame:
            return None
        first = _read(frame)
        if not isinstance(first.method, str):
            return None
        if self._state is State.OPEN and first.method == INITIALIZE and first.id is not UNSET:
            return encode_failure(first.id, _AGAIN)
        if self._state is State.NEW:
            self._begin(first)
        return None

    def _begin(self, first: _First) -> None:
        if first.method != INITIALIZE:
            raise Closing(PROTOCOL_ERROR, "The first message is `initialize`")
        if first.id is UNSET or first.id is None:
            raise Closing(PROTOCOL_ERROR, "`initialize` needs an id")
        self._state, self._id = State.ASKED, first.id

    def answered(self, frame: bytes) -> None:
        """Something was answered: what failed may be tried again (INIT-26)."""
        if self._state is State.ASKED:
            first = _read(frame)
            if first.method is None and first.id == self._id:
                self._state = State.OPEN if first.error is UNSET else State.NEW


def _check_ids(frame: bytes) -> None:
    about = outline(frame)
    for name, id in (("The request's id", about.id), ("The session's id", about.session)):
        if isinstance(id, str) and len(id) > ID_LENGTH:
            raise Closing(POLICY_VIOLATION, f"{name} is over {ID_LENGTH} characters")
