"""HubSession: a session whose work is done by an agent behind the hub.

Towards clients it is a session of an agent, with a journal, a queue and questions. A prompt is committed as
sent before it is written to the agent, and never written again (invariant 6); what the agent says is
journalled in the order of its lane and published after the commit.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw, structs

from antiphon.agent.titles import is_title_chosen
from antiphon.agent.turn import AgentTurn
from antiphon.client import ClientTurn, SessionEvent
from antiphon.client.spoken import STREAMED
from antiphon.engine.configuration import Value
from antiphon.engine.events import Delivery, Updated
from antiphon.engine.folding import is_state
from antiphon.engine.prompt_states import PromptState
from antiphon.engine.prompts import Entry, Next, Outcome
from antiphon.errors import (
    AntiphonError,
    CallFailed,
    ErrorObject,
    InvalidParams,
    LinkLost,
    LocalError,
    RequestError,
    SessionUnknown,
    SpawnFailed,
    StoreError,
)
from antiphon.hub import bringing
from antiphon.hub.asking import HubQuestions
from antiphon.hub.bringing import Place
from antiphon.hub.upstream import Course, Upstream
from antiphon.live.session import LiveSession
from antiphon.schema import v2
from antiphon.schema.version import META_KEY
from antiphon.schema.wire import Unknown

if TYPE_CHECKING:
    from antiphon.hub.hub import Hub

logger = logging.getLogger("antiphon.hub")

CANCEL_GRACE = 30.0
"""Seconds an agent has to end a turn that was cancelled, before it is ended itself."""
CLOSE_GRACE = 5.0
BACKOFF = 0.5
LONGEST_BACKOFF = 30.0


class _Offered(dict[str, Callable[[], None]]):
    """What clients may cancel by itself: whatever the agent offers just now."""

    def __init__(self, find: Callable[[str], Callable[[], None] | None]) -> None:
        super().__init__()
        self._find = find

    def get(self, id: str, default: Any = None) -> Any:
        return self._find(id)


async def _quietly(work: Awaitable[None]) -> None:
    """An agent that refuses, or is gone, has told so by its updates."""
    with suppress(AntiphonError):
        await work


async def _nobody(_: AgentTurn) -> None:
    raise LocalError("the work of this session is done by an agent behind the hub")


class HubSession(HubQuestions):
    def __init__(self, live: LiveSession, hub: Hub) -> None:
        super().__init__(live, _nobody, hub)
        self._hub = hub
        self.unattended = hub.unattended
        self._named = {}
        self.agent_name = hub.default
        self.chain: list[str] = []
        """The sessions at agents that this one stood on, the last one last."""
        self._upstream: Upstream | None = None
        self._course: Course | None = None
        self._bringing = asyncio.Lock()
        self._sending: asyncio.Task[None] | None = None
        self._withdrawn = False
        """Whether what is about to be sent was cancelled."""
        self._unnamed: ClientTurn | None = None
        """A prompt that was taken before the id of its message is known."""
        self._story: str | None = None
        """What the agent has to be told with the next prompt."""
        self._beside: list[v2.ContentBlock] | None = None
        """What is prompted, where the agent is told more than that."""
        self._written: list[v2.ContentBlock] = []
        """What was last written to the agent."""
        self._said: dict[str, list[v2.ContentBlock]] = {}
        """The same by message ids: clients see what was prompted, and nothing of what was beside it."""
        self._failures = 0
        self._lost_at = 0.0
        self.cancels.calls = _Offered(self._cancel_call)
        self.cancels.terminals = _Offered(self._cancel_terminal)

    @property
    def place(self) -> Place:
        return Place(self.cwd, self.additional_directories, self.mcp_servers)

    @property
    def attended_by_agent(self) -> bool:
        """Whether an agent is at work for it."""
        return self._course is not None

    def _try(self, act: Callable[[], None]) -> None:
        """The session may be being let go meanwhile; its clients are told by that."""
        with suppress(StoreError, SessionUnknown, LocalError):
            act()

    # --- the agent ---------------------------------------------------------------------------------

    async def bring(self) -> Course:
        """The session at its agent, which is started if it is not there. Raises `RequestError`."""
        async with self._bringing:
            if self._course is not None:
                return self._course
            if self._failures:
                delay = min(BACKOFF * 2 ** (self._failures - 1), LONGEST_BACKOFF)
                await asyncio.sleep(max(0.0, self._lost_at + delay - time.monotonic()))
            upstream = None
            try:
                upstream = await self._hub.start(self.agent_name)
                again = None
                if self.chain:
                    again = await bringing.open_again(upstream.client, self.chain[-1], self.place)
                session = again or await bringing.open_new(upstream.client, self.place)
            except (AntiphonError, OSError, asyncio.CancelledError) as error:
                self._fail()
                if upstream is not None:
                    self._hub.let_go(upstream)
                if isinstance(error, asyncio.CancelledError):
                    raise
                raise told(error) from error
            before = list(self.fold.messages)
            await self.stand_on(upstream, upstream.course(session), again=again is not None)
            if again is None and before:
                self._story = bringing.story(self.fold)
                self.emit([Updated.of(bringing.LOST)])
            if self._course is None:
                raise RequestError(AntiphonError.code, "The agent ended as it began")
            return self._course

    async def stand_on(self, upstream: Upstream, course: Course, *, again: bool) -> None:
        """From here on this is where the session's work is done."""
        session = course.session
        if not self.chain or self.chain[-1] != session.id:
            self.chain.append(session.id)
        bringing.go_on(session, self.fold)
        self._upstream, self._course = upstream, course
        self._named.clear()
        course.lead(self, early=not again)
        if again:
            for update in bringing.news(session, self.fold):
                self._tell(update)
        await self._hub.note(self)
        await self.live.durable()

    def _fail(self) -> None:
        self._failures += 1
        self._lost_at = time.monotonic()

    def _part(self) -> None:
        """The agent is not there any more."""
        course, upstream = self._course, self._upstream
        self._course = self._upstream = None
        self._unnamed = None
        if course is not None:
            course.cut()
        if upstream is not None:
            self._hub.let_go(upstream)

    # --- what the agent does: all of it in the lane -------------------------------------------------

    def agent_took(self, turn: ClientTurn) -> None:
        if turn.message_id is None:
            self._unnamed = turn
        else:
            self._accept(turn.message_id)

    def _accept(self, became: str | None, *, echo: bool = False) -> None:
        for entry in self.fold.prompts.sent[:1]:
            if self._beside is not None:
                self._said[became or entry.message_id], self._beside = self._beside, None
            self.emit(self.fold.prompts.accept(entry.message_id, became=became, echo=echo).events)

    def agent_did(self, event: SessionEvent) -> None:
        update = event.update
        if type(update) in STREAMED:
            self._live.stream(update)  # type: ignore[arg-type]  # it is one of those
        elif update is not None:
            self._tell(update)
        elif event.question is not None:
            self._question(event.question)

    def agent_paced(self) -> Awaitable[None] | None:
        return self._live.durable() if self._live.ahead else None

    def agent_left(self, reason: str) -> None:
        logger.warning("the agent of session %s is gone: %s", self.id, reason)
        self._fail()
        self._part()
        self._try(lambda: self.emit(self.fold.interrupt()))
        self._idle()

    def _tell(self, update: v2.SessionUpdate) -> None:
        if self._unnamed is not None and self._unnamed.message_id is not None:
            self._accept(self._unnamed.message_id)
            self._unnamed = None
        if is_state(update):
            self._state(update)
            return
        if isinstance(update, v2.UserMessage) and self._is_sent(update):
            self._accept(update.message_id)  # it shows it before it answers (PROMPT-V2-05)
        match update:
            case Unknown() if str(update.get("sessionUpdate")).startswith("_antiphon_"):
                return  # of the agent's own queue: this session has another
            case v2.UserMessage(message_id=id) if id in self._said:
                update = structs.replace(update, content=self._said.pop(id))
            case v2.SessionInfoUpdate() if update.title is not UNSET and is_title_chosen(self.fold):
                update = structs.replace(update, title=UNSET)  # SESS-57
        self._live.emit((Updated.of(update),))

    def _is_sent(self, update: v2.UserMessage) -> bool:
        """Whether a message is the prompt that the agent has and has not answered."""
        return any(update.content == self._written for _ in self.fold.prompts.sent)

    def _state(self, update: Any) -> None:
        if isinstance(update, v2.SessionStateUpdate) and update.state is v2.State.REQUIRES_ACTION:
            asked = [question.question_id for question in self.fold.questions.open]
            update = structs.replace(update, meta={**(update.meta or {}), META_KEY: {"waitingFor": asked}})
        was = self.fold.turn
        if was is not None and self._unnamed is not None and self._ends(update):
            self._accept(None, echo=True)  # it never showed the message
            self._unnamed = None
        self.emit(self.fold.update(update))
        if was is not None and self.fold.turn is None:
            if not (self.fold.turns.last is not None and self.fold.turns.last.interrupted):
                self._failures = 0
            self._idle()

    def _ends(self, update: Any) -> bool:
        return isinstance(update, v2.StateUpdate) and update.state is v2.State.IDLE

    def _idle(self) -> None:
        self._cancelling = False
        self._ended.set()
        self._try(self.advance)

    # --- prompts -----------------------------------------------------------------------------------

    def submit(
        self,
        content: Sequence[v2.ContentBlock] | Raw,
        *,
        held: bool = True,
        delivery: Delivery = Delivery.QUEUE,
        operation_id: str | None = None,
        sender: str | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Outcome:
        self._hub.check_taking()
        return super().submit(
            content, held=held, delivery=delivery, operation_id=operation_id, sender=sender, meta=meta
        )

    def _next(self) -> Next | None:
        able = self._course is not None and "steer" in self._course.session.abilities.delivery
        return self.fold.prompts.next(self.fold.state, at_break_point=able)

    def advance(self) -> None:
        """Send the next prompt, if one may be taken now: one at a time, whatever the agent would do with
        a second one."""
        if self._sending is not None or self.gone or self._hub.stopping:
            return
        following = self._next()
        if following is None:
            return
        if following.cancel_first:
            if not self._cancelling:
                self._cancel_turn()
            return
        self._withdrawn = False
        self._sending = asyncio.get_running_loop().create_task(self._send_next())
        self._sending.add_done_callback(self._sent)

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._sending = None
        if task.cancelled():
            return
        if task.exception() is not None:
            logger.error("a prompt could not be sent", exc_info=task.exception())
            return
        self._try(self.advance)

    async def _send_next(self) -> None:
        try:
            course = await self.bring()
        except RequestError as error:
            following = self._next()
            if following is not None:
                self._reject(following.entry.message_id, error.to_wire())
            return
        following = self._next()  # what waits may be something else by now
        if following is None or following.cancel_first:
            return
        entry = following.entry
        self.emit(self.fold.prompts.send(entry.message_id).events)
        await self._live.durable()
        known = self.fold.prompts.get(entry.message_id)
        if known is None or known.state is not PromptState.SENT or course is not self._course:
            return  # the agent was lost, or the session closed
        if self._withdrawn:
            self._reject(entry.message_id, ErrorObject(-32800, "Request cancelled"))
            return
        await self._write(course, entry)

    async def _write(self, course: Course, entry: Entry) -> None:
        content: list[Any] = [*entry.content]
        story, self._story = self._story, None
        self._beside = None
        if story is not None:
            self._beside = entry.content
            content.insert(0, v2.TextContent(text=story))
        self._written = content
        steer = entry.delivery is Delivery.STEER and self.fold.turn is not None
        try:
            await course.session.prompt(*content, delivery="steer" if steer else None, meta=entry.meta)
        except LinkLost:
            return  # what was sent is rejected with the rest
        except CallFailed as error:
            self._reject(entry.message_id, error.error)
        except LocalError as error:
            self._story = story
            self._reject(entry.message_id, InvalidParams(error.detail).to_wire())

    def _reject(self, message_id: str, error: ErrorObject) -> None:
        self._try(lambda: self.emit(self.fold.prompts.reject(message_id, error).events))

    # --- cancelling and closing --------------------------------------------------------------------

    def cancel(self, *, message_id: str | None = None) -> None:
        sent = [entry.message_id for entry in self.fold.prompts.sent]
        cancelled = self.fold.cancel(message_id=message_id)
        self.emit(cancelled.events)
        # What the agent has and has not answered, only the agent can give back (PROMPT-V2-33).
        meant = bool(sent) if message_id is None else message_id in sent
        if cancelled.turn is not None or meant:
            self._cancel_turn()

    def _cancel_turn(self) -> None:
        self._cancelling = self._withdrawn = True
        course, turn = self._course, self.fold.turn
        if course is None:
            return
        self.soon(course.session.cancel())
        if turn is not None:
            asyncio.get_running_loop().call_later(CANCEL_GRACE, self._end_cancelled, course, turn.turn_id)

    def _cancel_call(self, id: str) -> Callable[[], None] | None:
        call, course = self.fold.tools.get(id), self._course
        if course is None or call is None or call.final or getattr(call.capabilities, "cancel", None) is None:
            return None
        return lambda: self.soon(_quietly(course.session.cancel_tool_call(id)))

    def _cancel_terminal(self, id: str) -> Callable[[], None] | None:
        terminal, course = self.fold.terminals.get(id), self._course
        able = None if terminal is None else getattr(terminal.capabilities, "cancel", None)
        if course is None or able is None:
            return None
        return lambda: self.soon(_quietly(course.session.cancel_terminal(id)))

    def _end_cancelled(self, course: Course, turn_id: int) -> None:
        if self._course is course and self.fold.turn is not None and self.fold.turn.turn_id == turn_id:
            logger.warning("the agent of session %s did not stop in time, and is ended", self.id)
            course.left(f"it did not stop within {CANCEL_GRACE:g} s")

    async def rest(self, deadline: float) -> None:
        """Wait until nothing is worked on, but not for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(deadline):
                while self.fold.turn is not None or self.fold.prompts.sent:
                    self._ended.clear()
                    await self._ended.wait()

    async def cut(self) -> None:
        """What is at work is cut short, and says so."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])
        self._part()
        self._try(lambda: self.emit(self.fold.interrupt()))
        with suppress(StoreError, SessionUnknown):
            await self._live.durable()

    async def stop(self) -> None:
        """The hub ends, or lets the session go."""
        await self.cut()
        await self._end_background()

    async def close(self) -> None:
        self.cancel()
        await self.rest(CLOSE_GRACE)
        course = self._course
        if course is not None and course.session.abilities.close:
            with suppress(AntiphonError, TimeoutError):
                async with asyncio.timeout(CLOSE_GRACE):
                    session = course.session
                    course.cut()
                    await session.close()
        self._part()
        await self._end_background()
        self.emit(self.fold.close())
        await self._live.durable()

    # --- configuration -----------------------------------------------------------------------------

    async def set_config(self, id: str, value: Value) -> None:
        """The agent decides; what comes of it is told as any update of its own."""
        course = await self.bring()
        try:
            await course.session.set_config(id, value)
        except LocalError as error:
            raise InvalidParams(error.detail) from None
        except (CallFailed, LinkLost) as error:
            raise told(error) from error


def told(error: BaseException) -> RequestError:
    """An error of the agent, or of its start, as clients are told it."""
    if isinstance(error, CallFailed):
        return RequestError(error.error.code, error.error.message, data=error.error.data)
    if isinstance(error, RequestError):
        return error
    if isinstance(error, LinkLost):
        return RequestError(AntiphonError.code, f"The agent ended: {error.reason}", data={"reason": "agent"})
    if isinstance(error, LocalError) and not isinstance(error, SpawnFailed):
        return RequestError(InvalidParams.code, str(error), data={"reason": "agent"})
    return RequestError(AntiphonError.code, f"The agent cannot be reached: {error}", data={"reason": "agent"})
