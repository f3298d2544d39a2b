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

from msgspec import Struct

from antiphon.agent.scope import Scope
from antiphon.agent.tracing import trace_of
from antiphon.engine.annotations import Annotation
from antiphon.engine.configuration import Value
from antiphon.engine.events import (
    AnyBody,
    Delivery,
    QuestionClosed,
    QuestionEnd,
    QuestionOpened,
    Updated,
)
from antiphon.engine.prompts import Entry, Takes
from antiphon.engine.questions import REQUEST_PERMISSION
from antiphon.engine.session import Session
from antiphon.engine.turn import INTERRUPTED, TurnState
from antiphon.engine.who import Who, who_of
from antiphon.errors import (
    AntiphonError,
    AuthRequired,
    CannotAsk,
    EventRefused,
    LocalError,
    SessionUnknown,
    StoreError,
)
from antiphon.live.session import LiveSession
from antiphon.schema import v2
from antiphon.schema.codec import codec
from antiphon.schema.v2.prompt import StopReason
from antiphon.server.checks import check_question, check_update, check_value
from antiphon.server.connection import ClientConnection
from antiphon.server.ids import new_id
from antiphon.server.offer import Offer
from antiphon.server.questions import Reply
from antiphon.server.registry import SessionRegistry
from antiphon.server.session import ServedSession

logger = logging.getLogger("antiphon.agent")

INTERNAL = v2.Error(code=v2.ErrorCode.INTERNAL_ERROR, message=AntiphonError.summary)


