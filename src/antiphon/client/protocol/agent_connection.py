"""AgentConnection: one connection to an agent, and the sessions that are open there.

`Client` uses it for users, `Upstream` for a hub. Each brings a class for its sessions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from antiphon.bridge.authentication import methods_v2
from antiphon.bridge.losses import Report
from antiphon.client.protocol.abilities import Abilities, read_abilities
from antiphon.client.protocol.calls import call_end
from antiphon.client.protocol.dialect import AgentDialect
from antiphon.client.protocol.dialect_v1 import AgentDialectV1, CompletionPromise
from antiphon.client.protocol.dialect_v2 import AgentDialectV2
from antiphon.client.protocol.early_updates import EarlyUpdates, encoded_size
from antiphon.client.protocol.handshake import ClientOffer, initialize_params
from antiphon.client.protocol.questions import PendingQuestions
from antiphon.client.protocol.session_opener import NewRequest, OpenedSession, SessionOpener, Setup
from antiphon.connection import Connection, ConnectionOptions, Role
from antiphon.connection.handlers import NotificationHandler, RequestHandler, Unbegun
from antiphon.connection.tap import Tap
from antiphon.engine.recent import Recent
from antiphon.engine.subagents import SubagentInfo
from antiphon.errors import InvalidParams, LinkLost, LocalError
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v1, v2
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.version import VERSIONS, Agreement, ours_in
from antiphon.transports.base import Transport

logger = logging.getLogger("antiphon.client")

NOT_INITIALIZED = "the client is not initialized: nothing is agreed with the agent yet"
EARLY = 1000
EARLY_BYTES = 16 * 1024 * 1024
"""How many updates, and how many bytes of them, are kept of subagents that are not announced yet."""
LEFT = 4096
"""How many left sessions are remembered: their late updates are ignored."""


class SessionAtAgent(OpenedSession, Protocol):
    """A session that is open at an agent."""

    cwd: str
    additional_directories: tuple[str, ...]

    @property
    def parent(self) -> SessionAtAgent | None:
        """The session that this one works for (unstable)."""

    def adopt(self, child: Any, info: SubagentInfo) -> None:
        """`child` works for this session from here on."""

    @property
    def questions(self) -> PendingQuestions: ...

    def receive(self, params: Any) -> Awaitable[None] | None:
        """Apply a `session/update` notification. Returns what to wait for before more is read."""

    def leave(self, reason: LinkLost | str) -> None:
        """End everything that is open: nothing of the session comes any more."""


S = TypeVar("S", bound=SessionAtAgent)


class AgentHandlers(Struct, frozen=True, kw_only=True):
    """What is called for an agent, in addition to its sessions."""

    requests: Mapping[str, RequestHandler]
    """By method; those for permission requests are built in."""
    notifications: Mapping[str, NotificationHandler]
    """By method; those for updates are built in."""
    unbegun: Mapping[str, Unbegun]
    on_left: Callable[[Any], None]
    """Called with a session that is not open here any more."""
    on_lost: Callable[[LinkLost], None]
    """Called when the link has ended for good."""


class AgentConnection(Generic[S]):
    def __init__(
        self,
        transport: Transport,
        offer: ClientOffer,
        make: Callable[[str, AgentDialect, Setup], S],
        handlers: AgentHandlers,
        *,
        sender: Who | None = None,
        promise: CompletionPromise | None = None,
        report: Report | None = None,
        tap: Tap | None = None,
    ) -> None:
        """make: creates a session from its id, its dialect and the request that opens it.
        sender: the sender of this client's prompts; v1 agents do not report one.
        promise: whether the agent keeps its promise of `turn_complete`, shared by processes of one agent.
        report: called with what the bridge to a v1 agent loses."""
        self.sessions: dict[str, S] = {}
        """The sessions that are open here."""
        self.info: v1.Implementation | v2.Implementation | None = None
        """Name and version of the agent, if it reported them."""
        self.lost: LinkLost | None = None
        """Why the link was lost for good; None while it is in use."""
        self.auth_methods: Sequence[v2.AuthMethod] = ()
        """The logins that the agent offers; those of an unknown type as they are."""
        self._offer = offer
        self._make = make
        self._handlers = handlers
        self._sender = sender
        self._promise = promise or CompletionPromise()
        self._report = report
        self._abilities: Abilities | None = None
        self._left: Recent[str, None] = Recent(LEFT)
        """Sessions that were open here and whose updates may still come."""
        self.connection = Connection(
            transport,
            role=Role.CLIENT,
            requests={"session/request_permission": self._permission_requested, **handlers.requests},
            unbegun={"session/request_permission": self._permission_withdrawn, **handlers.unbegun},
            notifications={"session/update": self.receive, **handlers.notifications},
            on_lost=self._link_ended,
            options=ConnectionOptions(
                supported=VERSIONS if offer.version is None else (offer.version,), tap=tap
            ),
        )
        self.opener = SessionOpener(self.connection, report=report)
        self._unannounced: EarlyUpdates[Any] = EarlyUpdates(most=EARLY, most_bytes=EARLY_BYTES)
        """Updates of sessions that are not known yet: they may be subagents'."""

    async def initialize(self) -> None:
        """Agree on a version: both are offered in one request, and the shape of the answer decides."""
        result: v1.InitializeResponse | v2.InitializeResponse = await self.connection.initialize(
            initialize_params(self._offer)
        )
        self._abilities = read_abilities(result)
        if isinstance(result, v1.InitializeResponse):
            self.info = result.agent_info
            self.auth_methods = methods_v2(result.auth_methods)
            self.opener.v1_capabilities = result.agent_capabilities
        else:
            self.info = result.info
            self.auth_methods = result.auth_methods

    @property
    def agreement(self) -> Agreement:
        """The agreed version, dialect and options."""
        if self.connection.agreement is None:
            raise LocalError(NOT_INITIALIZED)
        return self.connection.agreement

    @property
    def abilities(self) -> Abilities:
        """What the agent can do."""
        if self._abilities is None:
            raise LocalError(NOT_INITIALIZED)
        return self._abilities

    @property
    def agent_name(self) -> str:
        """The title or name of the agent, if it reported one."""
        return "unknown agent" if self.info is None else self.info.title or self.info.name

    @property
    def speaks_v1(self) -> bool:
        return self.opener.v1_capabilities is not None

    # --- opening and leaving sessions --------------------------------------------------------------

    async def create(self, request: NewRequest, *, prepare: Callable[[S], None] = lambda _: None) -> S:
        """Open a new session or a fork. `prepare` is called with it before anything is applied to it."""
        repeatable = "operationId" in ours_in(request.meta)

        def add(session_id: str) -> S:
            session = self.sessions.get(session_id) if repeatable else None  # begun before, perhaps
            if session is None:
                session = self._add(session_id, request)
            prepare(session)
            return session

        return await self.opener.create(request, add)

    async def reopen(
        self, request: v2.ResumeSessionRequest, *, prepare: Callable[[S], None] = lambda _: None
    ) -> S:
        """Load or resume a session. `prepare` is called with it before anything is applied to it."""
        session_id = request.session_id
        before = self.sessions.get(session_id)
        session = self._add(session_id, request)
        prepare(session)
        try:
            await self.opener.reopen(request, session)
        except BaseException:
            if self.sessions.get(session_id) is session:
                del self.sessions[session_id]
                if before is not None:
                    self.sessions[session_id] = before
            raise
        if before is not None:
            before.leave("the session was opened again")
        return session

    def _add(self, session_id: str, request: Setup) -> S:
        session = self._make(session_id, self._new_dialect(), request)
        self.sessions[session_id] = session
        self._left.pop(session_id, None)
        return session

    def _new_dialect(self) -> AgentDialect:
        capabilities = self.opener.v1_capabilities
        if capabilities is None:
            return AgentDialectV2()
        return AgentDialectV1(
            self.agreement, capabilities, sender=self._sender, promise=self._promise, report=self._report
        )

    async def close(self, session: S) -> None:
        """Close a session at the agent. A session that does not exist there counts as closed (SESS-45)."""
        if not self.abilities.close:
            raise LocalError("this agent cannot close sessions")  # SESS-29
        request = v2.CloseSessionRequest(session_id=v2.SessionId(session.id))
        await call_end(self.connection, "session/close", request)
        self.end(session, "the session was closed")

    def end(self, session: S, reason: str) -> None:
        """A session was closed, archived or deleted at the agent."""
        session.questions.cancel_all()
        self.leave(session, reason)

    def leave(self, session: S, reason: str) -> None:
        """Stop following a session; it goes on at the agent."""
        if self.sessions.get(session.id) is session:
            del self.sessions[session.id]
            self._left[session.id] = None
            self._handlers.on_left(session)
        for child in tuple(self.sessions.values()):
            if child.parent is session:
                self.leave(child, reason)
        session.leave(reason)

    def detach(self, session: S, reason: str) -> None:
        """Leave a session, so that other clients of a hub see that this one left."""
        self.leave(session, reason)
        if self.abilities.ours.attach is not None:
            with suppress(LinkLost):
                self.connection.begin("_antiphon/detach", {"sessionId": session.id}, lambda _: None)

    # --- finding sessions --------------------------------------------------------------------------

    def find(self, session_id: str) -> S | None:
        """A session that is open here."""
        return self.sessions.get(session_id)

    def find_live(self, session_id: str) -> S | None:
        """A session that is open here, unless the link has ended."""
        return None if self.lost is not None else self.sessions.get(session_id)

    def pending_request(self, session_id: str) -> NewRequest | None:
        """The request for a session that the agent names before it has answered the request."""
        return None if session_id in self._left else self.opener.only_pending

    def keep(self, session_id: str, receive: Callable[[], object]) -> None:
        """Call `receive` once a session is opened that the agent names before."""
        if session_id not in self._left:
            self.opener.keep(session_id, receive)

    async def find_asking(self, session_id: str, inbound: Inbound) -> S | None:
        """The session of a question: open, announced by what was received so far, or about to be named by the
        answer to a request for a new one. None once the agent has withdrawn the question of a session that
        was left."""
        session = self.sessions.get(session_id)
        if session is not None:
            return session
        if session_id not in self._left:
            for other in tuple(self.sessions):  # its announcement may have been sent before
                read = asyncio.Event()
                self.connection.after_received(other, read.set)
                await read.wait()
            await self.opener.wait_until(lambda: session_id in self.sessions)
            found = self.sessions.get(session_id)
            if found is None:
                raise InvalidParams(f"session {session_id!r} is not open here")
            return found
        # The session goes on without this client: any answer, even an error, could decide for the others.
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            if not inbound.cancelled:
                raise  # the link ends
        return None

    # --- received requests and notifications -------------------------------------------------------

    def receive(self, params: Any) -> Awaitable[None] | None:
        """Apply a `session/update` notification, now or once its session is known."""
        session = self.sessions.get(params.session_id)
        if session is not None:
            return session.receive(params)
        self.keep_update(params, partial(self.receive, params), None)
        return None

    def keep_update(self, params: Any, receive: Callable[[], object], size: int | None) -> None:
        """Keep an update of an unknown session, which may be opening or be a subagent's. Sessions are read in
        parallel, so its announcement may have been sent before and not be read yet."""
        if params.session_id not in self._left:
            size = encoded_size(params) if size is None else size
            self.opener.keep(params.session_id, receive, size=size)
            self._unannounced.put(params.session_id, params, size)

    def subagent_announced(self, parent: S, info: SubagentInfo) -> None:
        """Follow a session that works for another one; it is not opened."""
        if self.sessions.get(parent.id) is not parent:
            return
        child = self.sessions.get(info.id)
        if child is not None and _works_for(parent, child):
            # Questions go up to the session that works for none; in a circle there is no such session.
            logger.warning("subagent ignored: %s works for %s already", parent.id, info.id)
            return
        if child is None:
            setup = v2.ResumeSessionRequest(session_id=v2.SessionId(info.id), cwd=info.cwd or parent.cwd)
            child = self._add(info.id, setup)
        parent.adopt(child, info)
        for early in self._unannounced.take(info.id):
            child.receive(early)

    async def _permission_requested(self, params: Any, inbound: Inbound) -> Any:
        session = await self.find_asking(params.session_id, inbound)
        if session is None:
            return _cancelled(params)
        return await session.questions.ask_permission(params, inbound)

    def _permission_withdrawn(self, params: Any) -> Any:
        session = self.sessions.get(params.session_id)
        return _cancelled(params) if session is None else session.questions.permission_withdrawn(params)

    def _link_ended(self, reason: LinkLost) -> None:
        """The link has ended for good. Each session is left once it has applied all that came over it."""
        self.lost = reason
        self._handlers.on_lost(reason)
        for session in self.sessions.values():
            self.connection.after_received(session.id, partial(session.leave, reason))


def _works_for(session: SessionAtAgent, other: SessionAtAgent) -> bool:
    """Whether a session is another one, or works for it."""
    above: SessionAtAgent | None = session
    while above is not None and above is not other:
        above = above.parent
    return above is other


def _cancelled(params: Any) -> Any:
    """PERM-V2-09: a permission request that was withdrawn is answered all the same."""
    if isinstance(params, v1.RequestPermissionRequest):
        return v1.RequestPermissionResponse(outcome=v1.CancelledPermissionOutcome())
    return v2.RequestPermissionResponse(outcome=v2.CancelledPermissionOutcome())
