"""UpstreamWorker: has the work of a session done by an agent behind the hub.

What the agent does is journalled in the order of its lane, and published after the commit. Where the agent is
(`Binding`), what is sent there (`PromptDispatcher`) and what it asks (`UpstreamQuestions`) are parts of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from msgspec import UNSET, structs

from antiphon.client.protocol.dialect import STREAMED
from antiphon.engine.annotations import Annotation
from antiphon.engine.configuration import Value
from antiphon.engine.events import (
    AnyBody,
    Translated,
    Updated,
)
from antiphon.engine.fold import is_state
from antiphon.engine.questions import Question
from antiphon.engine.session import Session
from antiphon.engine.transcript import MessageChunk
from antiphon.engine.turn import Cause
from antiphon.errors import (
    AntiphonError,
    AuthRequired,
    CallFailed,
    ErrorObject,
    EventRefused,
    InvalidParams,
    LinkLost,
    LocalError,
    SessionUnknown,
    StoreError,
)
from antiphon.hub.context import HubContext
from antiphon.hub.records import HUB
from antiphon.hub.upstream.errors import to_request_error
from antiphon.hub.upstream.mcp import Provision
from antiphon.hub.upstream.session import UpstreamSession
from antiphon.hub.upstream.upstream import Upstream
from antiphon.hub.worker.binding import Binding
from antiphon.hub.worker.canceller import UpstreamCanceller
from antiphon.hub.worker.place import Place, go_on, news
from antiphon.hub.worker.prompt_acceptance import PromptAcceptance, attempt
from antiphon.hub.worker.prompt_dispatcher import PromptDispatcher
from antiphon.hub.worker.questions import UpstreamQuestions
from antiphon.hub.worker.subagents import UpstreamSubagents
from antiphon.live.session import LiveSession
from antiphon.schema import v2
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.schema.updates import TextChunk
from antiphon.schema.version import without_ours
from antiphon.schema.wire import Unknown
from antiphon.server.control.annotations import annotation_id
from antiphon.server.offer import ALWAYS, CONTENT
from antiphon.server.registry import SessionRegistry
from antiphon.server.session import ServedSession
from antiphon.server.session_facts import TITLE_LIMIT, SessionStart, is_title_chosen

logger = logging.getLogger("antiphon.hub")

CLOSE_GRACE = 5.0
BEGUN = v2.SessionStateUpdate(state=v2.State.RUNNING)


class UpstreamWorker:
    uses = 0
    """How often clients were about to use the session."""

    def __init__(self, session: ServedSession, registry: SessionRegistry, hub: HubContext) -> None:
        self.session = session
        self._hub = hub
        self.emit: Callable[[Sequence[AnyBody]], None] = session.emit
        self.live: LiveSession = session.live
        self.live.name_by_prompt()
        self.provision = Provision(session=session)
        """The clients that provide the MCP servers of the session."""
        self.questions = UpstreamQuestions(session, hub)
        self.subagents = UpstreamSubagents(
            session, registry, join=_join_parent, leave=lambda child: worker_of(child).subagents.end()
        )
        self.binding = Binding(session, hub, place=lambda: self.place, bind=self.bind)
        self._acceptance = PromptAcceptance(session, self.binding, self)
        self.dispatcher = PromptDispatcher(session, self.binding, self._acceptance, self)
        self._canceller = UpstreamCanceller(session, self.binding, self.dispatcher)
        self._ended = asyncio.Event()
        self._ended.set()
        # Calls of `Worker` and `UpstreamListener` that one part answers alone.
        self.queued = self.dispatcher.submitted
        self.take_back = self.dispatcher.take_back
        self.cancel_tool_call = self._canceller.cancel_tool_call
        self.cancel_terminal = self._canceller.cancel_terminal
        self.questions_changed = self.questions.changed
        self.decide_permission = self.questions.permission
        self.decide_elicitation = self.questions.elicitation
        self.agent_accepted = self._acceptance.agent_accepted

    @property
    def id(self) -> str:
        return self.session.id

    @property
    def fold(self) -> Session:
        return self.session.fold

    @property
    def place(self) -> Place:
        session = self.session
        return Place(session.cwd, session.additional_directories, session.mcp_servers, self.provision)

    @property
    def introduction(self) -> dict[str, Any]:
        """The agent of the session: it asks and answers there, and not the hub."""
        parent = self.session.parent
        if parent is not None:
            return parent.worker.introduction
        forks = {"agentForksAt": True} if self._agent_forks_at else {}
        return {"agent": self.binding.agent, **forks}

    @property
    def _agent_forks_at(self) -> bool:
        """Whether the agent can fork the session after a message, as far as it has told."""
        at_agent = self.binding.at_agent
        known = self._hub.known_agents.get(self.binding.agent) if at_agent is None else None
        able = at_agent.abilities if at_agent is not None else None if known is None else known.abilities
        return able is not None and able.fork and able.fork_at

    @property
    def accepted(self) -> tuple[type, ...]:
        """The content types that the running agent takes; every type while it does not run."""
        at_agent = self.binding.at_agent
        if at_agent is None:
            return (*ALWAYS, *CONTENT.values())
        able = at_agent.abilities
        return (*ALWAYS, *(kind for name, kind in CONTENT.items() if getattr(able, name)))

    @property
    def inserts(self) -> bool:
        return self.binding.inserts

    @property
    def is_set_up(self) -> bool:
        """Whether an agent works for the session: a client that joins then changes nothing of its setup."""
        return self.binding.at_agent is not None

    async def open(self) -> None:
        self.session.mcp_servers = self._hub.mcp_servers.pop(self.id, ())
        record, created = await self._hub.store.get(self.id), self.fold.created
        kept = None if record is None else record.meta.get(HUB)
        if kept is None and created is not None:
            # It was cut off as it began: by its creation alone, it has no session at its agent yet.
            agent = created.meta.get("agent")
            self.binding.agent = agent if isinstance(agent, str) else self._hub.default
        if isinstance(kept, dict):
            self.binding.restore(kept)

    def news(self) -> Sequence[Updated]:
        return ()

    def used(self) -> None:
        self.uses += 1

    def begin(self) -> None:
        """Do nothing: the agent has begun already."""

    def provide(self, provision: Provision) -> None:
        """Use the MCP servers that were offered to the agent before the session existed."""
        self.provision, provision.session = provision, self.session

    def note_start(self) -> None:
        """Note that the contents of the agent's answer are committed: the client that begins the session gets
        everything after that."""
        self.session.start = SessionStart.of(self.fold)

    # --- where the agent is ------------------------------------------------------------------------

    async def bind(
        self,
        upstream: Upstream,
        at_agent: UpstreamSession,
        *,
        again: bool,
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        binding = self.binding
        if not binding.chain or binding.chain[-1] != at_agent.id:
            binding.chain.append(at_agent.id)
        if again:
            go_on(at_agent, self.fold)
        self.session.opened_meta = without_ours(at_agent.opened_meta) or {}  # OBS-02
        binding.upstream, binding.at_agent = upstream, at_agent
        self._acceptance.promised.learn(self.fold.messages)
        self.questions.forget()
        self.subagents.follow(upstream, at_agent)
        at_agent.feed.lead(self, early=not again, mark=binding.mark, begun=begun)
        if again:
            upstream.cut_children(at_agent)
            for update in news(at_agent, self.fold):
                self.apply(update)
        await binding.keep()
        await self.live.durable()

    def leave_agent(self) -> None:
        """Leave the agent; it is started again when it is needed."""
        self.subagents.end()
        self.binding.release()

    def _lose_agent(self) -> None:
        self.leave_agent()
        self._acceptance.agent_lost()

    def agents_message_id(self, message_id: str) -> str | None:
        id, mark = self._acceptance.promised.agents(message_id), self.binding.mark
        return id.removesuffix(mark) if id.endswith(mark) else None

    def annotated(self, annotation: Annotation, *, removed: bool) -> None:
        """Pass an annotation on, if the agent runs and takes annotations. The hub's journal is what counts:
        the agent is not started for it, and nothing depends on its answer."""
        at_agent = self.binding.at_agent
        if at_agent is not None and at_agent.abilities.annotations:
            self.session.tasks.start_soon(self._relay_annotation(annotation, removed=removed))

    async def _relay_annotation(self, annotation: Annotation, *, removed: bool) -> None:
        at_agent, there = self.binding.at_agent, self.agents_message_id(annotation.message_id)
        if at_agent is None or there is None:
            return
        try:
            removed_id = annotation_id(annotation.id) if removed else None
            await at_agent.annotate(there, annotation, removed_id=removed_id)
        except AntiphonError as error:
            logger.debug("annotation of %s refused by the agent: %s", self.id, error)

    # --- prompts -----------------------------------------------------------------------------------

    def admit(self, delivery: Delivery) -> Delivery:
        self._hub.check_taking()
        if delivery is Delivery.AGENT and not self.inserts:
            return Delivery.QUEUE  # a v1 agent takes nothing while it works
        return delivery

    def advance(self) -> None:
        session = self.session
        if self.dispatcher.busy or session.gone or session.closing or self._hub.stopping:
            return
        following = self.dispatcher.next()
        if following is None:
            return
        if not following.cancel_first:
            self.dispatcher.begin(following)
        else:
            self._canceller.cancel_turn()

    def prompt_left(self) -> None:
        if not self._at_work:
            self._canceller.active = False  # the cancelled prompt never began
            self._ended.set()

    @property
    def _at_work(self) -> bool:
        return bool(self.fold.turn is not None or self.fold.turns.due or self.fold.prompts.sent)

    # --- control -----------------------------------------------------------------------------------

    def cancel(self, *, message_id: str | None = None, meta: dict[str, Any] | None = None) -> None:
        self._canceller.cancel(message_id, meta)

    async def configure(self, id: str, value: Value, meta: dict[str, Any] | None) -> None:
        """Set an option at the agent, which decides; its updates report the result."""
        at_agent = await self.binding.bring(may_lose_options=True)
        try:
            await at_agent.config.set(id, value, meta)
        except LocalError as error:
            raise InvalidParams(error.detail) from None
        except (CallFailed, LinkLost) as error:
            raise to_request_error(error) from error

    def client_left(self) -> None:
        """Ask the other clients, in case the client that was to answer has left."""
        if self.fold.questions.open:
            self.session.tasks.start_soon(self._ask_again())

    async def _ask_again(self) -> None:
        with suppress(StoreError, SessionUnknown):
            await self.live.durable()  # the fold may have questions that no client may know of yet
            self.session.questions.ask_again()

    # --- the end -----------------------------------------------------------------------------------

    async def rest(self, deadline: float) -> None:
        """Wait until the session is idle, at most `deadline` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(deadline):
                while self._at_work:
                    self._ended.clear()
                    await self._ended.wait()

    def interrupt(self) -> None:
        """Do nothing: the agent is left when its session is released."""

    async def stop(self) -> None:
        if self.session.mcp_servers:
            self._hub.mcp_servers[self.id] = self.session.mcp_servers
        await self.dispatcher.stop()
        self._lose_agent()
        shared = self._hub.home is not None  # then another hub goes on with the queue
        cause = Cause.HUB_STOPPED if self._hub.stopping else None
        attempt(lambda: self.emit(self.fold.interrupt(attended=shared, cause=cause)))
        with suppress(StoreError, SessionUnknown):
            await self.live.durable()

    async def close(self) -> None:
        self.cancel()
        await self.rest(CLOSE_GRACE)
        await self.dispatcher.stop()
        at_agent, upstream, closed = self.binding.at_agent, self.binding.upstream, False
        if at_agent is not None and at_agent.abilities.close:
            with suppress(AntiphonError, TimeoutError):
                async with asyncio.timeout(CLOSE_GRACE):
                    at_agent.feed.cut()
                    await at_agent.agent.close(at_agent)
                    closed = True
        self._lose_agent()
        if at_agent is not None and upstream is not None and not closed:
            with suppress(TimeoutError):  # SESS-38: nothing works on once the close is answered
                async with asyncio.timeout(CLOSE_GRACE):
                    await upstream.work_ended(at_agent.id)

    # --- what the agent sends ----------------------------------------------------------------------

    def agent_sent(
        self, update: v2.SessionUpdate, original: bytes | None, meta: dict[str, Any] | None
    ) -> None:
        try:
            if type(update) in STREAMED and original is None and meta is None:
                chunk: Any = update
                self.agent_streamed(chunk)
            else:
                self.apply(update, original, meta)
        except EventRefused as error:
            logger.warning("update dropped in session %s: %s", self.id, error)

    def agent_asked(self, question: Question) -> None:
        try:
            self.questions.asked(question)
        except EventRefused as error:
            logger.warning("question dropped in session %s: %s", self.id, error)

    def agent_streamed(self, chunk: MessageChunk) -> None:
        if self._acceptance.is_pending:
            self._acceptance.show_before(None)
        self.live.stream(chunk if chunk.meta is None else self._acceptance.promised.about(chunk))

    def agent_streamed_text(self, chunks: Sequence[TextChunk]) -> None:
        if self._acceptance.is_pending:
            self._acceptance.show_before(None)
        self.live.stream_text(chunks)

    def agent_notified(self, method: str, params: Any) -> None:
        """Pass an extension notification on to clients, with the id that the session has here."""
        named = isinstance(params, dict) and "sessionId" in params
        self.session.notify_clients(method, {**params, "sessionId": self.id} if named else params)

    def agent_paced(self) -> Awaitable[None] | None:
        return self.live.durable() if self.live.ahead else None

    async def begun(self) -> None:
        """Wait for the client that begins the session, if it does not follow the session yet."""
        if self.session.start is not None:
            await self.session.start.followed.wait()

    def agent_left(self, reason: str) -> None:
        if self.session.parent is None:
            logger.warning("agent of session %s lost: %s", self.id, reason)
        self.binding.fail()
        said = self.binding.last_words()
        self._lose_agent()
        cancelled = self._canceller.active  # then the cancel ended the turn
        cut = self.fold.interrupt(attended=True, cancelled=cancelled, cause=Cause.AGENT_LOST, said=said)
        attempt(lambda: self.emit(cut))
        self._idle()

    def apply(
        self,
        update: v2.SessionUpdate,
        original: bytes | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        """Commit an update of the agent. `original` is what a v1 agent wrote, `meta` the `_meta` of its
        notification."""
        self._acceptance.accept_named()
        here = self.subagents.update(update)
        here = self._acceptance.promised.about(here)
        if here is not update:
            update, original = here, None
        if isinstance(update, v2.UserMessage | v2.UserMessageChunk):
            if self._acceptance.holds_back(update, original, meta):
                return
        elif self._acceptance.is_pending:
            self._acceptance.show_before(update)
        if is_state(update):
            self._apply_state(update)
            return
        self.show(update, original, meta)

    def show(
        self, update: v2.SessionUpdate, original: bytes | None = None, meta: dict[str, Any] | None = None
    ) -> None:
        """Commit an update that is no state."""
        match update:
            case Unknown() if str(update.get("sessionUpdate")).startswith("_antiphon_") and original is None:
                return  # about the agent's own queue: this session has another one
            case v2.UserMessage() | v2.UserMessageChunk():
                update, original = self._acceptance.shown(update, original)
            case v2.SessionInfoUpdate() if update.title is not UNSET and is_title_chosen(self.fold):
                update, original = structs.replace(update, title=UNSET), None  # SESS-57
            case v2.SessionInfoUpdate(title=str(title)) if len(title) > TITLE_LIMIT:
                update, original = structs.replace(update, title=title[:TITLE_LIMIT]), None
        if original is None and meta is None:
            self.live.emit((Updated.of(update),))
        else:
            self.live.emit((Translated.make(update, origin=original, meta=meta),))
        if isinstance(update, v2.SubagentUpdate):
            self.subagents.committed(update)

    def _apply_state(self, update: Any) -> None:
        if isinstance(update, v2.SessionStateUpdate) and update.state is v2.State.REQUIRES_ACTION:
            update = structs.replace(update, meta=self.questions.name_in(update.meta))
        was = self.fold.turn
        idle = isinstance(update, v2.StateUpdate) and update.state is v2.State.IDLE
        if idle:
            self._acceptance.turn_ends(update)
        if self.fold.turns.due and idle and getattr(update, "stop_reason", None) is not None:
            self.emit(self.fold.update(BEGUN))  # an agent that only reports ends
            was = self.fold.turn
        error, upstream = getattr(update, "error", None), self.binding.upstream
        if error is not None:
            if error.code == AuthRequired.code and upstream is not None:
                upstream.wants_login = True  # AUTH-21
            told = self.binding.failure(ErrorObject(int(error.code), error.message, error.data))
            if told.data is not error.data:
                update = structs.replace(update, error=structs.replace(error, data=told.data))
        self.emit(self.fold.update(update))
        if was is not None and self.fold.turn is None:
            if not (self.fold.turns.last is not None and self.fold.turns.last.interrupted):
                self.binding.recover()
                if error is None:
                    self.binding.worked()
            self._idle()
        elif was is None and self.fold.turn is not None:
            if self._canceller.active:
                attempt(self._canceller.turn_opened)
            attempt(self.advance)  # a steering prompt waits for a turn to join

    def _idle(self) -> None:
        self._canceller.active = False
        self._ended.set()
        attempt(self.advance)


def worker_of(session: ServedSession) -> UpstreamWorker:
    """The worker of a session of a hub."""
    worker = session.worker
    assert isinstance(worker, UpstreamWorker)
    return worker


def _join_parent(
    child: ServedSession, upstream: Upstream, at_agent: UpstreamSession, names: dict[str, str]
) -> None:
    worker = worker_of(child)
    worker.binding.at_agent = at_agent
    worker.subagents.follow(upstream, at_agent, names)
    at_agent.feed.lead(worker, early=True)
