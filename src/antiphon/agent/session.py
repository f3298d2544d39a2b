"""AgentSession: one session of an agent, and the turns it works through.

Everything that happens goes through the live session's journal; this file decides when a prompt is taken,
runs the handler of its turn as a task, and turns a cancel into a task cancellation.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from antiphon.agent.background import Background, Work
from antiphon.agent.cancelling import Cancels, Scope
from antiphon.agent.checks import check_update, check_value
from antiphon.agent.declaring import Declaring
from antiphon.agent.edits import Edits
from antiphon.agent.extending import ask_clients, tell_clients
from antiphon.agent.mcp import McpServer, using
from antiphon.agent.permits import EVERYTHING, Permit, askable
from antiphon.agent.questioning import Questioning
from antiphon.agent.session_start import SessionStart
from antiphon.agent.system_prompts import SystemPrompt
from antiphon.agent.turn import AgentTurn, Prompt, StopTurn
from antiphon.engine.configuration import Value
from antiphon.engine.events import AnyBody, Delivery, QuestionClosed, RequestId, Updated
from antiphon.engine.prompts import Entry, Outcome, Takes
from antiphon.engine.session import Session
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.engine.turn import INTERRUPTED
from antiphon.engine.who import Named, who_of
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
from antiphon.schema.v2.prompt import StopReason

if TYPE_CHECKING:
    from antiphon.agent.link import Link
    from antiphon.agent.subagents import Subagent

logger = logging.getLogger("antiphon.agent")

Handler = Callable[[AgentTurn], Awaitable[StopReason | str | None]]
GRACE = 5.0
"""Seconds that a handler gets to end in once it was cancelled, where nothing can wait for longer."""
INTERNAL = v2.Error(code=v2.ErrorCode.INTERNAL_ERROR, message=AntiphonError.summary)


def new_id(kind: str) -> str:
    """An id that is unique and says what it is of."""
    return f"{kind}_{secrets.token_hex(12)}"


class AgentSession(Questioning, Edits):
    def __init__(self, live: LiveSession, handler: Handler, declared: Declaring | None = None) -> None:
        Questioning.__init__(self)
        Edits.__init__(self, declared)
        self._live = live
        self._handler = handler
        self._turn: AgentTurn | None = None
        self._task: asyncio.Task[None] | None = None
        self._cancelling = False
        self._begun = False
        self._opened: Scope | None = None
        """The block that an open turn without a prompt is."""
        self._ended = asyncio.Event()
        self._ended.set()
        self.additional_directories: tuple[str, ...] = ()
        """The roots beside `cwd`, as the last client to set them up gave them (SESS-10)."""
        self.mcp_servers: tuple[v2.McpServer, ...] = ()
        """The MCP servers the client wants the agent to use (MCPCFG-01, MCPCFG-10)."""
        self.system_prompt: SystemPrompt | None = None
        """What the last client to give one wants the model to be told (SESS-58); it is not kept."""
        self.clients: Callable[[], list[Link]] = list
        """The connections of those who follow the session now, the oldest first."""
        self.prompters: dict[str, Link] = {}
        """Whose prompts wait to be taken, by their message ids."""
        self.cancels = Cancels()
        """What clients may cancel by itself, just now."""
        self.behind = Background(self)
        """What it works on outside of its turns."""
        self.parent: AgentSession | None = None
        """The session that this one works for, while it does (SUB-01)."""
        self.cancellable = True
        """Whether a client may cancel it; of one that works for another, only where that was announced."""
        self.joining: set[asyncio.Future[None]] = set()
        """Clients that are about to follow it because they follow its parent."""
        self.new = False
        """Whether no client knows of it yet."""
        self.closing = False
        """Whether it is being closed: nothing new is begun in it."""
        self.start: SessionStart | None = None
        """Where the client that begins it starts to follow; `None` once that client is attached."""
        self.gone = False
        """Whether it was put away."""
        self.grace = GRACE
        """Seconds that what is at work gets to end in, when the session is closed or put away."""
        self._interrupted = False
        self.spawn: Callable[[str], Awaitable[AgentSession]]
        """Makes a session in a folder that works for this one."""
        self.retire: Callable[[], None]
        """Puts it away once those who follow it have got the last of it."""
        self.opened_meta: dict[str, Any] = {}
        """What goes beside the answer to who begins it."""
        self.implementation: dict[str, Any] = {}
        """Name and version of the agent."""

    @property
    def id(self) -> str:
        return self._live.session_id

    @property
    def leaves_it_to_agent(self) -> bool:
        """Whether prompts may be handed to another agent, which decides what they do while it works."""
        return False

    @property
    def introduction(self) -> dict[str, Any]:
        """What is said of it under our own key to who begins or joins it, and wants to know who is there."""
        return {}

    @property
    def live(self) -> LiveSession:
        return self._live

    @property
    def fold(self) -> Session:
        """Everything this session holds: messages, tool calls, plans, its queue and its state."""
        return self._live.fold

    @property
    def forked_from(self) -> str | None:
        """The session that this one goes on from."""
        assert self.fold.created is not None
        forked = self.fold.created.meta.get("forkedFrom")
        return forked.get("sessionId") if isinstance(forked, dict) else None

    @property
    def subagent_of(self) -> str | None:
        """The session that this one works, or has worked, for."""
        assert self.fold.created is not None
        return self.fold.created.meta.get(SUBAGENT_OF)

    @property
    def cwd(self) -> str:
        assert self.fold.created is not None
        return self.fold.created.cwd

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders that the session works in."""
        return (self.cwd, *self.additional_directories)

    def holds(self, path: str | os.PathLike[str]) -> bool:
        """Whether a file is in one of the `roots`, wherever links lead to: a tool is to touch no other
        (SESS-11). A path that is not absolute is one in the session's folder."""
        real = os.path.realpath(os.path.join(self.cwd, path))
        roots = map(os.path.realpath, self.roots)
        return any(real == root or real.startswith(os.path.join(root, "")) for root in roots)

    @property
    def trace(self) -> dict[str, Any]:
        """The trace context of the open turn (`AgentTurn.trace`)."""
        if self.parent is not None:
            return self.parent.trace
        return {} if self._turn is None else self._turn.trace

    def mcp(self, name: str) -> AbstractAsyncContextManager[McpServer]:
        """An MCP server that a client offers over its connection, one of `mcp_servers` of type `acp`:
        `async with session.mcp("files") as server: await server.call("tools/list")`."""
        return using(self, name)

    async def call_extension(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Ask the clients something that the protocol does not have; the first answer counts. Raises
        `MethodNotFound` where none of them knows it, or nobody is there."""
        return await ask_clients(askable(self), self.id, method, {"sessionId": self.id, **(params or {})})

    async def notify_extension(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Tell the clients something that the protocol does not have."""
        tell_clients(self, method, {"sessionId": self.id, **(params or {})})

    # --- what happens ------------------------------------------------------------------------------

    def emit(self, bodies: Sequence[AnyBody]) -> None:
        self._live.emit(bodies)
        for body in bodies:
            if isinstance(body, QuestionClosed):
                self._closed_question(body)

    async def update(self, update: v2.SessionUpdate) -> None:
        """Say something to everyone who follows the session, now and later."""
        check_update(update)
        if isinstance(update, v2.StateUpdate):
            self.emit(self.fold.update(update))  # the end of a turn closes its questions
        else:
            self._live.emit((Updated.of(update),))
        if self._live.ahead:
            await self._live.durable()

    def emit_update(self, update: v2.SessionUpdate) -> None:
        """The same where nothing may be waited for: something ends."""
        try:
            self._live.emit((Updated.of(update),))
        except (StoreError, SessionUnknown, LocalError):
            return  # the session is being let go, or gone

    # --- prompts and turns -------------------------------------------------------------------------

    def submit(
        self,
        content: Sequence[v2.ContentBlock] | Raw,
        *,
        held: bool = True,
        delivery: Delivery = Delivery.QUEUE,
        operation_id: str | None = None,
        sender: Named | None = None,
        meta: dict[str, Any] | None = None,
        request_id: RequestId = None,
        permit: Permit = EVERYTHING,
    ) -> Outcome:
        """A prompt has come; it is taken at once if the session is idle. `permit` is of the client that sends
        it: it says how much may wait."""
        outcome = self.fold.prompts.submit(
            content,
            message_id=new_id("msg"),
            state=self.fold.state,
            delivery=delivery,
            held=held,
            operation_id=operation_id,
            sender=sender,
            meta=meta,
            request_id=request_id,
        )
        if outcome.events and outcome.entry is not None:
            permit.queues(self, outcome.entry.message_id, len(outcome.entry.raw_content))
        self.emit(outcome.events)
        return outcome

    def take_back(self, message_id: str, *, cancel_turn: bool = False) -> asyncio.Future[None] | None:
        """Ask for a prompt back that was handed to another agent; done once that has answered. `None` where
        no other agent has it. With `cancel_turn`, its turn is cancelled if it is taken all the same."""
        return None

    def advance(self) -> None:
        """Take the next prompt, if one may be taken now. In a session that is put away what waits stays."""
        following = None if self.gone or self.closing else self.fold.prompts.next(self.fold.state)
        if following is None:
            return
        if following.cancel_first:
            self._cancel_turn()
        elif self._task is None:
            self._take(following.entry)
            self._start(AgentTurn(self, _prompt(following.entry)))
            self.advance()  # what interrupts, and waited behind another, interrupts this one

    def _take(self, entry: Entry) -> None:
        # The answer, the message and the state in one commit, in this order (PROMPT-V2-02, -04, -10).
        self.emit(self.fold.prompts.accept(entry.message_id).events)
        self.emit(self.fold.run())

    def take_steering(self) -> list[Prompt]:
        """A break point: what was sent to steer the open turn joins it now, in order."""
        taken: list[Prompt] = []
        while (following := self.fold.prompts.next(self.fold.state, Takes(steer=True))) is not None:
            if following.cancel_first or following.entry.delivery is not Delivery.STEER:
                break
            self._take(following.entry)
            taken.append(_prompt(following.entry))
        return taken

    def _start(self, turn: AgentTurn) -> None:
        self._cancelling = self._begun = False
        self._ended.clear()
        self._turn = turn
        self._task = asyncio.get_running_loop().create_task(self._run(turn), name=f"the turn of {self.id}")

    async def _run(self, turn: AgentTurn) -> None:
        reason: StopReason | None = StopReason.END_TURN
        error: v2.Error | None = None
        self._begun = True
        try:
            returned = None if self._cancelling else await self._handler(turn)
            if returned is not None:
                reason = StopReason(returned)
                check_value(reason)
        except StopTurn as stop:
            reason = stop.reason
            check_value(reason)
        except asyncio.CancelledError:
            reason, error = self._how_it_ended(None)
        except Exception as failure:
            reason, error = self._how_it_ended(failure)
        if self._turn is not turn:
            return  # it took too long to end: that was done without it
        if self._cancelling:
            reason, error = StopReason.CANCELLED, None  # PROMPT-V2-35: whatever the handler made of it
        self._end(reason, error, turn.usage)

    def _how_it_ended(self, failure: Exception | None) -> tuple[StopReason, v2.Error | None]:
        if self._cancelling:
            # PROMPT-V1-15, PROMPT-V2-36: what a library raises when it is aborted is no error.
            return StopReason.CANCELLED, None
        if failure is None:
            return StopReason.ERROR, INTERRUPTED
        if isinstance(failure, AuthRequired | CannotAsk):  # AUTH-21: what was let in may have expired
            told = failure.to_wire()
            return StopReason.ERROR, v2.Error(code=v2.ErrorCode(told.code), message=told.message)
        logger.error("the prompt handler failed", exc_info=failure)
        return StopReason.ERROR, INTERNAL

    def _end(self, reason: StopReason | None, error: v2.Error | None, usage: v2.Usage | None) -> None:
        self._turn = self._task = None
        self._calls.clear()
        self._ended.set()
        try:
            try:
                self.emit(self.fold.end(reason, error=error, usage=usage))
            except EventRefused as refused:  # the handler set a usage that is none
                logger.error("end of a turn refused in session %s: %s", self.id, refused)
                self.emit(self.fold.end(StopReason.ERROR, error=INTERNAL))
            self.advance()
        except (StoreError, SessionUnknown):
            return  # the session is being let go; its clients are told

    async def idle(self) -> None:
        """Wait until no turn is open. Work behind a turn opens one of its own right after it, before anything
        else is waited for: `await session.idle()`, then `async with session.turn()`."""
        while self._turn is not None:
            await self._ended.wait()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[AgentTurn]:
        """Open a turn that no prompt asked for (PROMPT-V2-27); it ends with the block."""
        if self._task is not None or self._turn is not None:
            raise AntiphonError("a turn is open already")
        turn = self._turn = AgentTurn(self, None)
        self._cancelling = False
        self._ended.clear()
        scope = self._opened = Scope()
        scope.enter()
        self.emit(self.fold.run())
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
                raise  # whoever opened it was cancelled, too
        except StopTurn as stop:
            reason = StopReason.CANCELLED  # another turn is stopped, which this one works for
            if stop.session is not self:
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
            self._opened = None
            if self._cancelling:
                reason, error = StopReason.CANCELLED, None  # PROMPT-V2-35
            if self._turn is turn:
                self._end(reason, error, turn.usage)

    # --- background work ---------------------------------------------------------------------------

    async def background(
        self,
        title: str,
        work: Work,
        *,
        kind: str = "other",
        cancellable: bool = False,
    ) -> str:
        """Start work that outlives the turn; its tool call's id. It is listed on every state update while it
        runs, a cancel does not touch it, closing the session ends it (PROMPT-V2-40, -44..46, SESS-39).
        Where it is `cancellable`, a v2 client may cancel it alone."""
        return await self.behind.start(title, work, kind=kind, cancellable=cancellable)

    def subagent(
        self, title: str, *, description: str | None = None, cancellable: bool = False, cwd: str | None = None
    ) -> AbstractAsyncContextManager[Subagent]:
        """A subagent at work inside the block (`AgentTurn.subagent`). While no turn is open it is listed as
        background work. Unstable."""
        from antiphon.agent.subagents import subagent

        return subagent(self, title, description=description, cancellable=cancellable, cwd=cwd)

    def soon(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something that the session owns: it ends with it at the latest."""
        self.behind.soon(work)

    # --- cancelling and closing --------------------------------------------------------------------

    async def take_config(self, id: str, value: Value, meta: dict[str, Any] | None) -> None:
        """A client has chosen this, which is offered. `meta` is what stood beside it."""
        await self.set_config(id, value)

    def cancel(self, *, message_id: str | None = None, meta: dict[str, Any] | None = None) -> None:
        """`session/cancel`, of the open turn or, with a message id, only of the turn that took it. `meta` is
        what stood beside it."""
        cancelled = self.fold.cancel(message_id=message_id)
        self.emit(cancelled.events)
        if cancelled.turn is not None:
            self._cancel_turn()

    def _cancel_turn(self) -> None:
        if self._cancelling:
            return  # a second cancel would cut short what the handler does to end
        self._cancelling = True
        if self._interrupted:
            return  # the same
        # A task that is cancelled before its first step never runs, and its turn would never end.
        if self._task is not None and self._begun:
            self._task.cancel()
        elif self._opened is not None:
            self._opened.cancel()

    def interrupt(self) -> None:
        """The process is about to end: a turn at work is cut short."""
        if self._task is not None and not self._interrupted:
            self._interrupted = True
            if not self._cancelling:  # a second cancel would cut short what the handler does to end
                self._task.cancel()

    async def stop(self) -> None:
        """The process ends, or lets the session go: a turn at work is cut short, and says so."""
        self.interrupt()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=self.grace)
        if self._task is not None:
            self._end_without_handler(StopReason.ERROR, INTERRUPTED)
        await self.behind.end()

    def _end_without_handler(self, reason: StopReason, error: v2.Error | None) -> None:
        """A handler goes on although it was cancelled. The turn ends all the same (invariant 4)."""
        logger.error("the prompt handler of %s does not end; its turn ends without it", self.id)
        self._end(reason, error, None if self._turn is None else self._turn.usage)

    async def close(self) -> None:
        """Cancel what is at work, wait for its last updates, and close."""
        self.cancel()
        if self._turn is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.grace):
                    await self._ended.wait()
        if self._turn is not None:
            self._end_without_handler(StopReason.CANCELLED, None)
        await self.behind.end()
        self.emit(self.fold.close())
        await self._live.durable()


def _prompt(entry: Entry) -> Prompt:
    sender = None if entry.sender is None else who_of(entry.sender)
    return Prompt(entry.message_id, entry.content, entry.meta or {}, sender)
