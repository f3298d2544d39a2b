"""QueuedPrompt: a prompt that waits at the agent, and what can be done to it there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from antiphon.client.protocol.abilities import Abilities
from antiphon.client.protocol.turn_end import TurnEnd
from antiphon.client.session.content import Content, content_blocks
from antiphon.client.session.tracker import RUNNING, SessionTracker
from antiphon.client.session.turn import ClientTurn
from antiphon.connection import Connection
from antiphon.engine.transcript import MessageType
from antiphon.errors import AntiphonError, CallFailed, LinkLost, LocalError
from antiphon.schema import v2
from antiphon.schema.antiphon.prompts import Delivery, InjectRequest, InjectResponse
from antiphon.schema.methods import OWN, Kind, find
from antiphon.schema.version import V2


class QueuedPrompt:
    """A prompt in the queue of a session. It outlives this connection. `accepted` waits until the agent
    accepts it, and returns its turn."""

    def __init__(self, queue: PromptQueue, turn: ClientTurn, message_id: str, *, steers: bool) -> None:
        self._queue = queue
        self._turn = turn
        self.steers = steers
        """Whether it is to join the open turn."""
        self.message_id = message_id
        """The id that its message will have."""
        self._accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def turn(self) -> ClientTurn:
        """The turn that it will have, or has."""
        return self._turn

    async def edit(self, *content: Content) -> None:
        """Replace its content. Raises `CallFailed` once it is accepted."""
        blocks = content_blocks(content, self._queue.abilities())
        await self._call("replace_inject", content=blocks)
        self._turn.prompt = blocks

    async def move(self, *, before: QueuedPrompt | None = None) -> None:
        """Put it before another one, or at the end."""
        await self._call("move_inject", before=None if before is None else before.message_id)

    async def withdraw(self) -> None:
        """Remove it from the queue. Raises `CallFailed` once it is accepted."""
        await self._call("revoke_inject")
        self._queue.forget(self.message_id)
        self._give_up(LocalError("this prompt was withdrawn"), TurnEnd(stop_reason=v2.StopReason.CANCELLED))

    async def accepted(self) -> ClientTurn:
        """Wait until the agent accepts it. Raises `LocalError` if it was withdrawn, `LinkLost` if the agent
        is lost."""
        await asyncio.shield(self._accepted)
        return self._turn

    def _accept(self) -> None:
        if not self._accepted.done():
            self._accepted.set_result(None)

    def _give_up(self, error: AntiphonError, end: TurnEnd) -> None:
        """It will not be accepted, as far as this client can tell."""
        if not self._accepted.done():
            self._accepted.set_exception(error)
            self._accepted.exception()  # mark it as retrieved: nobody may wait for it
            self._turn._finish(end)

    async def _call(self, method: str, **params: object) -> None:
        await self._queue.call(method, message_id=self.message_id, **params)


class PromptQueue:
    """The prompts of this client that wait at the agent."""

    def __init__(
        self,
        session_id: str,
        connection: Connection,
        tracker: SessionTracker,
        make_turn: Callable[[list[v2.ContentBlock]], ClientTurn],
        *,
        abilities: Callable[[], Abilities],
        operation: Callable[[], str | None],
        lasts: Callable[[], bool],
        at_end: bool,
    ) -> None:
        """`operation`: makes an operation id, if the agent supports that. `lasts`: whether a request
        may be sent again over another link. `at_end`: the agent answers prompts when their turns end."""
        self._session_id = session_id
        self._connection = connection
        self._tracker = tracker
        self._make_turn = make_turn
        self.abilities = abilities
        self._operation = operation
        self._lasts = lasts
        self._at_end = at_end
        self._waiting: dict[str, QueuedPrompt] = {}
        self._unanswered = 0
        """Requests without an answer: the messages of their prompts may come before the answers."""

    async def call(self, method: str, **params: object) -> Any:
        """Call `_antiphon/{method}` of this session. `params` are the other fields of its request."""
        found = find(Kind.REQUEST, OWN + method, V2)
        if found is None:
            raise LocalError(f"there is no method {OWN + method!r}")
        return await self._connection.call(found.name, found.params(session_id=self._session_id, **params))

    async def add(self, content: list[v2.ContentBlock], mode: str) -> QueuedPrompt:
        """Queue a prompt. The answer is handled in the lane: its turn may begin right after it, or have begun
        before."""
        queued: asyncio.Future[QueuedPrompt] = asyncio.get_running_loop().create_future()

        def answered(outcome: InjectResponse | AntiphonError) -> None:
            self._connection.after_received(
                self._session_id, lambda: self._answered(content, mode, outcome, queued)
            )

        operation_id = self._operation()
        params = InjectRequest(
            session_id=self._session_id, content=content, mode=Delivery(mode), operation_id=operation_id
        )
        lasting = operation_id is not None and self._lasts()
        self._connection.begin("_antiphon/inject", params, answered, lasting=lasting)
        self._unanswered += 1
        self._tracker.turns.prompt_sent()
        try:
            return await asyncio.shield(queued)
        except asyncio.CancelledError:
            queued.add_done_callback(self._withdraw_soon)
            raise

    def _answered(
        self,
        content: list[v2.ContentBlock],
        mode: str,
        outcome: InjectResponse | AntiphonError,
        queued: asyncio.Future[QueuedPrompt],
    ) -> None:
        try:
            if isinstance(outcome, AntiphonError):
                raise outcome
            turn = self._make_turn(content)
            turn.message_id = outcome.message_id
            prompt = QueuedPrompt(self, turn, turn.message_id, steers=mode == Delivery.STEER)
            if self._tracker.fold.message(MessageType.USER, turn.message_id) is None:
                self._waiting[turn.message_id] = prompt
            else:  # the agent accepted it at once
                self._accept(prompt)
            queued.set_result(prompt)
        except AntiphonError as error:
            queued.set_exception(error)
            queued.exception()
        finally:
            self._unanswered -= 1
            self._tracker.turns.prompt_settled()

    def _accept(self, prompt: QueuedPrompt) -> None:
        self._tracker.accept(prompt.turn, joins=prompt.steers)
        prompt._accept()

    def _withdraw_soon(self, queued: asyncio.Future[QueuedPrompt]) -> None:
        """The caller was cancelled before the prompt was queued."""
        if queued.exception() is None and self._tracker.left is None:
            self._connection.start_soon(self._withdraw(queued.result()))

    async def _withdraw(self, prompt: QueuedPrompt) -> None:
        try:
            await prompt.withdraw()
        except CallFailed:
            await prompt.turn.cancel()  # the agent accepted it at once

    def user_message_shown(self, message_id: str) -> None:
        """A user message comes: perhaps that of a queued prompt."""
        prompt = self._waiting.pop(message_id, None)
        if prompt is not None:
            self._accept(prompt)
        if self._at_end and (prompt is not None or self._unanswered) and self._tracker.fold.turn is None:
            # v1 does not report the beginning of its turn; `turn_complete` reports the end.
            self._tracker.apply(RUNNING)

    def forget(self, message_id: str) -> None:
        self._waiting.pop(message_id, None)

    def leave(self, reason: LinkLost, cut: TurnEnd) -> None:
        for prompt in self._waiting.values():
            prompt._give_up(reason, cut)
        self._waiting.clear()
