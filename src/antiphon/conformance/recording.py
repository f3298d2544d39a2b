"""Recordings: the frames of one connection in both directions, in the order in which they were seen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import cached_property
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from antiphon.errors import LocalError

_decoder = msgspec.json.Decoder()


class RecordingRefused(LocalError):
    """A file that is no recording. The message says where, and what was expected there."""


class Role(StrEnum):
    """The two sides of a connection."""

    CLIENT = "client"
    AGENT = "agent"

    @property
    def other(self) -> Role:
        return Role.AGENT if self is Role.CLIENT else Role.CLIENT


class RecordedFrame(Struct, frozen=True, eq=False, dict=True):
    """One line or message on the wire. Compared by identity: equal frames may be sent twice.

    The properties read any JSON value without raising; what is not there is `UNSET` or `None`.
    """

    at: float
    """Seconds since the recording began."""
    index: int
    sender: Role
    raw: bytes
    value: Any
    """The decoded JSON; `UNSET` if the bytes are not JSON."""
    link: str = ""
    """Which connection, if a scenario has several."""

    def get(self, *path: str) -> Any:
        """Return the value at a path of keys; `UNSET` if there is none."""
        value = self.value
        for key in path:
            if not isinstance(value, dict) or key not in value:
                return UNSET
            value = value[key]
        return value

    @property
    def id(self) -> Any:
        return self.get("id")

    @cached_property
    def method(self) -> str | None:
        method = self.get("method")
        return method if isinstance(method, str) else None

    @cached_property
    def is_request(self) -> bool:
        return self.method is not None and self.id is not UNSET

    @property
    def is_notification(self) -> bool:
        return self.method is not None and self.id is UNSET

    @cached_property
    def is_response(self) -> bool:
        return self.method is None and (self.result is not UNSET or self.error is not UNSET)

    @property
    def params(self) -> Any:
        return self.get("params")

    @property
    def result(self) -> Any:
        return self.get("result")

    @property
    def error(self) -> Any:
        return self.get("error")

    @property
    def error_code(self) -> Any:
        """The code of a failed response; `None` for any other frame."""
        code = self.get("error", "code")
        return None if code is UNSET else code

    @property
    def session_id(self) -> Any:
        return self.get("params", "sessionId")

    @cached_property
    def update(self) -> dict[str, Any]:
        """The payload of a `session/update`; empty for any other frame."""
        update = self.get("params", "update") if self.method == "session/update" else UNSET
        return update if isinstance(update, dict) else {}

    @cached_property
    def update_kind(self) -> str | None:
        kind = self.update.get("sessionUpdate")
        return kind if isinstance(kind, str) else None


class Recording:
    """Collects the frames of one connection. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float], *, link: str = "") -> None:
        self._clock = clock
        self._began = clock()
        self._link = link
        self.frames: list[RecordedFrame] = []

    def add(self, sender: Role, raw: bytes, *, at: float | None = None) -> RecordedFrame:
        """Add a frame that was seen now, or at the given second of the recording."""
        if at is None:
            at = self._clock() - self._began
        frame = RecordedFrame(at, len(self.frames), sender, raw, parse(raw), self._link)
        self.frames.append(frame)
        return frame

    def of(self, sender: Role) -> Iterator[RecordedFrame]:
        return (frame for frame in self.frames if frame.sender is sender)

    def response_to(self, request: RecordedFrame) -> RecordedFrame | None:
        """Return the first response to a request; ids are compared with their JSON type (RPC-05)."""
        for frame in self.frames[request.index + 1 :]:
            if frame.sender is not request.sender and frame.is_response and same_id(frame.id, request.id):
                return frame
        return None


def parse(raw: bytes) -> Any:
    """Decode JSON; `UNSET` if it is none. A lone surrogate, which msgspec refuses, is JSON all the same."""
    try:
        return _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        return UNSET


def same_id(one: Any, other: Any) -> bool:
    """Whether two ids are the same JSON value: `1` is neither `"1"` nor `true`."""
    return type(one) is type(other) and bool(one == other)
