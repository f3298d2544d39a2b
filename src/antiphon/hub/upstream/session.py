"""UpstreamSession: one session at an agent behind the hub.

It upgrades what the agent sends to v2, tracks the agent's turns, and hands everything on at once to the
worker of a hub session (`WorkerFeed`). The journal of the hub session has the contents; this session folds
only what tells turns apart.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Raw, structs

from antiphon.bridge.prompts import Repeat
from antiphon.bridge.upgrade.originals import NOT_UPGRADED, Originals, is_plain
from antiphon.client.protocol.abilities import Abilities
from antiphon.client.protocol.agent_connection import AgentConnection
from antiphon.client.protocol.config_options import ConfigOptions
from antiphon.client.protocol.dialect import STREAMED, USER_UPDATES, AgentDialect, AgentEvent, text_chunk_v2
from antiphon.client.protocol.dialect_v1 import AgentDialectV1
from antiphon.client.protocol.prompt_calls import PromptCalls, check_delivery
from antiphon.client.protocol.questions import AnswerMemory, Decider, PendingQuestions
from antiphon.client.protocol.session_opener import Setup
from antiphon.client.protocol.turn_end import TurnEnd
from antiphon.client.protocol.turn_tracker import TurnTracker
from antiphon.engine.annotations import Annotation
from antiphon.engine.events import AnyBody, Event, QuestionClosed, QuestionOpened, Updated
from antiphon.engine.fold import is_state
from antiphon.engine.session import Session
from antiphon.engine.subagents import SubagentInfo
from antiphon.engine.transcript import TYPE_OF
from antiphon.engine.turn import Effect
from antiphon.errors import LinkLost
from antiphon.hub.upstream.worker_feed import AgentUpdate, SentPrompt, WorkerFeed
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.updates import TextChunk, written
from antiphon.schema.version import without_ours
from antiphon.server.ids import new_id

CONTENTS = frozenset([*TYPE_OF, v2.TerminalOutputChunk, v2.CompactionSummaryChunk, v2.SessionMessageChunk])
"""Updates that say nothing about turns: they are not kept here."""
_NOT_ENCODED = Raw(b"")


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
        self.feed = WorkerFeed(session_id)

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
        return self.fold.facts.available_commands

    @property
    def top(self) -> UpstreamSession:
        """The session that this one works for, and that works for none; or this one."""
        session = self
        while session.parent is not None:
            session = session.parent
        return session

    # --- opening and leaving -----------------------------------------------------------------------

    def set_up(self, request: Setup) -> None:
        """Do nothing: the worker knows how to open its session again."""

    def opened(self, meta: dict[str, Any]) -> None:
        self.opened_meta = meta

    def begun(self) -> None:
        self.feed.opened()

    def leave(self, reason: LinkLost | str) -> None:
        self.prompts.handle(self.dialect.stop_waiting())  # they were answered: they are not interrupted
        self.feed.end(reason.reason if isinstance(reason, LinkLost) else reason)
        self.feed.worker = None  # it interrupts its own turns
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
        feed = self.feed
        if feed.worker is None:
            for chunk in chunks:
                feed.add(AgentUpdate(text_chunk_v2(chunk)))
            return True
        if feed.mark:
            for chunk in chunks:
                chunk.message_id = f"{chunk.message_id}{feed.mark}"
        feed.worker.agent_streamed_text(chunks)
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
        return self.feed.pace()

    def receive(self, params: Any) -> Awaitable[None] | None:
        self._receive(self.dialect.read_update(params.update), meta=params.meta)
        return self.feed.pace()

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
            feed = self.feed
            if feed.worker is None:
                feed.add(AgentUpdate(chunk))
            elif feed.mark:
                feed.worker.agent_streamed(structs.replace(chunk, message_id=chunk.message_id + feed.mark))
            else:
                feed.worker.agent_streamed(chunk)
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
        self.feed.add(AgentUpdate(update, self._original, self._meta))
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
        self.feed.add(question)

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
        check_delivery(delivery, self.abilities)
        operation_id = new_id("op") if self.abilities.replay_after else None
        return self.prompts.send(prompt, content, delivery=delivery, operation_id=operation_id, meta=meta)

    def prompt_sent(self, prompt: SentPrompt, request_id: int) -> None:
        self.turns.prompt_sent()
        self.note_activity()

    def prompt_accepted(self, prompt: SentPrompt, *, joins: bool, repeat: Repeat | None = None) -> None:
        if self.feed.worker is not None:
            self.feed.worker.agent_accepted(prompt)
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

    async def annotate(self, message_id: str, annotation: Annotation, *, removed_id: str | None) -> None:
        """Pass on an annotation of a client, or with `removed_id` its removal."""
        by = {} if annotation.by is None else {"by": annotation.by.to_meta()}
        if removed_id is None:
            value = {"kind": str(annotation.kind), "value": annotation.value, "operationId": annotation.id}
            method, params = "annotate", {"messageId": message_id, **value}
        else:
            method, params = "remove_annotation", {"annotationId": removed_id}
        await self.agent.connection.call(f"_antiphon/{method}", {"sessionId": self.id, **by, **params})
