"""Oversized: what the first and the last bytes say about a frame that is too large or too deep to be read.

A reader throws a frame that is too large away as it arrives. It keeps the head and the tail, so that the
request can be answered under its own id, or the call can fail that the frame answers.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from antiphon.errors import TooLarge
from antiphon.jsonrpc.frames import RequestId, encode_failure, without_lone_surrogates

HEAD = 4096
"""Bytes that are kept of the beginning of an oversized frame."""
TAIL = 1024
"""Bytes that are kept of its end."""

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
    """What the ends of a frame say about it."""

    id: RequestId | UnsetType
    """The id that the frame carries, where that was found."""
    answers: bool
    """Whether it is a response; otherwise a request, a notification, or it is not known what."""
    method: str | None
    session: str | None
    """The session that its params name, where that stands at their beginning."""


class Overlong(Struct, frozen=True):
    """A frame that was longer than the bound allows, in the place where it stood."""

    size: int
    bound: int
    id: RequestId | UnsetType = UNSET
    """The id that the frame carries, where that was found."""
    answers: bool = False
    """Whether it is a response; otherwise a request, or it is not known what."""


def overlong(head: bytes, tail: bytes, *, size: int, bound: int) -> Overlong:
    """Describe an oversized frame of `size` bytes by its first and last bytes."""
    partial = read_partial(head, tail)
    return Overlong(size, bound, partial.id, partial.answers)


def read_partial(head: bytes, tail: bytes) -> PartialFrame:
    """Read what can be read of a frame from its first and last bytes, without parsing the rest."""
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


def failure_of(frame: Overlong) -> bytes:
    """The error that stands for an oversized frame: it answers the request, or takes the place of the
    response."""
    error = TooLarge(frame.size, frame.bound).to_wire()
    return encode_failure(None if frame.id is UNSET else frame.id, error)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")  # it may be cut within a character


def _members_at_start(text: str) -> dict[str, Any]:
    """The members of an object whose beginning this is. One whose value is not a scalar, or is cut, counts as
    `None`."""
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
    """Where the object or array that begins at `at` ends; `None` where the text is cut before."""
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
                return None  # a string that is cut: what follows is its content
    return None


def _members_at_end(text: str) -> dict[str, Any]:
    """The last scalar members of an object whose end this is. No string can hold what matches here: a quote
    within a string has a backslash before it."""
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
