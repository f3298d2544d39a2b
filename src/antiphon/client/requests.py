"""Requests: the turns of a session by the ids of the `session/prompt` requests that they answer.

This is the id that `turn_complete` carries as `promptRequestId` (TC-07).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from antiphon.errors import LocalError

if TYPE_CHECKING:
    from antiphon.client.turn import ClientTurn, TurnEnd

REMEMBERED = 256
"""How many ended turns are remembered by their ends."""


class Requests:
    """The turns of this client's prompts. A turn is held only by whoever uses it; how it ended is kept here,
    for the last turns."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[str, ClientTurn] = WeakValueDictionary()
        self._ends: dict[str, TurnEnd] = {}

    def add(self, turn: ClientTurn, request_id: int) -> None:
        """The prompt of a turn was sent with this request."""
        turn.request_id = request_id
        self._turns[str(request_id)] = turn

    def end(self, request_id: int, end: TurnEnd) -> None:
        """The turn of a request has ended."""
        self._ends[str(request_id)] = end
        if len(self._ends) > REMEMBERED:
            del self._ends[next(iter(self._ends))]

    def turn(self, request_id: int | str) -> ClientTurn:
        """The turn of a request. Raises `LocalError` for an unknown request, and for a turn that ended and
        that nobody holds any more."""
        turn = self._turns.get(str(request_id))
        if turn is not None:
            return turn
        if str(request_id) in self._ends:
            raise LocalError(
                f"the turn of request {request_id!r} has ended and is not kept; drained() has its end"
            )
        raise _unknown(request_id)

    async def drained(self, request_id: int | str) -> TurnEnd:
        """Wait for the end of a request's turn. Raises `LocalError` for an unknown request."""
        turn = self._turns.get(str(request_id))
        if turn is not None:
            return await turn.drained()
        end = self._ends.get(str(request_id))
        if end is None:
            raise _unknown(request_id)
        return end


def _unknown(request_id: int | str) -> LocalError:
    return LocalError(
        f"no prompt of this session is known by request id {request_id!r};"
        f" open turns and the last {REMEMBERED} ended ones are"
    )
