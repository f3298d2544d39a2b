"""SessionCore: the parts of a client's session, and what the client and the connection do with them.

`ClientSession` shows its users what they need of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Sequence
from typing import Any, Protocol

from antiphon.client.link import Link
from antiphon.client.protocol.abilities import Abilities
from antiphon.client.protocol.dialect import AgentDialect, AgentEvent
from antiphon.client.protocol.prompt_calls import PromptCalls
from antiphon.client.protocol.session_opener import NewRequest
from antiphon.client.protocol.turn_end import TurnEnd
from antiphon.client.session.annotations import (
    AnyMessage,
    annotate_params,
    annotation_id_in,
    remove_params,
)
from antiphon.client.session.canceller import Canceller
from antiphon.client.session.config_options import ConfigOptions
from antiphon.client.session.questions import AnswerMemory, Decider, PendingQuestions
from antiphon.client.session.queue import PromptQueue
from antiphon.client.session.resume_point import ResumePoint, new_operation_id
from antiphon.client.session.tracker import Follower, SessionTracker
from antiphon.client.session.turn import ClientTurn, RefusedTurns, SessionEvent, TurnsByRequest
from antiphon.connection import Connection
from antiphon.engine.annotations import Annotation, AnnotationKind
from antiphon.engine.events import Delivery
from antiphon.engine.session import Session
from antiphon.engine.subagents import SubagentInfo
from antiphon.engine.who import Who
from antiphon.errors import LinkLost, LocalError
from antiphon.schema import v2
from antiphon.schema.updates import TextChunk
from antiphon.schema.version import V1, Agreement, without_ours


class CoreClient(Protocol):
    """The client of a session, as far as its core uses it."""

    link: Link
    lost: LinkLost | None
    _lasting: bool
    _decider: Decider
    _answer_memory: AnswerMemory

    @property
    def connection(self) -> Connection: ...

    @property
    def agreement(self) -> Agreement: ...

    @property
    def abilities(self) -> Abilities: ...

    def _operation(self, kind: str, operation_id: str | None) -> dict[str, str]:
        """The operation id of a request, by its name; empty if it has none."""

    def _subagent_announced(self, parent_id: str, info: SubagentInfo) -> None: ...


class SessionCore:
    """Implements `OpenedSession`, `TrackerListener` and `TurnSession`."""

    def __init__(
        self, client: CoreClient, session_id: str, dialect: AgentDialect, follower: Follower | None
    ) -> None:
        self.id = session_id
        self.dialect = dialect
        self._client = client
        connection = client.connection
        self.resume_point = ResumePoint(session_id)
        self.opened_meta: dict[str, Any] = {}
        """The `_meta` of the answer that opened the session."""
        self.refused = RefusedTurns()
        self.by_request = TurnsByRequest()
        at_end = dialect.answers_at_end
        self.tracker = SessionTracker(self, lambda: ClientTurn(self), serial=at_end, follower=follower)
        self.prompts: PromptCalls[ClientTurn] = PromptCalls(
            session_id, connection, dialect, self.tracker, lasts=lambda: self.lasts
        )
        self.questions = PendingQuestions(
            session_id,
            self.tracker,
            dialect,
            client._decider,
            client._answer_memory,
            self.prompts.handle,
            v1=client.agreement.version == V1,
        )
        self.canceller = Canceller(
            session_id,
            connection,
            dialect,
            self.tracker,
            self.questions,
            lambda given: client._operation("cancel", given),
        )
        self.queue = PromptQueue(
            session_id,
            connection,
            self.tracker,
            lambda content: ClientTurn(self, content),
            abilities=lambda: client.abilities,
            operation=lambda: client._operation("inject", None),
            lasts=lambda: self.lasts,
            at_end=at_end,
        )
        self.config = ConfigOptions(session_id, connection, dialect, self.tracker)

    @property
    def fold(self) -> Session:
        return self.tracker.fold

    @property
    def config_options(self) -> list[v2.SessionConfigOption]:
        return self.config.options

    @property
    def commands(self) -> list[v2.AvailableCommand]:
        commands = self.fold.facts.commands
        return [] if commands is None else list(commands.latest.available_commands)

    # --- prompts -----------------------------------------------------------------------------------

    def start_prompt(
        self,
        turn: ClientTurn,
        *,
        delivery: str | None = None,
        operation_id: str | None = None,
        meta: dict[str, Any] | None = None,
    ) -> asyncio.Future[None]:
        """Send the prompt of a turn. The future is done once the agent has accepted it, and fails if the
        agent refuses it."""
        self.check_open()
        ours: dict[str, Any] = {}
        if delivery is not None:
            if delivery not in self._client.abilities.delivery:
                raise LocalError(f"this agent does not offer to {delivery} prompts")
            ours["delivery"] = str(delivery)
        if operation_id is None and self._client.abilities.replay_after:
            operation_id = new_operation_id()
        if operation_id is not None:
            ours["operationId"] = operation_id
            self.resume_point.operations.append(operation_id)
        joins = delivery == Delivery.STEER
        return self.prompts.send(turn, turn.prompt or [], ours, meta=meta, joins=joins)

    def check_open(self) -> None:
        if self.tracker.left is not None and self._client.lost is None:
            raise LocalError("this client has left the session: open it again")

    async def watch_silence(self, turn: ClientTurn, limit: float) -> None:
        """End a turn once the agent has sent nothing for `limit` seconds."""
        tracker = self.tracker
        while not turn.ended:
            if self.questions.open or not self._client.link.up:
                tracker.note_activity()  # the agent waits for this client, or cannot be reached
            left = tracker.last_activity + limit - time.monotonic()
            if left > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await turn.drained()
                continue
            end = TurnEnd.interrupted(f"the agent was silent for {limit:g} s")
            if not self.prompts.withdraw(turn):
                self.canceller.cancel_soon(turn)
                self.prompts.give_up(turn, end)
            tracker.prompt_ended(turn, end)

    # --- called by turns and by the tracker --------------------------------------------------------

    async def cancel_turn(self, turn: ClientTurn) -> None:
        await self.canceller.cancel_turn(turn)

    def turn_ended(self, turn: ClientTurn, events: list[SessionEvent], end: TurnEnd) -> None:
        if end.refused and events:
            self.refused.add(events)
        if turn.request_id is not None:
            self.by_request.end(turn.request_id, end)

    def user_message_shown(self, message_id: str) -> None:
        self.queue.user_message_shown(message_id)

    def turn_ending(self) -> None:
        self.questions.cancel_foreground()  # PROMPT-V2-26: a turn that is over asks nothing any more

    def turn_changed(self) -> None:
        self.canceller.turn_changed()

    def subagent_announced(self, info: SubagentInfo) -> None:
        self._client._subagent_announced(self.id, info)

    def prompt_sent(self, turn: ClientTurn, request_id: int) -> None:
        self.by_request.add(turn, request_id)

    def prompt_too_late(self, turn: ClientTurn) -> None:
        self.canceller.cancel_once_running(turn)

    # --- annotations -------------------------------------------------------------------------------

    async def annotate(
        self,
        message: AnyMessage,
        value: str,
        *,
        kind: AnnotationKind,
        by: Who | None = None,
        operation_id: str | None = None,
    ) -> str:
        """Put a reaction or a note on a message. Returns the id of the annotation."""
        self._check_annotations()
        params = annotate_params(message, value, kind=kind, by=by, operation_id=operation_id)
        return annotation_id_in(await self.queue.call("annotate", **params))

    async def remove_annotation(self, annotation: Annotation | str, *, by: Who | None = None) -> None:
        self._check_annotations()
        await self.queue.call("remove_annotation", **remove_params(annotation, by))

    def _check_annotations(self) -> None:
        if not self._client.abilities.annotations:
            raise LocalError("this agent takes no annotations of messages")

    # --- opening -----------------------------------------------------------------------------------

    def set_up(self, request: NewRequest | v2.ResumeSessionRequest) -> None:
        self.resume_point.set_up(request)

    def opened(self, meta: dict[str, Any]) -> None:
        self.resume_point.opened(meta)
        self.opened_meta = meta

    def begun(self) -> None:
        if self.tracker.follower is not None:
            self.tracker.follower.opened()

    # --- updates, in the lane ----------------------------------------------------------------------

    def receive(self, params: Any) -> None:
        """Apply a `session/update` notification."""
        meta = params.meta
        if meta is not None and not self.resume_point.advance(meta):
            self.tracker.note_activity()
            return
        events = self.dialect.read_update(params.update)
        self.receive_events(events, meta=None if self.tracker.follower is None else meta)

    def receive_events(
        self, events: Sequence[AgentEvent], *, meta: dict[str, Any] | None, original: bytes | None = None
    ) -> None:
        """Apply an update that was read already. A hub also keeps its `_meta` and its original bytes."""
        tracker = self.tracker
        tracker.note_activity()
        tracker.original, tracker.meta = original, None if meta is None else without_ours(meta)
        try:
            self.prompts.handle(events)
        finally:
            tracker.original = tracker.meta = None

    def receive_text(self, chunks: Sequence[TextChunk]) -> bool:
        """Pass plain text chunks to the follower. Returns False if each has to be read by itself."""
        follower = self.tracker.follower
        if follower is None or not self.dialect.name_text_chunks(chunks):
            return False
        self.tracker.note_activity()
        follower.streamed_text(chunks)
        return True

    def apply(self, update: v2.SessionUpdate) -> None:
        """Apply a fact that did not come as an update."""
        self.tracker.apply(update)

    def pace(self) -> Awaitable[None] | None:
        """What to wait for before more of the agent is read."""
        return None if self.tracker.follower is None else self.tracker.follower.pace()

    # --- links -------------------------------------------------------------------------------------

    @property
    def lasts(self) -> bool:
        """Whether the session continues over another link without a gap."""
        client = self._client
        return client._lasting and client.abilities.replay_after and self.resume_point.cursor is not None

    def link_lost(self, reason: LinkLost) -> None:
        """The link was lost, everything that came over it has been applied, and another one may come."""
        self.questions.link_lost()
        if not self.lasts:
            cut = TurnEnd.interrupted(reason)
            self.prompts.link_lost(cut)
            self.queue.leave(reason, cut)
            self.tracker.interrupt(cut)

    def restart(self) -> None:
        """The agent is about to replay the session from its beginning."""
        self.dialect.restart()
        self.tracker.restart()
        self.refused = RefusedTurns()

    def link_restored(self) -> None:
        self.tracker.replaying = False
        self.prompts.link_restored()
        self.canceller.link_restored()

    def leave(self, reason: LinkLost | str) -> None:
        """End everything that is open: nothing of the session comes any more."""
        lost = reason if isinstance(reason, LinkLost) else LinkLost(reason)
        cut = TurnEnd.interrupted(reason)
        follower = self.tracker.follower
        if follower is not None:
            self.prompts.handle(self.dialect.stop_waiting())  # they were answered: they are not interrupted
            self.tracker.follower = None  # the follower interrupts its own turns
            follower.left(reason)
        self.questions.leave()
        self.tracker.expire_questions()  # before the turns end that they belong to
        self.prompts.close(lost, cut)
        self.queue.leave(lost, cut)
        self.tracker.leave(cut)
