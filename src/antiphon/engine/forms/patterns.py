"""Patterns of form fields: ECMA-262 regular expressions, matched in bounded time (ELIC-18).

All paths through a pattern are followed at once, so a match visits each step at most once per character,
whatever the pattern and the text. A pattern that cannot be matched like this (a lookaround, a back
reference), or that ECMA-262 engines read differently, is refused as `Unsupported`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct

LONGEST = 1000
"""How many characters a pattern may have."""
VISITS = 200_000
"""How much a match may cost: steps of the pattern and parts of its sets, times characters of the text."""
CHEAP = 8
"""Comparisons of a character that take as long as one visit of a step."""
STEPS = 2000
"""How many steps a pattern may have once its counted parts are written out."""
DEEPEST = 50


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
        """Return the range from one character to another. Raises `Unsupported`."""
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
    """Return the characters that an escape means."""
    if char in _SETS:
        return _SETS[char]
    if char in _CHARS:
        return one_of(_CHARS[char])
    if char and char.isascii() and not char.isalnum():
        return one_of(char)  # more than `u` allows, and the same without it
    raise Unsupported(f"the escape \\{char}")


def category(name: str) -> CharSet:
    """Return the characters of a Unicode general category, by its short name: `L`, `Lu`, `Nd`, …"""
    if not 1 <= len(name) <= 2 or name[0] not in "LMNPSZC" or not name.isascii():
        raise Unsupported(f"the property {name!r} of characters")

    def test(char: str, *, name: Any = name) -> bool:
        return unicodedata.category(char).startswith(name)

    return CharSet(tests=(test,))


class At(Enum):
    START = "^"
    END = "$"
    EDGE = r"\b"
    NO_EDGE = r"\B"


class Take(NamedTuple):
    """One character of a set, then the next step."""

    allowed: CharSet


class Split(NamedTuple):
    """Continue at two steps."""

    one: int
    other: int


class Found(NamedTuple):
    pass


Step = Take | Split | At | Found


Write = Callable[[list[Step]], None]
"""Appends the steps of a part of a pattern."""


def _check_size(steps: list[Step]) -> None:
    if len(steps) > STEPS:
        raise Unsupported("the pattern is too large")


def _one(step: Step) -> Write:
    def write(steps: list[Step]) -> None:
        _check_size(steps)
        steps.append(step)

    return write


def _in_order(parts: list[Write]) -> Write:
    def write(steps: list[Step]) -> None:
        for part in parts:
            part(steps)

    return write


def _either(parts: list[Write]) -> Write:
    if len(parts) == 1:
        return parts[0]

    def write(steps: list[Step]) -> None:
        ends = []
        for part in parts[:-1]:
            _check_size(steps)
            split = len(steps)
            steps.append(Found())
            part(steps)
            ends.append(len(steps))
            steps.append(Found())
            steps[split] = Split(split + 1, len(steps))
        parts[-1](steps)
        for end in ends:
            steps[end] = Split(len(steps), len(steps))

    return write


def _repeat(part: Write, least: int, most: int | None) -> Write:
    def write(steps: list[Step]) -> None:
        before = len(steps)
        for _ in range(least):
            _check_size(steps)
            part(steps)
            if len(steps) == before:
                return  # nothing, however often
        if most is None:
            _check_size(steps)
            split = len(steps)
            steps.append(Found())
            part(steps)
            steps.append(Split(split, split))
            steps[split] = Split(split + 1, len(steps))
            return
        splits = []
        for _ in range(most - least):
            _check_size(steps)
            splits.append(len(steps))
            steps.append(Found())
            part(steps)
        # Each may be the last.
        for split in splits:
            steps[split] = Split(split + 1, len(steps))

    return write


class Parser:
    """Reads a pattern, as ECMA-262 has it with the `u` flag and without any other."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._depth = 0

    def read(self) -> Write:
        whole = self._alternatives()
        if self._at < len(self._source):
            raise Unsupported("a group is closed that was not opened")
        return whole

    @property
    def _next(self) -> str:
        return self._source[self._at : self._at + 1]

    def _skip(self, text: str) -> bool:
        if self._source.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _alternatives(self) -> Write:
        self._depth += 1
        if self._depth > DEEPEST:
            raise Unsupported("the pattern is too deep")
        parts = [self._terms()]
        while self._skip("|"):
            parts.append(self._terms())
        self._depth -= 1
        return _either(parts)

    def _terms(self) -> Write:
        parts: list[Write] = []
        while self._next not in ("", "|", ")"):
            where = next((at for at in At if self._skip(at.value)), None)
            if where is not None:
                parts.append(_one(where))
            else:
                parts.append(self._quantified(self._atom()))
        return _in_order(parts)

    def _atom(self) -> Write:
        if self._skip("("):
            return self._group()
        if self._skip("["):
            return _one(Take(self._class()))
        if self._skip("\\"):
            return _one(Take(self._escape()))
        char = self._next
        if char in "*+?{":
            raise Unsupported(f"nothing stands before {char!r}")
        self._at += 1
        return _one(Take(DOT if char == "." else one_of(char)))

    def _group(self) -> Write:
        if self._skip("?"):
            if self._next == "<" and self._source[self._at + 1 : self._at + 2] not in ("=", "!"):
                self._name()
            elif not self._skip(":"):
                raise Unsupported("a lookaround or a flag inside a pattern")
        inside = self._alternatives()
        if not self._skip(")"):
            raise Unsupported("a group is not closed")
        return inside

    def _name(self) -> None:
        end = self._source.find(">", self._at)
        if not self._source[self._at + 1 : end].isidentifier():
            raise Unsupported("a group without a name")
        self._at = end + 1

    def _quantified(self, part: Write) -> Write:
        counts = self._counts()
        if counts is None:
            return part
        self._skip("?")  # a lazy one finds the same texts
        if self._next in ("*", "+", "?") or (self._next == "{" and self._counts() is not None):
            raise Unsupported("a quantifier after a quantifier")
        least, most = counts
        if most is not None and most < least:
            raise Unsupported("a count that ends before it begins")
        return _repeat(part, least, most)

    def _counts(self) -> tuple[int, int | None] | None:
        for mark, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._skip(mark):
                return counts
        if not self._skip("{"):
            return None
        end = self._source.find("}", self._at)
        first, comma, last = self._source[self._at : end].partition(",")
        if end < 0 or not _is_count(first) or (last and not _is_count(last)):
            raise Unsupported("a brace that counts nothing")
        self._at = end + 1
        if not comma:
            return int(first), int(first)
        return int(first), int(last) if last else None

    # Characters

    def _class(self) -> CharSet:
        inverted = self._skip("^")
        made = CharSet()
        while not self._skip("]"):
            low = self._member()
            if self._next == "-" and self._source[self._at + 1 : self._at + 2] not in ("", "]"):
                self._at += 1
                made = made | low.up_to(self._member())
            else:
                made = made | low
        return ~made if inverted else made

    def _member(self) -> CharSet:
        if self._skip("\\"):
            if self._skip("b"):
                return one_of("\b")
            return one_of("-") if self._skip("-") else self._escape()
        if not self._next:
            raise Unsupported("a set is not closed")
        self._at += 1
        return one_of(self._source[self._at - 1])

    def _escape(self) -> CharSet:
        char = self._next
        self._at += 1
        if char in ("p", "P") and char:
            end = self._source.find("}", self._at)
            if self._next != "{" or end < 0:
                raise Unsupported(f"a property of characters that is not named after \\{char}")
            name = self._source[self._at + 1 : end]
            self._at = end + 1
            return category(name) if char == "p" else ~category(name)
        if char == "x":
            return one_of(self._code(2))
        if char == "u":
            return one_of(self._unicode())
        if char == "c" and self._next.isascii() and self._next.isalpha():
            self._at += 1
            return one_of(chr(ord(self._source[self._at - 1]) % 32))
        if char == "0" and DIGITS.has(self._next or "x"):
            raise Unsupported("an octal escape")
        return escaped_set(char)

    def _unicode(self) -> str:
        if not self._skip("{"):
            return self._code(4)
        end = self._source.find("}", self._at)
        digits = self._source[self._at : end] if end >= 0 else ""
        self._at = end + 1
        return _character(digits)

    def _code(self, length: int) -> str:
        digits = self._source[self._at : self._at + length]
        self._at += length
        if len(digits) < length:
            raise Unsupported("an escape that is cut short")
        return _character(digits)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6


