"""What may not be, in words."""

from __future__ import annotations


class Violation(Exception):
    """A sentence that says what was found, and what should have been."""


class Silence(Violation):
    """Something has to come, and does not."""


def check(holds: object, what: str) -> None:
    if not holds:
        raise Violation(what)
