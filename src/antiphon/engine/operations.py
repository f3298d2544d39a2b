"""Operations: the ids of cancels and queue changes that were done, so that a repeated one is not done again.

Prompts and questions keep the ids of their own operations.
"""

from __future__ import annotations

from collections.abc import Sequence

from antiphon.engine.events import OperationDone

REMEMBERED = 256
"""How many of these a session remembers."""


class Operations:
    """The ids of the last ones that were done, the oldest first."""

    __slots__ = ("_done",)

    def __init__(self) -> None:
        self._done: dict[str, None] = {}

    def __contains__(self, operation_id: object) -> bool:
        return operation_id in self._done

    def done(self, operation_id: str | None) -> tuple[OperationDone, ...]:
        """Return the event that records an operation."""
        return () if operation_id is None else (OperationDone(operation_id=operation_id),)

    def apply(self, body: OperationDone) -> None:
        self._done.setdefault(body.operation_id)
        if len(self._done) > REMEMBERED:
            del self._done[next(iter(self._done))]

    def part(self) -> list[str]:
        return list(self._done)

    def restore(self, part: Sequence[str]) -> None:
        self._done = dict.fromkeys(part)
