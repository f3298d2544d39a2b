"""What stands beside an update in the params of `session/update`, for who passes it on (OBS-02)."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

from msgspec import structs

from antiphon.client.spoken import as_v2
from antiphon.client.turn import ClientTurn, SessionEvent
from antiphon.client.view import Follows
from antiphon.engine.transcript import MessageChunk
from antiphon.errors import LinkLost
from antiphon.schema.updates import TextChunk


class Accompanied:
    """A follower, while it is told of an update that has something beside it. Most have nothing, and pay
    nothing for those that do."""

    def __init__(self, follower: Follows, meta: dict[str, Any]) -> None:
        self._follower = follower
        self._meta = meta

    def opened(self) -> None:
        self._follower.opened()

    def taken(self, turn: ClientTurn) -> None:
        self._follower.taken(turn)

    def happened(self, event: SessionEvent) -> None:
        self._follower.happened(structs.replace(event, meta=self._meta))

    def streamed(self, chunk: MessageChunk) -> None:
        self._follower.happened(SessionEvent(seq=0, turn=None, update=chunk, meta=self._meta))

    def streamed_text(self, chunks: Sequence[TextChunk]) -> None:
        for chunk in chunks:
            self.streamed(as_v2(chunk))

    def left(self, reason: LinkLost | str) -> None:
        self._follower.left(reason)

    def pace(self) -> Awaitable[None] | None:
        return self._follower.pace()
