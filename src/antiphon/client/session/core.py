"""SessionCore: the parts of a client's session, and what the client and the connection do with them.

`ClientSession` shows its users what they need of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any, Generic, TypeAlias, TypeVar

from antiphon.client.protocol.config_options import ConfigOptions
from antiphon.client.protocol.dialect import AgentDialect
from antiphon.client.protocol.prompt_calls import PromptCalls, check_delivery
from antiphon.client.protocol.questions import PendingQuestions
from antiphon.client.protocol.session_opener import Setup
from antiphon.client.protocol.turn_end import TurnEnd
from antiphon.client.session.canceller import Canceller
from antiphon.client.session.context import SessionContext
from antiphon.client.session.queue import PromptQueue
from antiphon.client.session.resume_point import ResumePoint, new_operation_id
from antiphon.client.session.tracker import SessionTracker
from antiphon.client.session.turn import ClientTurn, RefusedTurns, SessionEvent, TurnsByRequest
from antiphon.engine.annotations import Annotation, check_value
from antiphon.engine.session import Session
from antiphon.engine.subagents import SubagentInfo
from antiphon.engine.transcript import Message
from antiphon.errors import LinkLost, LocalError
from antiphon.schema import v2
from antiphon.schema.antiphon.messages import AnnotateResponse, AnnotationKind, MessageRole

AnyMessage: TypeAlias = str | Message | ClientTurn
"""A message id, a message, or a turn whose prompt is the message."""


V = TypeVar("V")


class SessionCore(Generic[V]):
    """Implements `SessionAtAgent`, `TrackerListener` and `TurnSession`. `V` is what users see of it."""

    def __init__(
        self,
        context: SessionContext,
        session_id: str,
        dialect: AgentDialect,
        request: Setup,
        view: Callable[[SessionCore[V]], V],
    ) -> None:
        """`request`: how the session was opened. `view` makes what users see of the session."""
        self.id = session_id
        self.cwd: str = request.cwd
        self.additional_directories = tuple(request.additional_directories)
        self.dialect = dialect
        self.parent: SessionCore[V] | None = None
        """The session that this one works for."""
        self.children: dict[str, tuple[SubagentInfo, SessionCore[V]]] = {}
        """The sessions that work for this one, by their ids."""
        self.context = context
        self._agent = context.agent
        connection = self._agent.connection
        self.resume_point = ResumePoint(session_id)
        self.opened_meta: dict[str, Any] = {}
        """The `_meta` of the answer that opened the session."""
        self.refused = RefusedTurns()
        self.by_request = TurnsByRequest()
        self.tracker = SessionTracker(
            self,
            lambda: ClientTurn(self),
            serial=dialect.answers_at_end,
            shows=context.agent.abilities.replay_after,  # as docs/extensions.md says
        )
        self.prompts: PromptCalls[ClientTurn] = PromptCalls(
            session_id, connection, dialect, self.tracker, lasts=lambda: self.lasts
        )
        self.questions = PendingQuestions(
            session_id,
            self.tracker,
            dialect,
            context.decider,
            context.answer_memory,
            self.prompts.handle,
        )
        self.canceller = Canceller(context, session_id, dialect, self.tracker, self.questions)
        self.queue = PromptQueue(
            context,
            session_id,
            dialect,
            self.tracker,
            lambda content: ClientTurn(self, content),
            check_open=self.check_open,
            lasts=lambda: self.lasts,
        )
        self.config = ConfigOptions(session_id, connection, dialect, self.tracker)
        self.view: V = view(self)

    @property
    def fold(self) -> Session:
        return self.tracker.fold

    @property
    def config_options(self) -> list[v2.SessionConfigOption]:
        return self.config.options

    @property
    def commands(self) -> list[v2.AvailableCommand]:
        return self.fold.facts.available_commands

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
        abilities = self._agent.abilities
        check_delivery(delivery, abilities)
        if operation_id is None and abilities.replay_after:
            operation_id = new_operation_id()
        if operation_id is not None:
            self.resume_point.operations.append(operation_id)
        return self.prompts.send(
            turn, turn.prompt or [], delivery=delivery, operation_id=operation_id, meta=meta
        )

    def check_open(self) -> None:
        """Raise `LocalError` if the session takes no requests of this client."""
        self.check_not_subagent()
        if self.tracker.left is not None and self._agent.lost is None:
            raise LocalError("this client has left the session: open it again")

    def check_not_subagent(self) -> None:
        if self.parent is not None:
            raise LocalError("the session of a subagent can only be followed")

    async def watch_silence(self, turn: ClientTurn, limit: float) -> None:
        """End a turn once the agent has sent nothing for `limit` seconds."""
        tracker = self.tracker
        while not turn.ended:
            if self.questions.open or not self.context.link.up:
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
        self.queue._user_message_shown(message_id)

    def turn_ending(self) -> None:
        self.questions.cancel_foreground()  # PROMPT-V2-26: a turn that is over asks nothing any more

    def turn_changed(self) -> None:
        self.canceller.turn_changed()

    def subagent_announced(self, info: SubagentInfo) -> None:
        self._agent.subagent_announced(self, info)

    def adopt(self, child: SessionCore[V], info: SubagentInfo) -> None:
        child.parent = self
        self.children[info.id] = info, child

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
        operation_id: str | None = None,
    ) -> str:
        """Put a reaction or a note on a message. Returns the id of the annotation."""
        self._check_annotations()
        message_id = message if isinstance(message, str) else message.message_id
        if message_id is None:
            raise LocalError("this message has no id yet: its prompt was not accepted")
        try:
            check_value(kind, value)
        except ValueError as error:
            raise LocalError(str(error)) from None
        made: AnnotateResponse = await self.context.call_antiphon(
            self.id,
            "annotate",
            message_id=message_id,
            role=MessageRole(message.role) if isinstance(message, Message) else None,
            kind=kind,
            value=value,
            operation_id=operation_id,
        )
        return made.annotation_id

    async def remove_annotation(self, annotation: Annotation | str) -> None:
        self._check_annotations()
        id = annotation if isinstance(annotation, str) else annotation.id
        await self.context.call_antiphon(self.id, "remove_annotation", annotation_id=id)

    def _check_annotations(self) -> None:
        if not self._agent.abilities.annotations:
            raise LocalError("this agent takes no annotations of messages")

    # --- opening -----------------------------------------------------------------------------------

    def set_up(self, request: Setup) -> None:
        self.resume_point.set_up(request)

    def opened(self, meta: dict[str, Any]) -> None:
        self.resume_point.opened(meta)
        self.opened_meta = meta

    def begun(self) -> None:
        """What the agent sent before its answer comes now, as any other update."""

    # --- updates, in the lane ----------------------------------------------------------------------

    def receive(self, params: Any) -> None:
        """Apply a `session/update` notification."""
        meta = params.meta
        if meta is not None and not self.resume_point.advance(meta):
            self.tracker.note_activity()
            return
        self.tracker.note_activity()
        self.prompts.handle(self.dialect.read_update(params.update))

    def apply(self, update: v2.SessionUpdate) -> None:
        """Apply a fact that did not come as an update."""
        self.tracker.apply(update)

    # --- links -------------------------------------------------------------------------------------

    @property
    def lasts(self) -> bool:
        """Whether the session continues over another link without a gap."""
        able = self.context.lasting and self._agent.abilities.replay_after
        return able and self.resume_point.cursor is not None

    def link_lost(self, reason: LinkLost) -> None:
        """The link was lost, everything that came over it has been applied, and another one may come."""
        self.questions.link_lost()
        if not self.lasts:
            cut = TurnEnd.interrupted(reason)
            self.prompts.link_lost(cut)
            self.queue._leave(reason, cut)
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
        self.questions.leave()
        self.tracker.expire_questions()  # before the turns end that they belong to
        self.prompts.close(lost, cut)
        self.queue._leave(lost, cut)
        self.tracker.leave(cut)
