"""HandlerWorker: runs the author's handlers for one session.

Everything that happens goes through the live session's journal; this file decides when a prompt is taken,
runs the handler of its turn as a task, and turns a cancel into a task cancellation.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from antiphon.agent.open_turn import OpenTurn, Prompt, StopTurn, TurnEffect, TurnInput
from antiphon.agent.questions import TurnQuestions
from antiphon.agent.scope import Scope
from antiphon.engine.annotations import Annotation
from antiphon.engine.configuration import Value
from antiphon.engine.events import QuestionClosed, QuestionOpened, Updated
from antiphon.engine.prompts import Entry, Takes
from antiphon.engine.session import Session
from antiphon.engine.turn import INTERRUPTED
from antiphon.engine.who import who_of
from antiphon.errors import (
    AntiphonError,
    AuthRequired,
    CannotAsk,
    EventRefused,
    LocalError,
    SessionUnknown,
    StoreError,
)
from antiphon.schema import v2
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.schema.v2.prompt import StopReason
from antiphon.server.checks import check_update, check_value
from antiphon.server.offer import Offer
from antiphon.server.registry import SessionRegistry
from antiphon.server.session import ServedSession

logger = logging.getLogger("antiphon.agent")

INTERNAL = v2.Error(code=v2.ErrorCode.INTERNAL_ERROR, message=AntiphonError.summary)


class Hooks(Protocol):
    """The handlers of an agent's author, for one session."""

    def news(self) -> Sequence[Updated]: ...
    async def run(self, turn: OpenTurn) -> StopReason | str | None: ...
    async def configure(self, id: str, value: Value) -> None:
        """Ask the author about another value of an option. Raises `InvalidParams` or `LocalError`."""

    def begin(self) -> None: ...
    def annotated(self, annotation: Annotation, *, removed: bool) -> None: ...


