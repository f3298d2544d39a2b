"""UpstreamSession: one session at an agent behind the hub.

It upgrades what the agent sends to v2, tracks the agent's turns, and hands everything on at once to the
worker of a hub session. It keeps events until there is a worker. The journal of the hub session has the
contents; here is only what tells turns apart.

Agents number as they like, each session from its beginning. Where a hub session continues in a new session at
the agent, the first message there must not replace the first one here (invariant 7): `mark` is appended to
each message id.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from msgspec import Raw, structs

from antiphon.bridge.prompts import Repeat
from antiphon.bridge.upgrade.originals import NOT_UPGRADED, Originals, is_plain
from antiphon.client.protocol.abilities import Abilities
from antiphon.client.protocol.agent_connection import AgentConnection
from antiphon.client.protocol.config_options import ConfigOptions
from antiphon.client.protocol.dialect import STREAMED, USER_UPDATES, AgentDialect, AgentEvent, text_chunk_v2
from antiphon.client.protocol.dialect_v1 import AgentDialectV1
from antiphon.client.protocol.prompt_calls import PromptCalls
from antiphon.client.protocol.questions import AnswerMemory, Decider, PendingQuestions
from antiphon.client.protocol.session_opener import Setup
from antiphon.client.protocol.turn_end import TurnEnd
from antiphon.client.protocol.turn_tracker import TurnTracker
from antiphon.engine.annotations import Annotation
from antiphon.engine.events import AnyBody, Event, QuestionClosed, QuestionOpened, Updated
from antiphon.engine.fold import is_state
from antiphon.engine.questions import Question
from antiphon.engine.session import Session
from antiphon.engine.subagents import SubagentInfo
from antiphon.engine.transcript import TYPE_OF, MessageChunk, about_in
from antiphon.engine.turn import Effect
from antiphon.errors import LinkLost, LocalError
from antiphon.hub.upstream.early_events import AgentUpdate, EarlyEvents, Notified
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.schema.updates import TextChunk, written
from antiphon.schema.version import with_ours, without_ours
from antiphon.server.ids import new_id
from antiphon.server.session import ServedSession

LONGEST_WAIT = 10.0
"""Seconds that a request of an agent waits for the client that begins the session."""
CONTENTS = frozenset([*TYPE_OF, v2.TerminalOutputChunk, v2.CompactionSummaryChunk, v2.SessionMessageChunk])
"""Updates that say nothing about turns: they are not kept here."""
_NOT_ENCODED = Raw(b"")


class UpstreamListener(Protocol):
    """The worker of a hub session, as what its agent sends reaches it: in the lane, at once."""

    session: ServedSession

    def agent_accepted(self, prompt: SentPrompt) -> None: ...
    def agent_sent(
        self, update: v2.SessionUpdate, original: bytes | None, meta: dict[str, Any] | None
    ) -> None: ...
    def agent_streamed(self, chunk: MessageChunk) -> None: ...
    def agent_streamed_text(self, chunks: Sequence[TextChunk]) -> None: ...
    def agent_asked(self, question: Question) -> None:
        """The agent has opened or closed a question."""

    def agent_notified(self, method: str, params: Any) -> None: ...
    def agent_left(self, reason: str) -> None: ...
    def agent_paced(self) -> Awaitable[None] | None:
        """What to wait for before more of the agent is read."""

    async def begun(self) -> None:
        """Wait for the client that begins the session."""

    async def decide_permission(
        self, question_id: str, request: v2.RequestPermissionRequest, asking: UpstreamSession
    ) -> v2.RequestPermissionResponse | None: ...
    async def decide_elicitation(self, elicitation: Any, asking: UpstreamSession) -> Any: ...


class SentPrompt:
    """A prompt that was sent to the agent."""

    __slots__ = ("__weakref__", "ended", "message_id")

    def __init__(self) -> None:
        self.message_id: str | None = None
        """The agent's id of its message, once known."""
        self.ended = False


