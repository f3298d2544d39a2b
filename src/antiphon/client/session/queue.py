"""PromptQueue and QueuedPrompt: the prompts of a session that wait at the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from antiphon.client.protocol.abilities import Abilities
from antiphon.client.protocol.dialect import AgentDialect
from antiphon.client.protocol.turn_end import TurnEnd
from antiphon.client.session.content import Content, content_blocks
from antiphon.client.session.context import SessionContext
from antiphon.client.session.tracker import RUNNING, SessionTracker
from antiphon.client.session.turn import ClientTurn
from antiphon.engine.transcript import MessageType
from antiphon.errors import AntiphonError, CallFailed, LinkLost, LocalError
from antiphon.schema import v2
from antiphon.schema.antiphon.prompts import Delivery, InjectRequest, InjectResponse


class QueuedPrompt:
    """A prompt in the queue of a session. It outlives this connection. `accepted` waits until the agent
    accepts it, and returns its turn."""

    def __init__(self, queue: PromptQueue, turn: ClientTurn, message_id: str, *, steers: bool) -> None:
        self._queue = queue
        self.turn = turn
        """The turn that it will have, or has."""
        self.steers = steers
        """Whether it is to join the open turn."""
        self.message_id = message_id
        """The id that its message will have."""
        self._accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def edit(self, *content: Content) -> None:
        """Replace its content. Raises `CallFailed` once it is accepted."""
        blocks = content_blocks(content, self._queue._abilities)
        await self._call("replace_inject", content=blocks)
        self.turn.prompt = blocks

    async def move(self, *, before: QueuedPrompt | None = None) -> None:
        """Put it before another one, or at the end."""
        await self._call("move_inject", before=None if before is None else before.message_id)

    async def withdraw(self) -> None:
        """Remove it from the queue. Raises `CallFailed` once it is accepted."""
        await self._call("revoke_inject")
        self._queue._waiting.pop(self.message_id, None)
        self._give_up(LocalError("this prompt was withdrawn"), TurnEnd(stop_reason=v2.StopReason.CANCELLED))

    async def accepted(self) -> ClientTurn:
        """Wait until the agent accepts it. Raises `LocalError` if it was withdrawn, `LinkLost` if the agent
        is lost."""
        await asyncio.shield(self._accepted)
        return self.turn

    def _accept(self) -> None:
        if not self._accepted.done():
            self._accepted.set_result(None)

    def _give_up(self, error: AntiphonError, end: TurnEnd) -> None:
        """It will not be accepted, as far as this client knows."""
        if not self._accepted.done():
            self._accepted.set_exception(error)
            self._accepted.exception()  # mark it as retrieved: nobody may wait for it
            self.turn._finish(end)

    async def _call(self, method: str, **params: object) -> None:
        await self._queue._call(method, message_id=self.message_id, **params)


class PromptQueue:
    """`session.queue`: the prompts of a session that wait at the agent, where they outlive this
    connection."""

    def __init__(
        self,
        context: SessionContext,
        session_id: str,
        dialect: AgentDialect,
        tracker: SessionTracker,
        make_turn: Callable[[list[v2.ContentBlock]], ClientTurn],
        *,
        check_open: Callable[[], None],
        lasts: Callable[[], bool],
    ) -> None:
        """check_open: raises `LocalError` if the session takes no requests of this client.
        lasts: whether a request may be sent again over another link."""
        self._context = context
        self._connection = context.agent.connection
        self._session_id = session_id
        self._dialect = dialect
        self._tracker = tracker
        self._make_turn = make_turn
        self._check_open = check_open
        self._lasts = lasts
        self._waiting: dict[str, QueuedPrompt] = {}
        self._unanswered = 0
        """Requests without an answer: the messages of their prompts may come before the answers."""

    @property
    def _abilities(self) -> Abilities:
        return self._context.agent.abilities

    async def _call(self, method: str, **params: object) -> None:
        await self._context.call_antiphon(self._session_id, method, **params)

    @property
    def available(self) -> bool:
        """Whether `add` is possible with this agent."""
        return self._abilities.queue and self._dialect.reports_every_end

    @property
    def entries(self) -> list[dict[str, Any]]:
        """The prompts of all clients that wait, if the agent reports them (`_antiphon_queue`)."""
        return self._tracker.queue

    async def resume(self) -> None:
        """Let the agent continue with queued prompts, after a cancel."""
        await self._call("resume_queue")

    async def add(self, *content: Content, mode: str = "queue") -> QueuedPrompt:
        """Queue a prompt. Returns once the agent has it."""
        self._check_open()
        if not self._abilities.queue:
            raise LocalError("this agent offers no queue")
        if not self.available:
            raise LocalError("a queued prompt needs `turn_complete`: nothing else reports its end in v1")
        return await self._add(content_blocks(content, self._abilities), mode)

    async def _add(self, content: list[v2.ContentBlock], mode: str) -> QueuedPrompt:
        """The answer is handled in the lane: its turn may begin right after it, or have begun before."""
        queued: asyncio.Future[QueuedPrompt] = asyncio.get_running_loop().create_future()

        def answered(outcome: InjectResponse | AntiphonError) -> None:
            self._connection.after_received(
                self._session_id, lambda: self._answered(content, mode, outcome, queued)
            )

        operation_id = self._context.operation("inject").get("operationId")
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
            self._tracker.turns.prompt_answered()

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

    def _user_message_shown(self, message_id: str) -> None:
        """A user message comes: perhaps that of a queued prompt."""
        prompt = self._waiting.pop(message_id, None)
        if prompt is not None:
            self._accept(prompt)
        if (
            self._dialect.answers_at_end
            and (prompt is not None or self._unanswered)
            and self._tracker.fold.turn is None
        ):
            # v1 does not report the beginning of its turn; `turn_complete` reports the end.
            self._tracker.apply(RUNNING)

    def _leave(self, reason: LinkLost, cut: TurnEnd) -> None:
        for prompt in self._waiting.values():
            prompt._give_up(reason, cut)
        self._waiting.clear()
