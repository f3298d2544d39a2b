"""Queueing: prompts that wait at the agent, and what may still be done to them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from antiphon.client.content import Content, blocks
from antiphon.client.turn import ClientTurn, TurnEnd
from antiphon.engine.events import Delivery
from antiphon.engine.transcript import MessageType
from antiphon.errors import AntiphonError, CallFailed, InvalidResult, LinkLost, LocalError
from antiphon.schema import v2

if TYPE_CHECKING:
    from antiphon.client.session import ClientSession
    from antiphon.client.view import View


class QueuedPrompt:
    """It outlives this connection. `accepted` waits until the agent takes it, and gives its turn."""

    def __init__(self, session: ClientSession, message_id: str, turn: ClientTurn, *, steers: bool) -> None:
        self._session = session
        self._turn = turn
        self.steers = steers
        """Whether it is for the turn that is open."""
        self.message_id = message_id
        """What will be the id of its message."""
        self._taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def edit(self, *content: Content) -> None:
        """Say this instead. Raises `CallFailed` once it is accepted."""
        new = blocks(content, self._session.abilities)
        await self._call("replace_inject", content=new)
        self._turn.prompt = new

    async def move(self, *, before: QueuedPrompt | None = None) -> None:
        """Put it before another one, or at the end."""
        await self._call("move_inject", **({} if before is None else {"before": before.message_id}))

    async def withdraw(self) -> None:
        """Take it back; it will never be said. Raises `CallFailed` once it is accepted."""
        await self._call("revoke_inject")
        self._session.forget(self)
        self.give_up(LocalError("this prompt was withdrawn"), TurnEnd(stop_reason=v2.StopReason.CANCELLED))

    async def accepted(self) -> ClientTurn:
        """Wait until it is taken. Raises `LocalError` if it was withdrawn, `LinkLost` without its agent."""
        await asyncio.shield(self._taken)
        return self._turn

    @property
    def turn(self) -> ClientTurn:
        """The turn that it will have, or has."""
        return self._turn

    def take(self) -> None:
        if not self._taken.done():
            self._taken.set_result(None)

    def give_up(self, error: AntiphonError, end: TurnEnd) -> None:
        """It will not be taken, as far as this client can tell."""
        if not self._taken.done():
            self._taken.set_exception(error)
            self._taken.exception()  # whoever waits gets it; nobody may
            self._turn.finish(end)

    async def _call(self, method: str, **params: object) -> None:
        await self._session.extension(method, messageId=self.message_id, **params)


class Queueing:
    """The prompts of this client that wait at the agent."""

    def __init__(self, session: ClientSession, view: View) -> None:
        self._session = session
        self._view = view
        self._waiting: dict[str, QueuedPrompt] = {}
        self._sent = 0
        """How many are on their way to the agent: their messages may come before their answers."""

    async def add(self, said: list[v2.ContentBlock], mode: str) -> QueuedPrompt:
        """Let a prompt wait at the agent. It is known here at the place of the answer in the lane: its turn
        may begin right behind it, or have begun before."""
        session, connection = self._session, self._session.client.connection
        queued: asyncio.Future[QueuedPrompt] = asyncio.get_running_loop().create_future()

        def settled(outcome: Any) -> None:
            connection.behind(session.id, lambda: self._answered(said, mode, outcome, queued))

        operation = session.client.operation("inject", None)
        params = {"sessionId": session.id, "content": said, "mode": mode, **operation}
        connection.begin("_antiphon/inject", params, settled, lasting=bool(operation) and session.lasts)
        self._sent += 1
        self._view.spans.sent()
        try:
            return await asyncio.shield(queued)
        except asyncio.CancelledError:
            queued.add_done_callback(self._take_back)
            raise

    def _answered(
        self, said: list[v2.ContentBlock], mode: str, outcome: Any, queued: asyncio.Future[QueuedPrompt]
    ) -> None:
        try:
            if isinstance(outcome, AntiphonError):
                queued.set_exception(outcome)
                queued.exception()
                return
            turn = ClientTurn(self._session, said)
            turn.message_id = str(outcome["messageId"])
            prompt = QueuedPrompt(self._session, turn.message_id, turn, steers=mode == Delivery.STEER)
            if self._view.fold.message(MessageType.USER, turn.message_id) is None:
                self._waiting[turn.message_id] = prompt
            else:
                self._view.accept(turn, joins=prompt.steers)  # it was taken at once
                prompt.take()
            queued.set_result(prompt)
        except (KeyError, TypeError):
            queued.set_exception(InvalidResult("the agent did not say which message this will be"))
            queued.exception()
        finally:
            self._sent -= 1
            self._view.spans.settled()

    def _take_back(self, queued: asyncio.Future[QueuedPrompt]) -> None:
        """Whoever wanted it has given up before it was there."""
        if queued.exception() is None and self._view.over is None:
            self._session.client.connection.start_soon(self._withdraw(queued.result()))

    async def _withdraw(self, prompt: QueuedPrompt) -> None:
        try:
            await prompt.withdraw()
        except CallFailed:
            await prompt.turn.cancel()  # it was taken at once

    def shown(self, message_id: str) -> None:
        """A user message is about to be placed: perhaps one that waited."""
        prompt = self._waiting.pop(message_id, None)
        if prompt is not None:
            self._view.accept(prompt.turn, joins=prompt.steers)
            prompt.take()
        at_the_end = self._session.spoken.answers_at_the_end
        if at_the_end and (prompt is not None or self._sent) and self._view.fold.turn is None:
            # v1 has no word for it: its turn is opened here, and `turn_complete` ends it.
            self._view.tell(v2.SessionStateUpdate(state=v2.State.RUNNING))

    def forget(self, prompt: QueuedPrompt) -> None:
        self._waiting.pop(prompt.message_id, None)

    def leave(self, lost: LinkLost, cut: TurnEnd) -> None:
        for prompt in self._waiting.values():
            prompt.give_up(lost, cut)
        self._waiting.clear()
