"""Operation ids on the wire: the same one again gives the first outcome again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antiphon.errors import InvalidParams

LONGEST = 256
"""Characters: it is kept as long as it is remembered."""


def operation_id_of(given: Mapping[str, Any]) -> str | None:
    found = given.get("operationId")
    if found is None:
        return None
    if not isinstance(found, str) or not 0 < len(found) <= LONGEST:
        raise InvalidParams(f"`operationId` is a string of 1 to {LONGEST} characters")
    return found
