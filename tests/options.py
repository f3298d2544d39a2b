"""Options written flat in a test, sorted into the groups that `connect` and `Hub` take."""

from __future__ import annotations

from typing import Any

from antiphon.client import ClientOptions, ProcessOptions
from antiphon.hub import Access, HubOptions, QuestionOptions


def connect_options(**flat: Any) -> dict[str, Any]:
    """Return the arguments for `connect`."""
    return _grouped(flat, process=ProcessOptions, options=ClientOptions)


def client_options(**flat: Any) -> dict[str, Any]:
    """Return the arguments for `Client`."""
    return _grouped(flat, options=ClientOptions)


def hub_options(**flat: Any) -> dict[str, Any]:
    """Return the arguments for `Hub`."""
    return _grouped(flat, options=HubOptions, questions=QuestionOptions, access=Access)


def _grouped(flat: dict[str, Any], **groups: Any) -> dict[str, Any]:
    for name, kind in groups.items():
        given = {field: flat.pop(field) for field in kind.__struct_fields__ if field in flat}
        if given:
            flat[name] = kind(**given)
    return flat
