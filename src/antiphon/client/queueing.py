"""QueuedPrompt: a prompt that waits at the agent, and what may still be done to it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from antiphon.client.content import Content, blocks
from antiphon.client.turn import ClientTurn
from antiphon.errors import LocalError

if TYPE_CHECKING:
    from antiphon.client.session import ClientSession


class QueuedPrompt:
    """It outlives this connection. `accepted` waits until the agent takes it, and gives its turn."""

    def __init__(self, session: ClientSession, message_id: str, turn: ClientTurn) -> None:
        self._session = session
        self._turn = turn
        self.message_id = message_id
        """What will be the id of its message."""
        self._taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def edit(self, *content: Content) -> None:
        """Say this instead. Raises `CallFailed` once it is accepted."""
        new = blocks(content, self._session.abilities)
        await self._call("replace_inject", content=new)

    async def move(self, *, before: QueuedPrompt | None = None) -> None:
        """Put it before another one, or at the end."""
        await self._call("move_inject", **({} if before is None else {"before": before.message_id}))

    async def withdraw(self) -> None:
        """Take it back; it will never be said."""
        await self._call("revoke_inject")
        self._session.forget(self)
        if not self._taken.done():
            self._taken.cancel()

    async def accepted(self) -> ClientTurn:
        """Wait until it is taken. Raises `LocalError` if it was withdrawn, or the agent is gone."""
        try:
            await asyncio.shield(self._taken)
        except asyncio.CancelledError:
            if self._taken.cancelled():
                raise LocalError("this prompt was withdrawn, or its agent is gone") from None
            raise
        return self._turn

    @property
    def turn(self) -> ClientTurn:
        return self._turn

    def take(self) -> None:
        if not self._taken.done():
            self._taken.set_result(None)

    def lose(self) -> None:
        if not self._taken.done():
            self._taken.cancel()

    async def _call(self, method: str, **params: object) -> None:
        await self._session.extension(method, messageId=self.message_id, **params)
