"""Bounds on the structure of a JSON text: the depth of its nesting, and the number of its values.

Every parser and every walk over a value needs stack for each level. The bound is far below their limit of
about 1000 levels, so that a decoded value can also be folded, translated, encoded and shown.

A value takes up to a microsecond to be made and freed. A frame of the largest size could have 30 million
values, and would block the other peers meanwhile. Text and binary data are single values of any size.
"""

from __future__ import annotations

from array import array
from itertools import accumulate

from antiphon.errors import TooDeep, TooManyValues

MAX_DEPTH = 128
"""Levels of arrays and objects that a frame may have. The frame is the first one."""

EVENT_DEPTH = MAX_DEPTH + 32
"""Levels that a journal event may have: those of a frame, and those that the bridge adds."""

MAX_VALUES = 500_000
"""Values that a frame may have: strings, numbers, arrays, objects."""

FLAT = 2 * MAX_DEPTH
"""The largest size of a frame that cannot be too deep, because a level takes two bytes."""
_SHORT = 1024
"""The size up to which it is faster to count all brackets than to find each."""
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""Maps an opening bracket to 1 and a closing one to -1, as signed bytes."""
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_NO_STRUCTURE = bytes(byte for byte in range(256) if byte not in b'[{,"')
_NO_BEGINNINGS = _NO_STRUCTURE + b'"'


def check_structure(data: bytes) -> None:
    """Raise `TooDeep` or `TooManyValues` if a frame is over a bound."""
    if is_too_wide(data):
        raise TooManyValues(MAX_VALUES)
    if is_too_deep(data):
        raise TooDeep(MAX_DEPTH)


def is_too_complex(data: bytes) -> bool:
    """Return whether a frame is over one of the bounds."""
    return is_too_wide(data) or is_too_deep(data)


def is_too_wide(data: bytes, *, bound: int = MAX_VALUES) -> bool:
    """Return whether a JSON text has more values than about `bound`: each comma and opening bracket counts as
    one. For invalid JSON either result is possible."""
    # One pass over all bytes: `count` takes as long for each of the three.
    if len(data) <= bound or len(data.translate(None, _NO_BEGINNINGS)) <= bound:
        return False
    data = _without_escapes(data)
    if data.count(b'"') > 4 * (bound + 1):  # strings alone, as keys and values
        return True
    return len(_outside_strings(data.translate(None, _NO_STRUCTURE))) > bound


def is_too_deep(data: bytes, *, bound: int = MAX_DEPTH) -> bool:
    """Return whether a JSON text is nested deeper than `bound`. Brackets inside strings do not count.

    For invalid JSON either result is possible: a parser refuses it.
    """
    # A level takes two bytes. Most frames are short or have few brackets.
    if len(data) <= 2 * bound or not _has_more_openings(data, bound):
        return False
    steps = _outside_strings(_without_escapes(data).translate(_STEPS, _NO_BRACKETS))
    return len(steps) > bound and max(accumulate(array("b", steps))) > bound


def _without_escapes(data: bytes) -> bytes:
    """Return the text without escaped quotes, so that each quote begins or ends a string."""
    return data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data


def _outside_strings(marks: bytes) -> bytes:
    """Return the marks outside strings, from quotes and other marks."""
    marks = marks.replace(b'""', b"")  # adjacent quotes contain no mark
    return b"".join(marks.split(b'"')[::2]) if b'"' in marks else marks


def _has_more_openings(data: bytes, bound: int) -> bool:
    if len(data) <= _SHORT:
        return data.count(b"{") + data.count(b"[") > bound
    for bracket in (b"{", b"["):
        at = data.find(bracket)
        while at >= 0:
            bound -= 1
            if bound < 0:
                return True
            at = data.find(bracket, at + 1)
    return False