class UpstreamSession:
    """Implements `SessionAtAgent` and `TrackedSession`."""

    def __init__(
        self,
        agent: AgentConnection[UpstreamSession],
        session_id: str,
        dialect: AgentDialect,
        request: Setup,
        decider: Decider,
        memory: AnswerMemory,
    ) -> None:
        """`request`: how the session was opened."""
        self.id = session_id
        self.cwd: str = request.cwd
        self.additional_directories = tuple(request.additional_directories)
        self.dialect = dialect
        self.parent: UpstreamSession | None = None
        """The session that this one works for."""
        self.agent = agent
        self.opened_meta: dict[str, Any] = {}
        """The `_meta` of the answer that opened the session."""
        self.fold = Session()
        """What tells turns apart: no messages, and no output of terminals."""
        self.turns: TurnTracker[SentPrompt, None] = TurnTracker(
            SentPrompt, lambda prompt, event: None, serial=dialect.answers_at_end
        )
        self.last_activity = time.monotonic()
        connection = agent.connection
        self.prompts: PromptCalls[SentPrompt] = PromptCalls(session_id, connection, dialect, self)
        self.questions = PendingQuestions(
            session_id,
            self,
            dialect,
            decider,
            memory,
            self.prompts.handle,
        )
        self.config = ConfigOptions(session_id, connection, dialect, self)
        self._originals = Originals() if isinstance(dialect, AgentDialectV1) else None
        self._original: bytes | None = None
        """What a v1 agent wrote of the update that is being applied, if that has to be kept."""
        self._meta: dict[str, Any] | None = None
        """The `_meta` beside the update that is being applied."""
        self.early = EarlyEvents(session_id)
        self.worker: UpstreamListener | None = None
        """What works with the session; None before `lead` and after the end."""
        self._mark = ""
        self._led = asyncio.Event()
        self.ended: str | None = None
        """Why nothing of the session goes to a worker any more."""

    @property
    def abilities(self) -> Abilities:
        return self.agent.abilities

    @property
    def inserts(self) -> bool:
        """Whether the agent takes prompts while it works, and has ids of its own for them; a v1 agent does
        not."""
        return not self.dialect.answers_at_end

    @property
    def config_options(self) -> list[v2.SessionConfigOption]:
        return self.config.options

    @property
    def commands(self) -> list[v2.AvailableCommand]:
        commands = self.fold.facts.commands
        return [] if commands is None else list(commands.latest.available_commands)

    @property
    def top(self) -> UpstreamSession:
        """The session that this one works for, and that works for none; or this one."""
        session = self
        while session.parent is not None:
            session = session.parent
        return session

    # --- the worker --------------------------------------------------------------------------------

    def lead(
        self,
        worker: UpstreamListener,
        *,
        early: bool,
        mark: str = "",
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        """Hand everything to this worker from here on; with `early`, also what came until now. `begun` is
        called between what the answer that opened the session said and what the agent sent beside it."""
        self.worker, self._mark = worker, mark
        answered, came = self.early.take()
        for event in answered if early else ():
            self._hand_over(event, worker)
        begun()
        for event in came if early else ():
            self._hand_over(event, worker)
        self._led.set()
        if self.ended is not None:
            worker.agent_left(self.ended)

    def _hand_over(self, event: AgentUpdate | Question | Notified, worker: UpstreamListener) -> None:
        if isinstance(event, Notified):
            worker.agent_notified(*event)
        elif isinstance(event, Question):
            worker.agent_asked(event)
        else:
            worker.agent_sent(*(_marked(event, self._mark) if self._mark else event))

    def cut(self) -> None:
        """Hand nothing on any more."""
        self.worker = None
        self.ended = self.ended or "the hub let it go"
        self._led.set()

    async def led(self) -> UpstreamListener | None:
        """Wait for the worker: an agent may ask before there is one. None if there will be none."""
        await self._led.wait()
        return self.worker

    async def followed(self) -> None:
        """Wait for the worker, and for the client that begins its session."""
        worker = await self.led()
        if worker is not None:
            await worker.begun()

    async def wait_for_client(self) -> None:
        """The same for a new session, for as long as an agent can be kept waiting that does nothing else
        meanwhile."""
        if self.early.is_new:
            with suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_WAIT):
                    await self.followed()

    def notified(self, method: str, params: Any) -> None:
        """The agent sent an extension notification."""
        self._publish(Notified(method, params))

    def _publish(self, event: AgentUpdate | Question | Notified) -> None:
        if self.worker is not None:
            self._hand_over(event, self.worker)
        elif self.ended is None:
            self.early.add(event)

    def left(self, reason: LinkLost | str) -> None:
        """Nothing of the session comes any more: the worker is informed, once."""
        if self.ended is None:
            self.ended = reason.reason if isinstance(reason, LinkLost) else reason
            self._led.set()
            if self.worker is not None:
                self.worker.agent_left(self.ended)

    def pace(self) -> Awaitable[None] | None:
        """What to wait for before more of the agent is read."""
        return None if self.worker is None else self.worker.agent_paced()

    # --- opening and leaving -----------------------------------------------------------------------

    def set_up(self, request: Setup) -> None:
        """Do nothing: the worker knows how to open its session again."""

    def opened(self, meta: dict[str, Any]) -> None:
        self.opened_meta = meta

    def begun(self) -> None:
        self.early.answered()

    def leave(self, reason: LinkLost | str) -> None:
        self.prompts.handle(self.dialect.stop_waiting())  # they were answered: they are not interrupted
        self.left(reason)
        self.worker = None  # it interrupts its own turns
        self.questions.leave()
        lost = reason if isinstance(reason, LinkLost) else LinkLost(reason)
        self.prompts.close(lost, TurnEnd.interrupted(reason))

    # --- updates, in the lane ----------------------------------------------------------------------

    def receive_text(self, chunks: Sequence[TextChunk]) -> bool:
        """Hand on plain text chunks that were read together. Returns False if each has to be read by
        itself."""
        if not self.dialect.name_text_chunks(chunks):
            return False
        self.last_activity = time.monotonic()
        if self.worker is None:
            for chunk in chunks:
                self._publish(AgentUpdate(text_chunk_v2(chunk)))
            return True
        if self._mark:
            for chunk in chunks:
                chunk.message_id = f"{chunk.message_id}{self._mark}"
        self.worker.agent_streamed_text(chunks)
        return True

    def receive_line(self, params: Any, line: bytes | Raw) -> Awaitable[None] | None:
        """Apply an update of a v1 agent with the line that it was read from. The original is kept where
        downgrading would not give it back (invariant 8)."""
        dialect, originals = self.dialect, self._originals
        if originals is None or not isinstance(dialect, AgentDialectV1) or is_plain(params.update, line):
            return self.receive(params)
        released = dialect.upgrade.release(params.update)
        if released:
            self._receive(released)
        events = dialect.read_update(params.update)
        original = originals.of(params.update, written(line), events)
        if original is not None and all(isinstance(each, v2.StateUpdate) for each in events):
            events = [NOT_UPGRADED, *events]
        self._receive(events, meta=params.meta, original=original)
        return self.pace()

    def receive(self, params: Any) -> Awaitable[None] | None:
        self._receive(self.dialect.read_update(params.update), meta=params.meta)
        return self.pace()

    def _receive(
        self,
        events: Sequence[AgentEvent],
        *,
        meta: dict[str, Any] | None = None,
        original: bytes | None = None,
    ) -> None:
        self.last_activity = time.monotonic()
        self._original, self._meta = original, None if meta is None else without_ours(meta)
        try:
            self.prompts.handle(events)
        finally:
            self._original = self._meta = None

    def apply(self, update: v2.SessionUpdate, *, cut: TurnEnd | None = None) -> None:
        if type(update) in STREAMED and self._original is None and self._meta is None:
            chunk: Any = update
            if self.worker is None:
                self._publish(AgentUpdate(chunk))
            elif self._mark:
                self.worker.agent_streamed(structs.replace(chunk, message_id=chunk.message_id + self._mark))
            else:
                self.worker.agent_streamed(chunk)
            return
        before = self.fold.turn
        if before is not None and is_state(update) and self.fold.turns.effect_of(update) is Effect.ENDED:
            self.questions.cancel_foreground()  # PROMPT-V2-26: a turn that is over asks nothing any more
        self._fold_update(update)
        after = self.fold.turn
        if before is None and after is not None:
            self.turns.turn_opened()
        if isinstance(update, USER_UPDATES):
            self.turns.place(update.message_id)
            self.turns.add(None, update.message_id)
        self._publish(AgentUpdate(update, self._original, self._meta))
        if before is not None and after is None:
            for prompt in self.turns.turn_ended(cut or TurnEnd.from_state(update)):
                prompt.ended = True

    def _fold_update(self, update: v2.SessionUpdate) -> None:
        if type(update) in CONTENTS:
            return
        announced = update.session_id if type(update) is v2.SubagentUpdate else None
        is_new = announced is not None and self.fold.subagents.get(announced) is None
        self._fold(Updated.of(update, raw=_NOT_ENCODED))
        info = None if announced is None or not is_new else self.fold.subagents.get(announced)
        if info is not None:
            self.agent.subagent_announced(self, info)

    def _fold(self, body: AnyBody) -> None:
        self.fold.apply(Event(self.fold.last_seq + 1, time.time_ns() // 1_000_000, body))

    def adopt(self, child: UpstreamSession, info: SubagentInfo) -> None:
        child.parent = self

    def note_activity(self) -> None:
        self.last_activity = time.monotonic()

    # --- questions ---------------------------------------------------------------------------------

    def apply_question(self, body: QuestionOpened | QuestionClosed, *, background: bool) -> None:
        self._fold(body)
        question = self.fold.questions.get(body.question_id)
        if question is None:
            return
        if self._originals is not None and isinstance(body, QuestionOpened):
            permission = question.permission
            if permission is not None:
                self._originals.asked(permission)
        self._publish(question)

    def answer_elsewhere(self, question_id: str | None) -> tuple[Raw, Who] | None:
        return None  # the hub does not ask its agents who else is attached

    # --- prompts -----------------------------------------------------------------------------------

    def send_prompt(
        self,
        prompt: SentPrompt,
        content: list[v2.ContentBlock],
        *,
        delivery: str | None,
        meta: dict[str, Any] | None,
    ) -> asyncio.Future[None]:
        """Send a prompt. The future is done once the agent has accepted it, and fails if the agent refuses
        it. Raises `LocalError`, `LinkLost`."""
        ours: dict[str, Any] = {}
        if delivery is not None:
            if delivery not in self.abilities.delivery:
                raise LocalError(f"this agent does not offer to {delivery} prompts")
            ours["delivery"] = delivery
        if self.abilities.replay_after:
            ours["operationId"] = new_id("op")
        joins = delivery == Delivery.STEER
        return self.prompts.send(prompt, content, ours, meta=meta, joins=joins)

    def prompt_sent(self, prompt: SentPrompt, request_id: int) -> None:
        self.turns.prompt_sent()
        self.note_activity()

    def prompt_accepted(self, prompt: SentPrompt, *, joins: bool, repeat: Repeat | None = None) -> None:
        if self.worker is not None:
            self.worker.agent_accepted(prompt)
        if self.turns.prompt_accepted(prompt, joins=joins) is not None:
            prompt.ended = True
        else:
            self.turns.start_next()

    def prompt_repeated(self, prompt: SentPrompt, message_id: str | None) -> None:
        """Do nothing: each prompt has an operation id of its own."""

    def prompt_ended(self, prompt: SentPrompt, end: TurnEnd) -> None:
        self.turns.remove(prompt)
        prompt.ended = True

    def prompt_refused(self, prompt: SentPrompt, end: TurnEnd) -> None:
        prompt.ended = True

    def prompt_too_late(self, prompt: SentPrompt) -> None:
        """Do nothing: the worker waits for the answer, and cancels the turn by itself."""

    def conclude(self) -> None:
        """The agent accepted prompts after the end of a turn and began no other: it was theirs."""
        for prompt in self.turns.waiting:
            self.prompt_ended(prompt, TurnEnd())

    # --- requests ----------------------------------------------------------------------------------

    async def cancel(self, meta: dict[str, Any] | None = None) -> None:
        """Cancel everything that the session works on. `meta` goes beside the notification. Nothing is sent
        for a subagent that cannot be cancelled (SUB-02)."""
        if self.parent is not None:
            info = self.parent.fold.subagents.get(self.id)
            if info is None or not info.can_cancel:
                return
        self.dialect.cancel_sent()
        if self.turns.open is not None:
            self.turns.open.cancelled = True
        beside = without_ours(meta) or None
        params = v2.CancelSessionNotification(session_id=v2.SessionId(self.id), meta=beside)
        # The answers follow the notification, and do not wait for a congested link.
        self.questions.cancel_foreground()
        with suppress(LinkLost):
            await self.agent.connection.notify("session/cancel", params)

    async def cancel_tool_call(self, tool_call_id: str) -> None:
        params = v2.CancelToolCallRequest(
            session_id=v2.SessionId(self.id), tool_call_id=v2.ToolCallId(tool_call_id)
        )
        await self.agent.connection.call("tool_call/cancel", params)

    async def cancel_terminal(self, terminal_id: str) -> None:
        params = v2.CancelTerminalRequest(
            session_id=v2.SessionId(self.id), terminal_id=v2.TerminalId(terminal_id)
        )
        await self.agent.connection.call("terminal/cancel", params)

    async def annotate(self, message_id: str, annotation: Annotation, *, removed_id: str | None) -> None:
        """Pass on an annotation of a client, or with `removed_id` its removal."""
        by = {} if annotation.by is None else {"by": annotation.by.to_meta()}
        if removed_id is None:
            value = {"kind": str(annotation.kind), "value": annotation.value, "operationId": annotation.id}
            method, params = "annotate", {"messageId": message_id, **value}
        else:
            method, params = "remove_annotation", {"annotationId": removed_id}
        await self.agent.connection.call(f"_antiphon/{method}", {"sessionId": self.id, **by, **params})


def _marked(event: AgentUpdate, mark: str) -> AgentUpdate:
    """Return an update with the mark behind the message ids in it."""
    update: Any = event.update  # any kind of update may have a message's id
    original = event.original
    id = getattr(update, "message_id", None)
    about = about_in(getattr(update, "meta", None))
    if about is not None:
        update = structs.replace(update, meta=with_ours(update.meta, about={"messageId": about + mark}))
        original = None
    if id is not None:
        update = structs.replace(update, message_id=id + mark)
        original = None if original is not None and b'"messageId"' in original else original
    return AgentUpdate(update, original, event.meta)