def _character(digits: str) -> str:
    if not digits or len(digits) > 6 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
        raise Unsupported("an escape that names no character")
    code = int(digits, 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise Unsupported("an escape that names no character")
    return chr(code)


class TooCostly(Exception):
    """A text that is too long to be matched with a pattern in the time there is."""


class Pattern:
    """A pattern that is ready to be matched. Raises `Unsupported`."""

    def __init__(self, source: str) -> None:
        if len(source) > LONGEST:
            raise Unsupported("the pattern is too long")
        self.source = source
        self._steps: list[Step] = []
        Parser(source).read()(self._steps)
        self._steps.append(Found())
        sets = {id(step.allowed): step.allowed for step in self._steps if isinstance(step, Take)}
        self._cost = len(self._steps) + sum(allowed.size for allowed in sets.values()) // CHEAP

    def found_in(self, text: str) -> bool:
        """Whether the text matches somewhere; `^` and `$` tie it down. Raises `TooCostly`."""
        if self._cost * (len(text) + 1) > VISITS:
            raise TooCostly
        current: list[int] = []
        for at in range(len(text) + 1):
            seen: set[int] = set()
            waiting: list[tuple[int, CharSet]] = []
            for start in (*current, 0):
                if self._follow(start, text, at, seen, waiting):
                    return True
            if at == len(text):
                break
            char = text[at]
            # A set that occurs often, as in a counted part, is tested once.
            known = {id(allowed): allowed for _, allowed in waiting}
            taken = {key for key, allowed in known.items() if allowed.has(char)}
            current = [step + 1 for step, allowed in waiting if id(allowed) in taken]
        return False

    def _follow(
        self, start: int, text: str, at: int, seen: set[int], waiting: list[tuple[int, CharSet]]
    ) -> bool:
        """Collect every step that is reached without taking a character; return whether the end is."""
        todo = [start]
        while todo:
            index = todo.pop()
            if index in seen:
                continue
            seen.add(index)
            step = self._steps[index]
            if isinstance(step, Take):
                waiting.append((index, step.allowed))
            elif isinstance(step, Split):
                todo += step
            elif isinstance(step, Found):
                return True
            elif _holds(step, text, at):
                todo.append(index + 1)
        return False


@lru_cache(maxsize=256)
def pattern(source: str) -> Pattern:
    """Return the pattern of a source; the last ones are cached. Raises `Unsupported`."""
    return Pattern(source)


def _holds(where: At, text: str, at: int) -> bool:
    if where is At.START:
        return at == 0
    if where is At.END:
        return at == len(text)
    edge = (at > 0 and WORD.has(text[at - 1])) is not (at < len(text) and WORD.has(text[at]))
    return edge is (where is At.EDGE)
