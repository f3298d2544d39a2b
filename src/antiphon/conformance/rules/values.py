"""Reading JSON values that may have any shape."""

from __future__ import annotations

from typing import Any


def at(value: Any, *path: str) -> Any:
    """Return the value at a path of keys; `None` if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of an array; none if it is no array."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
