"""References: a message or tool call names the message that it answers or was triggered by."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from antiphon.schema.version import META_KEY


class _Named(Protocol):
    @property
    def message_id(self) -> str: ...


Referable: TypeAlias = str | _Named
"""The id of a message, or what has one: a prompt, a message, a `MessageWriter`."""


def reference(about: Referable) -> dict[str, Any]:
    """The `_meta` that names this message."""
    id = about if isinstance(about, str) else about.message_id
    return {META_KEY: {"about": {"messageId": str(id)}}}
