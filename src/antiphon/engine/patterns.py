"""Patterns of form fields: ECMA-262 regular expressions, matched in bounded time (ELIC-18).

All paths through a pattern are followed at once, so a match visits each step at most once per character,
whatever the pattern and the text. A pattern that cannot be matched like this (a lookaround, a back
reference), or that ECMA-262 engines read differently, is refused as `Unsupported`.
"""

from __future__ import annotations

from functools import lru_cache

from antiphon.engine.pattern_parser import WORD, At, CharSet, Found, Parser, Split, Step, Take, Unsupported

LONGEST = 1000
"""How many characters a pattern may have."""
VISITS = 200_000
"""How much a match may cost: steps of the pattern and parts of its sets, times characters of the text."""


CHEAP = 8
"""Comparisons of a character that take as long as one visit of a step."""


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


__all__ = ["Pattern", "TooCostly", "Unsupported", "pattern"]