class Prompt(Struct, frozen=True):
    """What the user said."""

    message_id: str
    content: list[v2.ContentBlock]
    meta: dict[str, Any] = {}
    """The `_meta` of the client's request, such as trace context (OBS-01)."""
    sender: Who | None = None
    """The client that it came from, as that calls itself."""

    @property
    def text(self) -> str:
        """Its plain text, blocks joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, v2.TextContent))


class StopTurn(Exception):
    """Ends the turn with a stop reason, from however deep in the handler it is raised (`turn.stop`)."""

    def __init__(self, reason: v2.StopReason, worker: HandlerWorker) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.worker = worker
        """The worker whose turn it is."""


class OpenTurn:
    """One turn that is open: its prompt, the client that sent it, and what it used."""

    def __init__(self, prompt: Prompt | None = None, prompter: ClientConnection | None = None) -> None:
        self.prompt = prompt
        self.prompter = prompter
        self.usage: v2.Usage | None = None

    @property
    def trace(self) -> dict[str, Any]:
        return {} if self.prompt is None else trace_of(self.prompt.meta)


class Cancels:
    """What can be cancelled in a session just now, and how; by the ids of tool calls and terminals."""

    def __init__(self) -> None:
        self.calls: dict[str, Callable[[], None]] = {}
        self.terminals: dict[str, Callable[[], None]] = {}


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
        self._emit = session.emit
        self.cancels = Cancels()
        self.background: dict[str, v2.BackgroundWork] = {}
        """What works outside of turns and is listed on every state update, by the ids of tool calls and
        subagents."""
        self.turn: OpenTurn | None = None
        self._task: asyncio.Task[None] | None = None
        """Runs the handler of the turn; `None` for a turn that the author opened."""
        self._scope: Scope | None = None
        """The block of a turn that the author opened."""
        self._cancelling = False
        self._begun = False
        self._interrupted = False
        self._ended = asyncio.Event()
        self._ended.set()
        self._calls: set[str] = set()
        """The tool calls of the turn that run."""
        self._asking: dict[str, str] = {}
        """The open questions of the turn, and what waits with each: a tool call, or the handler itself."""
        self.hooks = make_hooks(self)

    @property
    def id(self) -> str:
        return self.session.id

    @property
    def live(self) -> LiveSession:
        return self.session.live

    @property
    def fold(self) -> Session:
        return self.session.fold

    @property
    def cwd(self) -> str:
        return self.session.cwd

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

    @property
    def accepted(self) -> tuple[type, ...]:
        return self.offer.accepted

    @property
    def introduction(self) -> dict[str, Any]:
        return {}

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

    def emit(self, bodies: Sequence[AnyBody]) -> None:
        self._emit(bodies)

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
        following = None if session.gone or session.closing else self.fold.prompts.next(self.fold.state)
        if following is None:
            return  # in a session that is put away, what waits stays
        if following.cancel_first:
            self._cancel_turn()
        elif self._task is None:
            self._start(self._take(following.entry))
            self.advance()  # what interrupts, and waited behind another, interrupts this one

    def _take(self, entry: Entry) -> OpenTurn:
        # The answer, the message and the state in one commit, in this order (PROMPT-V2-02, -04, -10).
        self._emit(self.fold.prompts.accept(entry.message_id).events)
        self._emit(self.fold.run())
        sender = None if entry.sender is None else who_of(entry.sender)
        prompt = Prompt(entry.message_id, entry.content, entry.meta or {}, sender)
        return OpenTurn(prompt, self.session.prompters.get(entry.message_id))

    def take_steering(self) -> list[Prompt]:
        """Take the prompts that were sent to steer the open turn, in order."""
        taken: list[Prompt] = []
        while (following := self.fold.prompts.next(self.fold.state, Takes(steer=True))) is not None:
            if following.cancel_first or following.entry.delivery is not Delivery.STEER:
                break
            prompt = self._take(following.entry).prompt
            assert prompt is not None
            taken.append(prompt)
        return taken

    def _start(self, turn: OpenTurn) -> None:
        self._cancelling = self._begun = False
        self._ended.clear()
        self.turn = turn
        self._task = asyncio.get_running_loop().create_task(self._run(turn), name=f"the turn of {self.id}")

    async def _run(self, turn: OpenTurn) -> None:
        reason: StopReason | None = StopReason.END_TURN
        error: v2.Error | None = None
        self._begun = True
        try:
            returned = None if self._cancelling else await self.hooks.run(turn)
            if returned is not None:
                reason = StopReason(returned)
                check_value(reason)
        except StopTurn as stop:
            reason = stop.reason
            check_value(reason)
        except asyncio.CancelledError:
            reason, error = self._outcome_of(None)
        except Exception as failure:
            reason, error = self._outcome_of(failure)
        if self.turn is not turn:
            return  # it took too long to end: the turn was ended without it
        if self._cancelling:
            reason, error = StopReason.CANCELLED, None  # PROMPT-V2-35: whatever the handler made of it
        self._end(reason, error, turn.usage)

    def _outcome_of(self, failure: Exception | None) -> tuple[StopReason, v2.Error | None]:
        if self._cancelling:
            # PROMPT-V1-15, PROMPT-V2-36: what a library raises when it is aborted is no error.
            return StopReason.CANCELLED, None
        if failure is None:
            return StopReason.ERROR, INTERRUPTED
        if isinstance(failure, AuthRequired | CannotAsk):  # AUTH-21: a login may have expired
            wire = failure.to_wire()
            return StopReason.ERROR, v2.Error(code=v2.ErrorCode(wire.code), message=wire.message)
        logger.error("prompt handler failed", exc_info=failure)
        return StopReason.ERROR, INTERNAL

    def _end(self, reason: StopReason | None, error: v2.Error | None, usage: v2.Usage | None) -> None:
        self.turn = self._task = None
        self._calls.clear()
        self._ended.set()
        try:
            try:
                self._emit(self.fold.end(reason, error=error, usage=usage))
            except EventRefused as refused:  # the handler set a usage that is none
                logger.error("end of a turn refused in session %s: %s", self.id, refused)
                self._emit(self.fold.end(StopReason.ERROR, error=INTERNAL))
            self.advance()
        except (StoreError, SessionUnknown):
            return  # the session is being put away; its clients are told

    async def idle(self) -> None:
        """Wait until no turn is open."""
        while self.turn is not None:
            await self._ended.wait()

    @asynccontextmanager
    async def open_turn(self) -> AsyncIterator[OpenTurn]:
        """Open a turn that no prompt asked for (PROMPT-V2-27); it ends with the block."""
        if self._task is not None or self.turn is not None:
            raise AntiphonError("a turn is open already")
        turn = self.turn = OpenTurn()
        self._cancelling = False
        self._ended.clear()
        scope = self._scope = Scope()
        scope.enter()
        self._emit(self.fold.run())
        reason: StopReason = StopReason.END_TURN
        error: v2.Error | None = None
        try:
            yield turn
        except asyncio.CancelledError:
            if not scope.cancelled:
                if self.parent is not None and self.parent._cancelling:
                    reason = StopReason.CANCELLED  # it worked for a turn that was cancelled
                else:
                    reason, error = StopReason.ERROR, INTERRUPTED
                raise
            if not scope.leave():
                raise  # the task that opened it was cancelled, too
        except StopTurn as stop:
            reason = StopReason.CANCELLED  # another turn is stopped, which this one works for
            if stop.worker is not self:
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
            self._scope = None
            if self._cancelling:
                reason, error = StopReason.CANCELLED, None  # PROMPT-V2-35
            if self.turn is turn:
                self._end(reason, error, turn.usage)

    # --- questions ---------------------------------------------------------------------------------

    def calling(self, tool_call_id: str, *, on: bool) -> None:
        """Note that a tool call of the turn has begun to run, or has ended."""
        if on:
            self._calls.add(tool_call_id)
        else:
            self._calls.discard(tool_call_id)
        self._report_waiting()

    def _report_waiting(self) -> None:
        """Report `requires_action` only while everything that runs in the turn waits for an answer
        (PROMPT-V2-23, PROMPT-V2-25)."""
        if self.turn is None:
            return
        if self._asking and self._calls <= set(self._asking.values()):
            if self.fold.state is TurnState.RUNNING:
                self._emit(self.fold.block())
        elif self.fold.state is TurnState.REQUIRES_ACTION:
            self._emit(self.fold.unblock())

    async def ask(
        self, request: v2.RequestPermissionRequest, *, tool_call_id: str
    ) -> v2.RequestPermissionOutcome:
        """Ask the clients of the session, and wait for the first answer; without clients it waits."""
        check_question(request)
        closed = (await self.pose(REQUEST_PERMISSION, request, tool_call_id=tool_call_id)).closed
        if closed.end is not QuestionEnd.ANSWERED:
            return v2.CancelledPermissionOutcome()  # PERM-V2-08
        response: v2.RequestPermissionResponse = codec(2).result(REQUEST_PERMISSION, closed.result)
        return response.outcome

    async def pose(self, method: str, params: Any, *, tool_call_id: str | None = None) -> Reply:
        """Ask a question of whichever kind; return how it ended. One of background work belongs to that, and
        not to the turn that happens to be open (PERM-V2-10, ELIC-20)."""
        questions, question_id = self.session.questions, new_id("question")
        behind = tool_call_id if tool_call_id in self.background else None
        try:
            questions.open(question_id, method, params, tool_call_id=behind)
            if behind is None:
                self._asking[question_id] = tool_call_id or question_id
            self._report_waiting()
            return await questions.reply(question_id)
        finally:
            questions.drop(question_id)
            self._asking.pop(question_id, None)
            if not self._cancelling:
                self._report_waiting()

    # --- control and the end -----------------------------------------------------------------------

    async def configure(self, id: str, value: Value, meta: dict[str, Any] | None) -> None:
        await self.hooks.configure(id, value)

    def cancel(self, *, message_id: str | None = None, meta: dict[str, Any] | None = None) -> None:
        cancelled = self.fold.cancel(message_id=message_id)
        self._emit(cancelled.events)
        if cancelled.turn is not None:
            self._cancel_turn()

    def cancel_tool_call(self, id: str) -> bool:
        return _call(self.cancels.calls.get(id))

    def cancel_terminal(self, id: str) -> bool:
        return _call(self.cancels.terminals.get(id))

    def _cancel_turn(self) -> None:
        if self._cancelling:
            return  # a second cancel would cut short what the handler does to end
        self._cancelling = True
        if self._interrupted:
            return  # the same
        # A task that is cancelled before its first step never runs, and its turn would never end.
        if self._task is not None and self._begun:
            self._task.cancel()
        elif self._scope is not None:
            self._scope.cancel()

    def interrupt(self) -> None:
        if self._task is not None and not self._interrupted:
            self._interrupted = True
            if not self._cancelling:  # a second cancel would cut short what the handler does to end
                self._task.cancel()

    async def stop(self) -> None:
        self.interrupt()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=self.session.grace)
        if self._task is not None:
            self._end_without_handler(StopReason.ERROR, INTERRUPTED)

    async def close(self) -> None:
        self.cancel()
        if self.turn is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.session.grace):
                    await self._ended.wait()
        if self.turn is not None:
            self._end_without_handler(StopReason.CANCELLED, None)

    def _end_without_handler(self, reason: StopReason, error: v2.Error | None) -> None:
        """End a turn whose handler goes on although it was cancelled (invariant 4)."""
        logger.error("prompt handler of session %s does not end; its turn ends without it", self.id)
        self._end(reason, error, None if self.turn is None else self.turn.usage)


def _call(cancel: Callable[[], None] | None) -> bool:
    if cancel is not None:
        cancel()
    return cancel is not None
