"""Reading the params of our own methods, and of `_meta["antiphon"]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antiphon.errors import InvalidParams

OPERATION_ID_LIMIT = 256
"""Characters: an operation id is kept as long as it is remembered."""


def operation_id_of(given: Mapping[str, Any]) -> str | None:
    """Return the operation id, under which the same request again gives the first outcome again."""
    found = given.get("operationId")
    if found is None:
        return None
    if not isinstance(found, str) or not 0 < len(found) <= OPERATION_ID_LIMIT:
        raise InvalidParams(f"`operationId` is a string of 1 to {OPERATION_ID_LIMIT} characters")
    return found


def read_text(params: Any, key: str) -> str:
    value = params.get(key) if isinstance(params, dict) else None
    if not isinstance(value, str):
        raise InvalidParams(f"`{key}` must be a string")
    return value
