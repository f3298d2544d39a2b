"""OversizedFrame: describes a frame that is too large or too deep to be decoded, by its first and last bytes.

A reader discards a frame over its bound while it arrives. It keeps the head and the tail, so that the peer
gets an error response with the id of its request, or the call fails that the frame responds to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from antiphon.errors import TooLarge
from antiphon.jsonrpc.frames import RequestId, encode_failure, without_lone_surrogates

HEAD = 4096
"""Bytes of the beginning of an oversized frame to keep."""
TAIL = 1024
"""Bytes of its end to keep."""

_STRING = r'"(?:[^"\\]|\\.)*"'
_SCALAR = rf"(?:{_STRING}|-?[0-9][0-9.eE+-]*|true|false|null)"
_KEY = re.compile(rf"\s*({_STRING})\s*:\s*")
_WHOLE = re.compile(rf"({_SCALAR})\s*[,}}]")
_NESTED = re.compile(rf'{_STRING}|[\[\]{{}}]|"')
_NEXT = re.compile(r"\s*,")
_LAST = re.compile(rf',\s*("[^"\\]*")\s*:\s*({_SCALAR})\s*\Z')
_END = re.compile(r"\}\s*\Z")
_PARAMS = re.compile(r'"params"\s*:\s*(?=\{)')


class PartialFrame(NamedTuple):
    """What the first and last bytes of a frame say about it."""

    id: RequestId | UnsetType
    """The id of the frame, if it was found."""
    answers: bool
    """Whether it is a response; otherwise a request, a notification or unknown."""
    method: str | None
    session: str | None
    """The session that its params name, if that is at their beginning."""


class OversizedFrame(Struct, frozen=True):
    """A frame that was over the bound. Transports deliver it in place of the frame."""

    size: int
    bound: int
    id: RequestId | UnsetType = UNSET
    """The id of the frame, if it was found."""
    answers: bool = False
    """Whether it is a response; otherwise a request or unknown."""


def describe_oversized(head: bytes, tail: bytes, *, size: int, bound: int) -> OversizedFrame:
    """Describe a frame of `size` bytes by its first and last bytes."""
    partial = read_partial(head, tail)
    return OversizedFrame(size, bound, partial.id, partial.answers)


class DiscardedFrame:
    """The size and the ends of a frame over the bound, while it arrives."""

    def __init__(self, begun: Iterable[bytes] = ()) -> None:
        self.size = 0
        self._head = self._tail = b""
        for part in begun:
            self.add(part)

    def add(self, part: bytes) -> None:
        self.size += len(part)
        if len(self._head) < HEAD:
            self._head += part[: HEAD - len(self._head)]
        self._tail = (self._tail + part[-TAIL:])[-TAIL:]

    def describe(self, bound: int) -> OversizedFrame:
        return describe_oversized(self._head, self._tail, size=self.size, bound=bound)


def within_bound(frame: bytes, bound: int) -> bytes | OversizedFrame:
    """Return the frame, or its description if it is over the bound."""
    if len(frame) <= bound:
        return frame
    return describe_oversized(frame[:HEAD], frame[-TAIL:], size=len(frame), bound=bound)


def read_partial(head: bytes, tail: bytes) -> PartialFrame:
    """Read members of a frame from its first and last bytes, without parsing the rest."""
    beginning = _text(head)
    members = {**_members_at_end(_text(tail)), **_members_at_start(beginning)}
    id, method = members.get("id", UNSET), members.get("method")
    if isinstance(id, bool) or not isinstance(id, str | int | float):
        id = UNSET
    answers = "method" not in members and not members.keys().isdisjoint(("result", "error"))
    params = _PARAMS.search(beginning)
    session = None if params is None else _members_at_start(beginning[params.end() :]).get("sessionId")
    return PartialFrame(
        id,
        answers,
        method if isinstance(method, str) else None,
        session if isinstance(session, str) else None,
    )


def failure_of(frame: OversizedFrame) -> bytes:
    """Encode the error for an oversized frame: the response to a request, or in place of a response."""
    error = TooLarge(frame.size, frame.bound).to_wire()
    return encode_failure(None if frame.id is UNSET else frame.id, error)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")  # a character may be cut


def _members_at_start(text: str) -> dict[str, Any]:
    """Return the members of an object, by its beginning. A value that is no scalar, or is cut, is `None`."""
    members: dict[str, Any] = {}
    at = len(text) - len(text.lstrip())
    if text[at : at + 1] != "{":
        return members
    at += 1
    while (key := _KEY.match(text, at)) is not None:
        name, at = _value(key[1]), key.end()
        scalar = _WHOLE.match(text, at)
        members[name] = None if scalar is None else _value(scalar[1])
        end = _end_of_nested(text, at) if scalar is None else scalar.end(1)
        following = None if end is None else _NEXT.match(text, end)
        if following is None:
            break
        at = following.end()
    return members


def _end_of_nested(text: str, at: int) -> int | None:
    """Return the end of the object or array that begins at `at`; `None` if the text is cut before it."""
    depth = 0
    if text[at : at + 1] not in ("{", "["):
        return None
    for token in _NESTED.finditer(text, at):
        match token[0]:
            case "{" | "[":
                depth += 1
            case "}" | "]":
                depth -= 1
                if depth == 0:
                    return token.end()
            case '"':
                return None  # a string that is cut: the rest is its content
    return None


def _members_at_end(text: str) -> dict[str, Any]:
    """Return the last scalar members of an object, by its end. No string can contain a match, because a quote
    inside a string has a backslash before it."""
    members: dict[str, Any] = {}
    end = _END.search(text)
    text = "" if end is None else text[: end.start()]
    while (last := _LAST.search(text)) is not None:
        members.setdefault(_value(last[1]), _value(last[2]))
        text = text[: last.start()]
    return members


def _value(text: str) -> Any:
    try:
        value = json.loads(text, strict=False)
    except ValueError:
        return None
    return without_lone_surrogates(value) if isinstance(value, str) else value
