"""Form fields as text: which values a field takes, and typed text read as a value."""

from __future__ import annotations

from typing import Any

from antiphon.engine.forms.form import ChoicesField, Field, IntegerField, NumberField, TextField
from antiphon.text_safety import safe_line

LONGEST_NUMBER = 30
"""Digits of an integer that are read; longer text is left to the field, which rejects it."""


def field_limits(field: Field) -> str:
    """Describe the values that a field takes. Return "" for any value."""
    parts: list[str] = []
    match field:
        case TextField():
            parts.append(safe_line(str(field.format or ""), limit=40))
            parts.append(_range(field.min_length, field.max_length, "characters"))
        case IntegerField() | NumberField():
            parts.append(_range(field.minimum, field.maximum) or "a number")
        case ChoicesField():
            parts.append(_range(field.min_items, field.max_items, "of them"))
    return ", ".join(filter(None, parts))


def read_number(field: Field, typed: str) -> Any:
    """Return the number that was typed into a number field; otherwise the text, for the field to check."""
    if isinstance(field, IntegerField):
        is_integer = typed.removeprefix("-").isdecimal() and len(typed) <= LONGEST_NUMBER
        return int(typed) if is_integer else typed
    if isinstance(field, NumberField):
        try:
            return float(typed)
        except ValueError:
            return typed
    return typed


def _range(least: float | None, most: float | None, of: str = "") -> str:
    if least is not None and most is not None:
        return f"{least:g} to {most:g} {of}".strip()
    if least is not None:
        return f"{least:g} or more {of}".strip()
    return "" if most is None else f"up to {most:g} {of}".strip()
