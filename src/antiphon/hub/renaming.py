"""Renaming: the message ids of an agent's session that came behind another one.

Agents number as they like, each session from its beginning. Where a session goes on in a new one, the first
message there must not take the place of the first one here (invariant 7): each of its ids gets a mark.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import structs

from antiphon.client import ClientTurn, Permission, SessionEvent
from antiphon.client.elicitation import Elicitation
from antiphon.engine.session import Session
from antiphon.engine.transcript import MessageChunk, about_in
from antiphon.hub.course import Hears
from antiphon.schema.updates import TextChunk
from antiphon.schema.version import with_ours

if TYPE_CHECKING:
    from antiphon.agent.link import Link


class Renamed:
    """A session, as it hears of an agent's that was not its first."""

    def __init__(self, hears: Hears, mark: str) -> None:
        self._hears = hears
        self._mark = mark
        self.clients: Callable[[], list[Link]] = hears.clients

    @property
    def id(self) -> str:
        return self._hears.id

    @property
    def fold(self) -> Session:
        return self._hears.fold

    def agent_did(self, event: SessionEvent) -> None:
        named_one: Any = event.update  # any kind of update may have a message's id
        id = getattr(named_one, "message_id", None)
        about = about_in(getattr(named_one, "meta", None))
        if about is not None:
            meta = with_ours(named_one.meta, about={"messageId": about + self._mark})
            named_one = structs.replace(named_one, meta=meta)
            event = structs.replace(event, update=named_one, original=None)
        if id is not None:
            update = structs.replace(named_one, message_id=id + self._mark)
            named = event.original is not None and b'"messageId"' in event.original
            event = structs.replace(event, update=update, original=None if named else event.original)
        self._hears.agent_did(event)

    def agent_streamed(self, chunk: MessageChunk) -> None:
        self._hears.agent_streamed(structs.replace(chunk, message_id=chunk.message_id + self._mark))

    def agent_streamed_text(self, chunks: Sequence[TextChunk]) -> None:
        for chunk in chunks:
            chunk.message_id = f"{chunk.message_id}{self._mark}"
        self._hears.agent_streamed_text(chunks)

    def agent_took(self, turn: ClientTurn) -> None:
        self._hears.agent_took(turn)

    def agent_notified(self, method: str, params: Any) -> None:
        self._hears.agent_notified(method, params)

    def agent_left(self, reason: str) -> None:
        self._hears.agent_left(reason)

    def agent_paced(self) -> Awaitable[None] | None:
        return self._hears.agent_paced()

    async def begun(self) -> None:
        await self._hears.begun()

    async def agent_asks(self, permission: Permission) -> str | None:
        return await self._hears.agent_asks(permission)

    async def agent_elicits(self, elicitation: Elicitation) -> Any:
        return await self._hears.agent_elicits(elicitation)