class HandlerWorker:
    inserts = False
    is_set_up = False

    def __init__(
        self,
        session: ServedSession,
        registry: SessionRegistry,
        offer: Offer,
        make_hooks: Callable[[HandlerWorker], Hooks],
    ) -> None:
        self.session = session
        self.registry = registry
        self.offer = offer
        self.accepted = offer.accepted
        self.introduction: dict[str, Any] = {}
        self.id, self.cwd, self.live = session.id, session.cwd, session.live
        self._emit = session.emit
        self.cancel_calls: dict[str, Callable[[], None]] = {}
        """What cancels the tool calls that a client may cancel now, by their ids."""
        self.cancel_terminals: dict[str, Callable[[], None]] = {}
        self.background: dict[str, v2.BackgroundWork] = {}
        """What works outside of turns and is listed on every state update, by the ids of tool calls and
        subagents."""
        self.turn: OpenTurn | None = None
        self.questions = TurnQuestions(session, lambda: self.turn, self.background)
        self._takes_prompts = True
        self.hooks = make_hooks(self)

    @property
    def fold(self) -> Session:
        return self.session.fold

    @property
    def parent(self) -> HandlerWorker | None:
        """The worker of the session that this one works for."""
        parent = None if self.session.parent is None else self.session.parent.worker
        return parent if isinstance(parent, HandlerWorker) else None

    @property
    def trace(self) -> dict[str, Any]:
        """The trace context of the open turn (`AgentTurn.trace`)."""
        if self.parent is not None:
            return self.parent.trace
        return {} if self.turn is None else self.turn.trace

    async def open(self) -> None:
        """Nothing is kept of a session besides its journal."""

    def news(self) -> Sequence[Updated]:
        return self.hooks.news()

    def begin(self) -> None:
        self.hooks.begin()

    def used(self) -> None:
        """Sessions stay open."""

    def annotated(self, annotation: Annotation, *, removed: bool) -> None:
        self.hooks.annotated(annotation, removed=removed)

    def client_left(self) -> None:
        """Its questions wait for its return, or for another client."""

    def questions_changed(self, bodies: Sequence[QuestionOpened | QuestionClosed]) -> None:
        """Nothing depends on them here."""

    # --- events ------------------------------------------------------------------------------------

    async def update(self, update: v2.SessionUpdate) -> None:
        """Send an update to every client of the session, now and later."""
        check_update(update)
        if isinstance(update, v2.StateUpdate):
            self._emit(self.fold.update(update))  # the end of a turn closes its questions
        else:
            self.live.emit((Updated.of(update),))
        if self.live.ahead:
            await self.live.durable()

    def emit_update(self, update: v2.SessionUpdate) -> None:
        """The same where nothing may be awaited: something ends."""
        with contextlib.suppress(StoreError, SessionUnknown, LocalError):  # the session is being put away
            self.live.emit((Updated.of(update),))

    def report_background(self, id: str, work: v2.BackgroundWork | None) -> None:
        """List background work, or with None remove it from the list (PROMPT-V2-40, -44..46)."""
        if work is None:
            self.background.pop(id, None)
        else:
            self.background[id] = work
        with contextlib.suppress(StoreError, SessionUnknown, LocalError):  # the session is being put away
            self.emit_background()

    def emit_background(self) -> None:
        self._emit(self.fold.report_background(list(self.background.values())))

    # --- prompts and turns -------------------------------------------------------------------------

    def admit(self, delivery: Delivery) -> Delivery:
        return delivery

    def queued(self, entry: Entry) -> None:
        """It waits until `advance` takes it."""

    def take_back(self, message_id: str, *, cancel_turn: bool = False) -> asyncio.Future[None] | None:
        return None

    def advance(self) -> None:
        session = self.session
        if not self._takes_prompts or session.gone or session.closing:
            return  # prompts of a session that is put away keep waiting
        following = self.fold.prompts.next(self.fold.state)
        if following is None:
            return
        if following.cancel_first:
            self._cancel_turn()
        elif self.turn is None:
            prompt = self._take(following.entry)
            turn = self.turn = OpenTurn(prompt, self.session.prompters.get(prompt.message_id))
            turn.work = self.session.tasks.start_soon(self._run(turn), name=f"the turn of {self.id}")
            self.advance()  # what interrupts, and waited behind another, interrupts this one

    def _take(self, entry: Entry) -> Prompt:
        # The answer, the message and the state in one commit, in this order (PROMPT-V2-02, -04, -10).
        self._emit(self.fold.prompts.accept(entry.message_id).events)
        self._emit(self.fold.run())
        sender = None if entry.sender is None else who_of(entry.sender)
        return Prompt(entry.message_id, entry.content, entry.meta or {}, sender)

    def take_steering(self) -> list[Prompt]:
        """Take the prompts that were sent to steer the open turn, in order."""
        taken: list[Prompt] = []
        while (following := self.fold.prompts.next(self.fold.state, Takes(steer=True))) is not None:
            if following.cancel_first or following.entry.delivery is not Delivery.STEER:
                break
            taken.append(self._take(following.entry))
        return taken

    async def _run(self, turn: OpenTurn) -> None:
        reason: StopReason = StopReason.END_TURN
        error: v2.Error | None = None
        try:
            if turn.step(TurnInput.BEGIN) is TurnEffect.RUN:
                returned = await self.hooks.run(turn)
                if returned is not None:
                    reason = StopReason(returned)
                    check_value(reason)
            else:
                reason, error = StopReason.ERROR, INTERRUPTED
        except StopTurn as stop:
            reason = stop.reason
            check_value(reason)
        except asyncio.CancelledError:
            reason, error = StopReason.ERROR, INTERRUPTED
        except Exception as failure:
            reason, error = _outcome_of(turn, failure)
        self._end(turn, reason, error)

    def _end(self, turn: OpenTurn, reason: StopReason, error: v2.Error | None) -> None:
        """End a turn, unless it has ended."""
        if turn.cancelling:
            reason, error = StopReason.CANCELLED, None  # PROMPT-V2-35: however the handler ended
        if turn.step(TurnInput.END) is not TurnEffect.REPORT_END:
            return
        self.turn = None
        self.questions.turn_ended()
        try:
            try:
                self._emit(self.fold.end(reason, error=error, usage=turn.usage))
            except EventRefused as refused:  # the handler set a usage that is not valid
                logger.error("end of a turn refused in session %s: %s", self.id, refused)
                self._emit(self.fold.end(StopReason.ERROR, error=INTERNAL))
            self.advance()
        except (StoreError, SessionUnknown):
            return  # the session is being put away; its attachments notify the clients

    async def idle(self) -> None:
        """Wait until no turn is open."""
        while self.turn is not None:
            await self.turn.ended.wait()

    @asynccontextmanager
    async def open_turn(self) -> AsyncIterator[OpenTurn]:
        """Open a turn that no prompt asked for (PROMPT-V2-27); it ends with the block."""
        if self.turn is not None:
            raise AntiphonError("a turn is open already")
        turn = self.turn = OpenTurn()
        turn.work = scope = Scope()
        turn.step(TurnInput.BEGIN)
        scope.enter()
        self._emit(self.fold.run())
        reason: StopReason = StopReason.END_TURN
        error: v2.Error | None = None
        try:
            yield turn
        except asyncio.CancelledError:
            if not scope.cancelled:
                above = None if self.parent is None else self.parent.turn
                if above is not None and above.cancelling:
                    reason = StopReason.CANCELLED  # it worked for a turn that was cancelled
                else:
                    reason, error = StopReason.ERROR, INTERRUPTED
                raise
            if not scope.leave():
                raise  # the task that opened it was cancelled, too
        except StopTurn as stop:
            reason = StopReason.CANCELLED  # another turn is stopped, which this one works for
            if stop.turn is not turn:
                raise
            reason = stop.reason
            check_value(reason)
            await scope.leave_unharmed()
        except BaseException:
            reason, error = StopReason.ERROR, INTERNAL
            await scope.leave_unharmed()
            raise
        else:
            await scope.leave_unharmed()
        finally:
            self._end(turn, reason, error)

    # --- control and the end -----------------------------------------------------------------------

    async def configure(self, id: str, value: Value, meta: dict[str, Any] | None) -> None:
        await self.hooks.configure(id, value)

    def cancel(self, *, message_id: str | None = None, meta: dict[str, Any] | None = None) -> None:
        cancelled = self.fold.cancel(message_id=message_id)
        self._emit(cancelled.events)
        if cancelled.turn is not None:
            self._cancel_turn()

    def cancel_tool_call(self, id: str) -> bool:
        return _call(self.cancel_calls.get(id))

    def cancel_terminal(self, id: str) -> bool:
        return _call(self.cancel_terminals.get(id))

    def _cancel_turn(self) -> None:
        if self.turn is not None:
            self.turn.step(TurnInput.CANCEL)

    def interrupt(self) -> None:
        self._takes_prompts = False
        if self.turn is not None and self.turn.has_handler:
            self.turn.step(TurnInput.INTERRUPT)

    async def stop(self) -> None:
        self.interrupt()
        if self.turn is not None and self.turn.has_handler:
            await self._finish(self.turn, StopReason.ERROR, INTERRUPTED)

    async def close(self) -> None:
        self.cancel()
        if self.turn is not None:
            await self._finish(self.turn, StopReason.CANCELLED, None)

    async def _finish(self, turn: OpenTurn, reason: StopReason, error: v2.Error | None) -> None:
        """Wait until a turn that was cancelled has ended. After the grace it ends also while its handler is
        at work (invariant 4)."""
        try:
            async with asyncio.timeout(self.session.grace):
                await turn.ended.wait()
        except TimeoutError:
            logger.error("prompt handler of session %s does not end; its turn ends without it", self.id)
            self._end(turn, reason, error)
            if isinstance(turn.work, asyncio.Task):
                self.session.tasks.abandon(turn.work)


def _outcome_of(turn: OpenTurn, failure: Exception) -> tuple[StopReason, v2.Error | None]:
    if turn.cancelling:
        # PROMPT-V1-15, PROMPT-V2-36: what a library raises when it is aborted is no error.
        return StopReason.CANCELLED, None
    if isinstance(failure, AuthRequired | CannotAsk):  # AUTH-21: a login may have expired
        wire = failure.to_wire()
        return StopReason.ERROR, v2.Error(code=v2.ErrorCode(wire.code), message=wire.message)
    logger.error("prompt handler failed", exc_info=failure)
    return StopReason.ERROR, INTERNAL


def _call(cancel: Callable[[], None] | None) -> bool:
    if cancel is not None:
        cancel()
    return cancel is not None
