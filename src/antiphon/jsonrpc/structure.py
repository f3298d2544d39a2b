"""Bounds on the structure of a JSON text: the depth of its nesting, and the number of its values.

Every parser and every walk over a value needs stack for each level. The bound lies far below what they have
(about 1000 levels), so that what is read can also be folded, translated, encoded and shown.

A value takes up to a microsecond to be made and freed. A frame of the largest size could have 30 million,
and nobody else would be served meanwhile. Text and binary data are single values, however large.
"""

from __future__ import annotations

from array import array
from itertools import accumulate

from antiphon.errors import TooDeep, TooManyValues

MAX_DEPTH = 128
"""Levels of arrays and objects that a frame may have. The frame itself is the first one."""

EVENT_DEPTH = MAX_DEPTH + 32
"""Levels that an event of a journal may have: what a frame holds fits, with what the bridge adds."""

MAX_VALUES = 500_000
"""Values that a frame may have: strings, numbers, arrays, objects."""

FLAT = 2 * MAX_DEPTH
"""A frame of at most so many bytes cannot be nested too deep: a level takes two."""
_SHORT = 1024
"""Up to so many bytes it is cheaper to count all brackets than to look for each."""
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""Turns an opening bracket into 1 and a closing one into -1, as signed bytes."""
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_NO_STRUCTURE = bytes(byte for byte in range(256) if byte not in b'[{,"')


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
    """Return whether a JSON text has more values than `bound`, or nearly so: each comma and each opening
    bracket counts as one. A text that is no JSON may get either answer."""
    if len(data) <= bound or sum(map(data.count, (b",", b"[", b"{"))) <= bound:
        return False
    data = _without_escapes(data)
    if data.count(b'"') > 4 * (bound + 1):  # strings alone, as keys and values
        return True
    return len(_outside_strings(data.translate(None, _NO_STRUCTURE))) > bound


def is_too_deep(data: bytes, *, bound: int = MAX_DEPTH) -> bool:
    """Return whether a JSON text is nested deeper than `bound`. Brackets inside of strings do not count.

    A text that is no JSON may get either answer: a parser refuses it.
    """
    # A level takes two bytes. Most frames are short, or have few brackets.
    if len(data) <= 2 * bound or not _has_more_openings(data, bound):
        return False
    steps = _outside_strings(_without_escapes(data).translate(_STEPS, _NO_BRACKETS))
    return len(steps) > bound and max(accumulate(array("b", steps))) > bound


def _without_escapes(data: bytes) -> bytes:
    """The same JSON text with strings in which each quote begins or ends one."""
    return data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data


def _outside_strings(marks: bytes) -> bytes:
    """Of quotes and other marks, those that stand in no string."""
    marks = marks.replace(b'""', b"")  # two quotes that stand together hold nothing that counts
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
