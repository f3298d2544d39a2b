"""Operations that leave nothing behind to know them by: a cancel, a change of the queue. Asked for again
under the same operation id they are not done again, however much later that is.

A prompt keeps its own id, an answer that of its question; a session is made under one.
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
        """The fact to append with what an operation did."""
        return () if operation_id is None else (OperationDone(operation_id=operation_id),)

    def apply(self, body: OperationDone) -> None:
        self._done.setdefault(body.operation_id)
        if len(self._done) > REMEMBERED:
            del self._done[next(iter(self._done))]

    def part(self) -> list[str]:
        return list(self._done)

    def restore(self, part: Sequence[str]) -> None:
        self._done = dict.fromkeys(part)
