"""HubAbout: what a hub on a shared store tells the others of itself, in its lease."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from msgspec import Struct, ValidationError, convert


class HubAbout(Struct, frozen=True, kw_only=True):
    """A hub, as its lease describes it."""

    label: str = ""
    address: str = ""
    """The WebSocket address of the hub."""
    version: str = ""
    sessions: int = 0
    """How many sessions it owns and has open."""
    clients: int = 0
    started_at: float = 0.0
    """Seconds since 1970."""
    name: str = ""
    """Names the hub across restarts, and no other one: a hash of its host and its data folder's mark."""

    @classmethod
    def read(cls, about: Mapping[str, Any]) -> Self:
        """Read what a lease says. A hub of another version may say something else: then nothing is known."""
        try:
            return convert(about, cls)
        except ValidationError:
            return cls()
