"""Asking the user: the channel that a question goes through (ELIC)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from antiphon.engine.questions import Elicited
from antiphon.schema import v2

COMPLETE = "elicitation/complete"
CANCEL = v2.ElicitationCancelAction()
Notify = Callable[[str, Any], Awaitable[None]]
"""Sends a notification to one client."""


class Channel(Protocol):
    @property
    def scope(self) -> Mapping[str, Any]:
        """The fields of a request that say what it belongs to."""

    def takes(self, mode: str) -> bool:
        """Return whether a question of this mode can be put."""

    async def put(self, request: Elicited) -> tuple[v2.CreateElicitationResponse, Notify | None]:
        """Return the answer as it counts, and what notifies the client that gave it."""
