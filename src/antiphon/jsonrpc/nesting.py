"""Nesting: how deep the arrays and objects of a JSON text may stand in one another, and the check of it.

Every parser and every walk over a value needs stack for each level. The bound lies far below what they have
(about 1000 levels), so that what is read can also be folded, translated, encoded and shown.
"""

from __future__ import annotations

from array import array
from itertools import accumulate

from antiphon.errors import TooDeep

MAX_DEPTH = 128
"""Levels of arrays and objects that a frame may have. The frame itself is the first one."""

EVENT_DEPTH = MAX_DEPTH + 32
"""Levels that an event of a journal may have: what a frame holds fits, with what the bridge adds."""

FLAT = 2 * MAX_DEPTH
"""A frame of at most so many bytes cannot be nested too deep: a level takes two."""
_SHORT = 1024
"""Up to so many bytes it is cheaper to count all brackets than to look for each."""
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""Turns an opening bracket into 1 and a closing one into -1, as signed bytes."""
_OTHERS = bytes(byte for byte in range(256) if byte not in b'[]{}"')


def check_depth(data: bytes, *, bound: int = MAX_DEPTH) -> None:
    """Raise `TooDeep` if a JSON text is nested deeper than `bound`."""
    if is_too_deep(data, bound=bound):
        raise TooDeep(bound)


def is_too_deep(data: bytes, *, bound: int = MAX_DEPTH) -> bool:
    """Whether a JSON text is nested deeper than `bound`. Brackets inside of strings do not count.

    A text that is no JSON may get either answer: a parser refuses it.
    """
    # A level takes two bytes. Most frames are short, or have few brackets.
    if len(data) <= 2 * bound or not _has_more_openings(data, bound):
        return False
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # From here on each quote begins or ends a string. Two that stand together hold nothing that counts.
    steps = data.translate(_STEPS, _OTHERS).replace(b'""', b"")
    if b'"' in steps:
        steps = b"".join(steps.split(b'"')[::2])
    return len(steps) > bound and max(accumulate(array("b", steps))) > bound


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
