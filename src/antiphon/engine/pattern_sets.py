"""Sets of characters, as the patterns of form fields name them (ECMA-262, without flags but `u`)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

from msgspec import Struct


class Unsupported(Exception):
    """A pattern that is malformed, or that cannot be matched in bounded time."""


class CharSet(Struct, frozen=True):
    """Ranges of characters and tests of them, perhaps turned around."""

    ranges: tuple[tuple[str, str], ...] = ()
    tests: tuple[Callable[[str], bool], ...] = ()
    inverted: bool = False
    nested: int = 0
    """Comparisons that the tests may take beyond one each."""

    @property
    def size(self) -> int:
        """Comparisons that one question may take."""
        return len(self.ranges) + len(self.tests) + self.nested

    def has(self, char: str) -> bool:
        found = any(low <= char <= high for low, high in self.ranges) or any(
            test(char) for test in self.tests
        )
        return found is not self.inverted

    def __or__(self, other: CharSet) -> CharSet:
        first, second = self._upright(), other._upright()
        nested = first.nested + second.nested
        return CharSet(first.ranges + second.ranges, first.tests + second.tests, nested=nested)

    def __invert__(self) -> CharSet:
        return CharSet(self.ranges, self.tests, not self.inverted, self.nested)

    def _upright(self) -> CharSet:
        return CharSet(tests=(self.has,), nested=self.size) if self.inverted else self

    def up_to(self, other: CharSet) -> CharSet:
        """The range from one character to another. Raises `Unsupported`."""
        low, high = _only(self), _only(other)
        if low > high:
            raise Unsupported("a range that ends before it begins")
        return CharSet(((low, high),))


def _only(set: CharSet) -> str:
    if set.inverted or set.tests or len(set.ranges) != 1 or set.ranges[0][0] != set.ranges[0][1]:
        raise Unsupported("a range between sets")
    return set.ranges[0][0]


def one_of(*chars: str) -> CharSet:
    return CharSet(tuple((char, char) for char in chars))


DIGITS = CharSet((("0", "9"),))
WORD = CharSet((("0", "9"), ("A", "Z"), ("a", "z"), ("_", "_")))
_LINE_ENDS = one_of("\n", "\r", "\u2028", "\u2029")
_SPACE = one_of("\t", "\v", "\f", " ", "\u00a0", "\ufeff") | _LINE_ENDS | CharSet(tests=(
    lambda char: unicodedata.category(char) == "Zs",
))  # fmt: skip
DOT = ~_LINE_ENDS

_SETS = {"d": DIGITS, "D": ~DIGITS, "w": WORD, "W": ~WORD, "s": _SPACE, "S": ~_SPACE}
_CHARS = {"t": "\t", "n": "\n", "r": "\r", "v": "\v", "f": "\f", "0": "\0"}


def escaped_set(char: str) -> CharSet:
    """What a backslash before a character stands for."""
    if char in _SETS:
        return _SETS[char]
    if char in _CHARS:
        return one_of(_CHARS[char])
    if char and char.isascii() and not char.isalnum():
        return one_of(char)  # more than `u` allows, and the same without it
    raise Unsupported(f"the escape \\{char}")


def category(name: str) -> CharSet:
    """The characters of a Unicode general category, by its short name: `L`, `Lu`, `Nd`, …"""
    if not 1 <= len(name) <= 2 or name[0] not in "LMNPSZC" or not name.isascii():
        raise Unsupported(f"the property {name!r} of characters")

    def test(char: str, *, name: Any = name) -> bool:
        return unicodedata.category(char).startswith(name)

    return CharSet(tests=(test,))
