"""Client: the connection to one agent, and the sessions with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from secrets import token_hex
from typing import Any, TypeVar

from antiphon.bridge.authentication import status_v2
from antiphon.bridge.losses import LossCounter
from antiphon.client.decider import QuestionDecider
from antiphon.client.elicitation_requests import ElicitationRequests
from antiphon.client.kept_sessions import Archived, KeptSessions
from antiphon.client.link import Link, LinkInput
from antiphon.client.logins import Launch, Logins
from antiphon.client.mcp.servers import AnyMcpServer, McpServers, declarations
from antiphon.client.options import ClientOptions, ProtocolVersion
from antiphon.client.permissions import PermissionDecider, Permissions
from antiphon.client.protocol.abilities import Abilities, read_abilities
from antiphon.client.protocol.dialect import AgentDialect
from antiphon.client.protocol.dialect_v1 import AgentDialectV1, CompletionPromise
from antiphon.client.protocol.dialect_v2 import AgentDialectV2
from antiphon.client.protocol.early_updates import encoded_size
from antiphon.client.protocol.handshake import ClientOffer, initialize_params
from antiphon.client.protocol.session_opener import NewRequest, SessionOpener
from antiphon.client.providers import Providers
from antiphon.client.relay import new_originals, read_for_relay
from antiphon.client.session.core import SessionCore
from antiphon.client.session.questions import AnswerMemory, Decider
from antiphon.client.session.resume_point import new_operation_id
from antiphon.client.session.session import ClientSession
from antiphon.client.session.setup import Folder, absolute_folder, system_prompt_for
from antiphon.client.session.tracker import Follower
from antiphon.client.subagents import SubagentSessions
from antiphon.client.workspace.offer import Folders, WorkspaceOffer
from antiphon.client.workspace.workspace import Workspace
from antiphon.connection import Connection, ConnectionOptions, Role
from antiphon.engine.recent import Recent
from antiphon.engine.subagents import SubagentInfo
from antiphon.engine.who import Who
from antiphon.errors import CallFailed, InvalidParams, LinkLost, LocalError, MethodNotFound
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v1, v2
from antiphon.schema.version import (
    V1,
    V2,
    VERSIONS,
    Agreement,
    Extras,
    ours_in,
    with_ours,
)
from antiphon.schema.wire import Unknown
from antiphon.transports.base import Transport

logger = logging.getLogger("antiphon.client")

NOT_INITIALIZED = "the client is not initialized: nothing is agreed with the agent yet"
LEFT = 4096
"""How many left sessions are remembered: their late updates are ignored."""
KNOWN = 65536
"""How many sessions' folders are remembered."""

Extension = Callable[[Any], Awaitable[Any]]
"""Gets the params, any JSON value, and returns the result."""
E = TypeVar("E", bound=Extension)


class Client:
    """A connection to an agent; `connect` creates it. It can have any number of sessions, and none waits for
    another."""

    def __init__(
        self,
        transport: Transport,
        *,
        version: ProtocolVersion | None = None,
        answers: PermissionDecider | None = None,
        workspace: Workspace | None = None,
        options: ClientOptions = ClientOptions(),
        terminal_login: bool = False,
        relay: Callable[[ClientSession], Follower] | None = None,
        lasting: bool = False,
    ) -> None:
        """For `connect`, which documents the options. `lasting`: another link follows a lost one. `relay`:
        makes the follower of each session, for a hub."""
        proposed = version == "v2-proposed"
        number = _version_number(version)
        self.answers: PermissionDecider = answers or Permissions()
        """Decides on permission requests."""
        self.info: v1.Implementation | v2.Implementation | None = None
        """Name and version of the agent, if it reported them."""
        self.lost: LinkLost | None = None
        """Why the link was lost for good; None while the client is in use."""
        self.link = Link(options.on_link)
        """Whether the agent can be reached now."""
        self.who = Who(client_id=options.client_id or f"client_{token_hex(12)}", name=options.name)
        """How other clients of its sessions see this client. The id stays the same over all links."""
        self.on_auth_status: Callable[[v2.AuthStatusResponse], None] | None = None
        """Called when the agent reports another login status. What it reports about accounts is for people to
        read, and identifies nobody (AUTH-24)."""
        self._relay = relay
        self._silence = options.silence
        self._lasting = lasting
        self._launch: tuple[Launch, Callable[[], Awaitable[Client]]] | None = None
        """How the agent was started, and a function that connects anew."""
        self._completion_promise = CompletionPromise()
        self._losses = LossCounter()
        self._sessions: dict[str, ClientSession] = {}
        self._left: Recent[str, None] = Recent(LEFT)
        """Sessions that were open here and whose updates may still come."""
        self._folders: Recent[str, str] = Recent(KNOWN)
        """The folders of sessions that were created, opened or listed here."""
        self._extensions: dict[str, Extension] = {}
        self._answer_memory = AnswerMemory()
        self._elicitations = ElicitationRequests(
            lambda: self.answers,
            self._find_asking,
            v1=lambda: self.agreement.version == V1,
            agent_name=lambda: self.agent_name,
        )
        self._decider: Decider = QuestionDecider(self.find, lambda: self.answers, self._elicitations)
        self._workspace = WorkspaceOffer(
            workspace, self._find_live, pending_folders=self._pending_folders, keep=self._keep_early
        )
        self._mcp = McpServers(lambda: self.connection)
        self._subagents = SubagentSessions(self.find, self._add)
        self._offer = ClientOffer(
            name=options.name,
            client_version=options.client_version,
            client_id=self.who.client_id,
            version=number,
            proposed=proposed,
            opt_ins=options.opt_ins,
            # A hub has clients, a queue and questions of its own.
            extras=Extras(
                queue_updates=relay is None,
                seq=options.numbered or lasting,
                presence=relay is None,
                annotations=True,
                prompt_ids=proposed,
            ),
            elicitation=self._elicitations.capabilities,
            workspace=self._workspace.capabilities,
            terminal_login=terminal_login,
        )
        self.connection = Connection(
            transport,
            role=Role.CLIENT,
            requests={
                "session/request_permission": self._permission_requested,
                **self._elicitations.handlers,
                **self._workspace.handlers,
                "mcp/message": self._mcp.serve,
            },
            unbegun={
                "session/request_permission": self._permission_withdrawn,
                **self._elicitations.unbegun,
            },
            notifications={
                "session/update": self._updated,
                "auth/status_update": self._auth_status_updated,
                **self._elicitations.notifications,
            },
            on_lost=self._link_ended,
            options=ConnectionOptions(supported=VERSIONS if number is None else (number,), tap=options.tap),
        )
        self._opener = SessionOpener(self.connection, report=self._losses)
        self._abilities: Abilities | None = None
        self._logins: Logins | None = None
        self._kept: KeptSessions | None = None

    async def _initialize(self) -> None:
        """Agree on a version: both are offered in one request, and the shape of the answer decides."""
        result = await self.connection.initialize(initialize_params(self._offer))
        self._abilities = read_abilities(result)
        self._logins = Logins(self.connection, self._abilities, result)
        old = isinstance(result, v1.InitializeResponse)
        self._kept = KeptSessions(self.connection, self._abilities, v1=old, report=self._losses)
        if isinstance(result, v1.InitializeResponse):
            self.info = result.agent_info
            self._opener.v1_capabilities = result.agent_capabilities
        else:
            self.info = result.info
        if self._relay is not None:
            read_for_relay(self)

    # --- the agent ---------------------------------------------------------------------------------

    @property
    def agreement(self) -> Agreement:
        """The agreed version, dialect and options."""
        if self.connection.agreement is None:
            raise LocalError(NOT_INITIALIZED)
        return self.connection.agreement

    @property
    def abilities(self) -> Abilities:
        """What the agent can do."""
        return _initialized(self._abilities)

    @property
    def agent_name(self) -> str:
        """The title or name of the agent, if it reported one."""
        return "unknown agent" if self.info is None else self.info.title or self.info.name

    @property
    def agents(self) -> list[str]:
        """The names of the agents that a hub lets its clients choose from; empty if it is not a hub."""
        offered = self.abilities.ours.get("agents")
        return [name for name in offered if isinstance(name, str)] if isinstance(offered, list) else []

    @property
    def providers(self) -> Providers:
        """The model providers of the agent, as far as they can be set. Unstable."""
        return Providers(self.connection, self.abilities)

    # --- logins ------------------------------------------------------------------------------------

    @property
    def auth_methods(self) -> Sequence[v2.AuthMethod]:
        """The logins that the agent offers; those of an unknown type as they are."""
        return () if self._logins is None else self._logins.methods

    async def login(self, method_id: str, *, meta: dict[str, Any] | None = None) -> None:
        """Log in by one of the agent's `auth_methods`. Raises `CallFailed` if it refuses."""
        await _initialized(self._logins).login(method_id, meta)

    async def logout(self) -> None:
        """Log out. Open sessions may fail until the next login (AUTH-22)."""
        await _initialized(self._logins).logout()

    async def auth_status(self) -> v2.AuthStatusResponse:
        """The login status of this connection. Act on its `state` alone."""
        return await _initialized(self._logins).status()

    async def login_in_terminal(self, method_id: str) -> Client:
        """Start the agent a second time, in this terminal and with what the method adds, and wait until it
        exits with 0. Then connect anew: this client ends, and the returned one takes its place. Raises
        `LoginFailed` if it exits otherwise; this client then stays in use (AUTH-15)."""
        launch = None if self._launch is None else self._launch[0]
        await _initialized(self._logins).run_in_terminal(method_id, launch)
        assert self._launch is not None
        await self.connection.aclose()
        return await self._launch[1]()

    def _auth_status_updated(self, params: Any) -> None:
        if self.on_auth_status is not None:
            self.on_auth_status(status_v2(params))

    # --- extensions --------------------------------------------------------------------------------

    def extension(self, method: str) -> Callable[[E], E]:
        """Decorate a function that answers requests of a method of your own, such as `_example.com/pick`, and
        receives its notifications (EXT-01). Raise `InvalidParams`, or any `RequestError`, to refuse."""
        _check_extension(method)

        def keep(handler: E) -> E:
            self._extensions[method] = handler
            self.connection.handlers.on_extension = self._extension_requested
            self.connection.handlers.on_extension_notified = self._extension_notified
            return handler

        return keep

    async def call_extension(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Send a request that the protocol does not have. Raises `CallFailed`, `LinkLost`."""
        _check_extension(method)
        return await self.connection.call(method, params)

    async def notify_extension(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification that the protocol does not have."""
        _check_extension(method)
        await self.connection.notify(method, params)

    async def _extension_requested(self, params: Any, inbound: Inbound) -> Any:
        handler = self._extensions.get(inbound.method)
        if handler is None:
            raise MethodNotFound(inbound.method)
        result = await handler(params)
        self.connection.answer(inbound, result)  # `null` is a valid result
        return result

    async def _extension_notified(self, method: str, params: Any) -> None:
        handler = self._extensions.get(method)
        if handler is not None:  # EXT-02
            await handler(params)

    # --- sessions ----------------------------------------------------------------------------------

    @property
    def sessions(self) -> list[ClientSession]:
        """The sessions that are open here."""
        return [session for session in self._sessions.values() if session.parent is None]

    def find(self, session_id: str) -> ClientSession | None:
        """A session that is open here."""
        return self._sessions.get(session_id)

    async def new_session(
        self,
        cwd: Folder | None = None,
        *,
        mcp_servers: Sequence[AnyMcpServer] = (),
        additional_directories: Sequence[Folder] = (),
        system_prompt: str | v2.SystemPrompt | None = None,
        agent: str | None = None,
        meta: dict[str, Any] | None = None,
        operation_id: str | None = None,
    ) -> ClientSession:
        """Open a new session.

        cwd: its folder; by default the current one.
        mcp_servers: MCP servers that the agent may use.
        additional_directories: further roots.
        system_prompt: a text is added to the agent's own.
        agent: the name of one of a hub's agents.
        meta: goes into the request as it is.
        operation_id: an agent that supports this returns the same session for the same id.
        """
        ours = {} if agent is None else {"agent": agent}
        ours |= self._operation("new", operation_id)
        request = v2.NewSessionRequest(
            cwd=absolute_folder(cwd),
            meta=with_ours(meta, **ours) if ours else meta,
            **self._setup(mcp_servers, additional_directories, system_prompt),
        )
        return await self._begin(request, mcp_servers)

    async def load_session(
        self,
        session_id: str,
        cwd: Folder | None = None,
        *,
        mcp_servers: Sequence[AnyMcpServer] = (),
        additional_directories: Sequence[Folder] = (),
        system_prompt: str | v2.SystemPrompt | None = None,
    ) -> ClientSession:
        """Open a session again, with its history. `cwd` is its own folder (SESS-27); it may be left out for a
        session that was created, opened or listed here."""
        self._check_load()
        setup = self._setup(mcp_servers, additional_directories, system_prompt)
        return await self._reopen(session_id, cwd, v2.ReplayFromStart(), setup, mcp_servers)

    async def resume_session(
        self,
        session_id: str,
        cwd: Folder | None = None,
        *,
        mcp_servers: Sequence[AnyMcpServer] = (),
        additional_directories: Sequence[Folder] = (),
        system_prompt: str | v2.SystemPrompt | None = None,
    ) -> ClientSession:
        """Open a session again, without its history if the agent supports that."""
        if not (self.abilities.resume or self.abilities.load):
            raise LocalError("this agent cannot resume sessions")  # SESS-14
        setup = self._setup(mcp_servers, additional_directories, system_prompt)
        return await self._reopen(session_id, cwd, None, setup, mcp_servers)

    @asynccontextmanager
    async def attach(
        self, session_id: str, *, cwd: Folder | None = None, after: int | None = None
    ) -> AsyncIterator[ClientSession]:
        """Attach to a session that other clients may use too. At the end of the block this client leaves the
        session, which continues.

        after: at a hub, the number of the event after which the replay begins; `START` for all. The first
            `session.events()` begins with the replayed events. By default the replay is folded: the session
            has its messages and tool calls, and `events()` begins with what happens next.
        """
        self._check_load()
        replay_from: v2.ReplayFrom = v2.ReplayFromStart()
        if after is not None:
            if not self.abilities.replay_after or self.agreement.version == V1:
                raise LocalError("this agent cannot replay after an event")
            replay_from = Unknown({"type": "_antiphon_after", "seq": after})
        session = await self._reopen(session_id, cwd, replay_from, self._setup((), (), None), ())
        try:
            yield session
        finally:
            self.leave_session(session)

    def _check_load(self) -> None:
        if not self.abilities.load:
            raise LocalError("this agent cannot load sessions")  # SESS-12

    def leave_session(self, session: ClientSession, reason: str = "this client has left the session") -> None:
        """Stop following a session; it goes on at the agent."""
        self._leave(session, reason)
        if "attach" in self.abilities.ours:  # other clients see that this one left
            with suppress(LinkLost):
                self.connection.begin("_antiphon/detach", {"sessionId": session.id}, lambda _: None)

    async def close_session(self, session: ClientSession) -> None:
        """Close a session at the agent."""
        await _initialized(self._kept).close(session.id)
        self._session_over(session.id, "the session was closed", session)

    async def list_sessions(
        self, *, cwd: Folder | None = None, archived: Archived | None = None
    ) -> AsyncIterator[v2.SessionInfo]:
        """The sessions that the agent keeps, the newest first, read page by page. Archived ones are left out
        unless `archived` is `include` or `only`."""
        folder = None if cwd is None else absolute_folder(cwd)
        async for info in _initialized(self._kept).list(cwd=folder, archived=archived):
            self._folders[info.session_id] = info.cwd  # SESS-27
            yield info

    async def archive(self, session_id: str) -> None:
        """Close a session and take it out of the usual list."""
        await _initialized(self._kept).archive(session_id)
        self._session_over(session_id, "the session was archived")

    async def unarchive(self, session_id: str) -> None:
        """Put a session back into the usual list; this does not open it."""
        await _initialized(self._kept).unarchive(session_id)

    async def session_status(self, session_id: str) -> v2.SessionStatusResponse:
        """Whether a session is `open` at the agent or only `saved`, and in v2 its state, if reported.

        This opens nothing: a session that is not open here has to be resumed before it can be prompted, and a
        missing state does not mean idle (SESS-56).
        """
        return await _initialized(self._kept).status(session_id)

    async def set_title(self, session_id: str, title: str) -> str:
        """Set a title that the agent keeps and does not replace. Returns it as the agent stored it."""
        stored = await _initialized(self._kept).set_title(session_id, title)
        session = self._sessions.get(session_id)
        if session is not None and session.title != stored:
            session._core.apply(v2.SessionInfoUpdate(title=stored))
        return stored

    async def delete_session(self, session_id: str) -> None:
        """Delete a session with all that belongs to it."""
        await _initialized(self._kept).delete(session_id)
        self._folders.pop(session_id, None)
        self._session_over(session_id, "the session was deleted")

    # --- opening and leaving -----------------------------------------------------------------------

    def _setup(
        self,
        mcp_servers: Sequence[AnyMcpServer],
        additional_directories: Sequence[Folder],
        system_prompt: str | v2.SystemPrompt | None,
    ) -> dict[str, Any]:
        """The fields that the requests for sessions have in common."""
        servers = declarations(mcp_servers)
        directories = [absolute_folder(directory) for directory in additional_directories]
        self.abilities.check_setup(servers, directories)
        return {
            "mcp_servers": servers,
            "additional_directories": directories,
            "system_prompt": system_prompt_for(system_prompt, self.abilities),
        }

    async def _begin(
        self,
        request: NewRequest,
        mcp_servers: Sequence[AnyMcpServer],
        *,
        prepare: Callable[[ClientSession], None] = lambda _: None,
    ) -> ClientSession:
        """Open a new session or a fork. `prepare` is called with it before anything is applied to it."""
        repeatable = "operationId" in ours_in(request.meta)
        directories = request.additional_directories
        token = self._mcp.offer(mcp_servers)
        begun: list[ClientSession] = []

        def add(session_id: str, cwd: str) -> SessionCore:
            session = self._sessions.get(session_id) if repeatable else None  # begun before, perhaps
            if session is None:
                session = self._add(session_id, cwd, directories=directories)
            prepare(session)
            begun.append(session)
            return session._core

        try:
            core = await self._opener.create(request, add)
        except BaseException:
            self._mcp.release(token)
            raise
        self._mcp.bind(token, core.id)
        self._folders[core.id] = request.cwd
        return begun[-1]

    async def _reopen(
        self,
        session_id: str,
        cwd: Folder | None,
        replay_from: v2.ReplayFrom | None,
        setup: dict[str, Any],
        mcp_servers: Sequence[AnyMcpServer],
    ) -> ClientSession:
        request = v2.ResumeSessionRequest(
            session_id=v2.SessionId(session_id),
            cwd=absolute_folder(self._folders.get(session_id) if cwd is None else cwd),
            replay_from=replay_from,
            **setup,
        )
        token = self._mcp.offer(mcp_servers)
        before = self._sessions.get(session_id)
        session = self._add(session_id, request.cwd, directories=request.additional_directories)
        if isinstance(replay_from, Unknown):
            session._core.tracker.keep_replay()
        try:
            await self._opener.reopen(request, session._core)
        except BaseException:
            self._mcp.release(token)
            if self._sessions.get(session_id) is session:
                del self._sessions[session_id]
                if before is not None:
                    self._sessions[session_id] = before
            raise
        self._mcp.bind(token, session_id)
        if before is not None:
            before._core.leave("the session was opened again")
        self._folders[session_id] = request.cwd
        return session

    async def _fork(
        self,
        source: ClientSession,
        *,
        at: str | None,
        cwd: Folder | None,
        mcp_servers: Sequence[AnyMcpServer],
        additional_directories: Sequence[Folder],
        system_prompt: str | v2.SystemPrompt | None,
        operation_id: str | None,
    ) -> ClientSession:
        """Fork a session (SESS-51, unstable), with its history if the agent can replay it: only the agent
        knows where it cut a session that works."""
        abilities = self.abilities
        if not abilities.fork:
            raise LocalError("this agent cannot fork sessions")
        if at is not None and not abilities.fork_at:
            raise LocalError("this agent cannot fork a session at a message")
        ours = {} if at is None else {"messageId": at}
        ours |= self._operation("fork", operation_id)
        request = v2.ForkSessionRequest(
            session_id=v2.SessionId(source.id),
            cwd=source.cwd if cwd is None else absolute_folder(cwd),
            meta=with_ours(None, **ours) if ours else None,
            **self._setup(mcp_servers, additional_directories, system_prompt),
        )
        fork = await self._begin(request, mcp_servers)
        if not abilities.load:
            return fork
        try:
            return await self.load_session(
                fork.id,
                request.cwd,
                mcp_servers=mcp_servers,
                additional_directories=request.additional_directories,
            )
        except CallFailed:
            logger.warning("fork %s has no history: the agent does not replay it", fork.id)
            return fork

    def _operation(self, kind: str, operation_id: str | None) -> dict[str, str]:
        """The operation id of a request, by its name. If another link may follow, an id is made up, so that
        the request can be sent again."""
        if operation_id is None and self._lasting and kind in self.abilities.operations:
            operation_id = new_operation_id()
        return {} if operation_id is None else {"operationId": operation_id}

    def _add(self, session_id: str, cwd: str, *, directories: Sequence[str] = ()) -> ClientSession:
        session = ClientSession(
            self,
            session_id,
            self._new_dialect(),
            cwd=cwd,
            additional_directories=directories,
            relay=self._relay,
        )
        self._sessions[session_id] = session
        self._left.pop(session_id, None)
        return session

    def _new_dialect(self) -> AgentDialect:
        capabilities = self._opener.v1_capabilities
        if capabilities is None:
            return AgentDialectV2()
        own = self.who if self._relay is None else None
        dialect = AgentDialectV1(
            self.agreement, capabilities, own=own, promise=self._completion_promise, report=self._losses
        )
        dialect.originals = new_originals(self)
        return dialect

    def _session_over(self, session_id: str, reason: str, session: ClientSession | None = None) -> None:
        """A session was closed, archived or deleted at the agent."""
        session = session or self._sessions.get(session_id)
        if session is not None:
            session._core.questions.cancel_all()
            self._leave(session, reason)

    def _leave(self, session: ClientSession, reason: str) -> None:
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
            self._left[session.id] = None
            self._workspace.release(session.id)
            self._mcp.release(session.id)
        for child in tuple(self._sessions.values()):
            if child.parent is session:
                self._leave(child, reason)
        session._core.leave(reason)

    def _has_left(self, session_id: str) -> bool:
        """Whether a session was open here and goes on without this client."""
        return session_id in self._left

    def _find_live(self, session_id: str) -> ClientSession | None:
        return None if self.lost is not None else self._sessions.get(session_id)

    def _pending_folders(self, session_id: str) -> Folders | None:
        """The folders of a session that the agent names before it has answered the request for it."""
        request = None if session_id in self._left else self._opener.only_pending
        return None if request is None else Folders(request.cwd, request.additional_directories)

    def _keep_early(self, session_id: str, receive: Callable[[], object]) -> None:
        if session_id not in self._left:
            self._opener.keep(session_id, receive)

    # --- received requests and notifications -------------------------------------------------------

    def _updated(self, params: Any) -> Awaitable[None] | None:
        session = self._sessions.get(params.session_id)
        if session is not None:
            session._core.receive(params)
            return None if self._relay is None else session._core.pace()
        if params.session_id not in self._left:
            size = encoded_size(params)
            self._opener.keep(params.session_id, partial(self._updated, params), size=size)
            self._subagents.keep(params, size)
        return None

    def _subagent_announced(self, parent_id: str, info: SubagentInfo) -> None:
        parent = self._sessions.get(parent_id)
        if parent is not None:
            self._subagents.announced(parent, info)

    async def _permission_requested(self, params: Any, inbound: Inbound) -> Any:
        session = self._sessions.get(params.session_id)
        if session is None:
            session = await self._find_asking(params.session_id, inbound)
        return (
            _cancelled(params)
            if session is None
            else await session._core.questions.ask_permission(params, inbound)
        )

    def _permission_withdrawn(self, params: Any) -> Any:
        session = self._sessions.get(params.session_id)
        if session is None:
            return _cancelled(params)
        return session._core.questions.permission_withdrawn(params)

    async def _find_asking(self, session_id: str, inbound: Inbound) -> ClientSession | None:
        """The session of a question: open, announced by what was received so far, or about to be named by the
        answer to a request for a new one. None once the agent has withdrawn the question of a session that
        was left."""
        session = self._sessions.get(session_id)
        if session is not None:
            return session
        if session_id not in self._left:
            found = await self._subagents.find_announced(
                session_id, tuple(self._sessions), self.connection.behind
            )
            if found is None:
                await self._opener.wait_until(lambda: session_id in self._sessions)
            found = found or self._sessions.get(session_id)
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

    # --- links -------------------------------------------------------------------------------------

    def _link_lost(self, reason: str) -> None:
        """The link was lost, and another one may follow."""
        self.connection.cut(reason)
        self._workspace.link_lost()
        self._elicitations.link_lost()
        for session in self._sessions.values():
            self.connection.behind(session.id, partial(session._core.link_lost, LinkLost(reason)))
        self.link._step(LinkInput.LOST, reason)

    def _link_restored(self) -> None:
        """Another link is in use, and every session was resumed there."""
        self.connection.restored()
        for session in self._sessions.values():
            session._core.link_restored()
        self.link._step(LinkInput.RESTORED)

    def _link_ended(self, reason: LinkLost) -> None:
        """The link has ended for good. Each session is left once it has applied all that came over it."""
        self.lost = reason
        self.link._step(LinkInput.ENDED, reason.reason)
        self._workspace.link_lost()
        self._elicitations.link_lost()
        for session in self._sessions.values():
            self.connection.behind(session.id, partial(session._core.leave, reason))


T = TypeVar("T")


def _initialized(part: T | None) -> T:
    if part is None:
        raise LocalError(NOT_INITIALIZED)
    return part


def _check_extension(method: str) -> None:
    if not method.startswith("_"):
        raise LocalError(f"an extension method begins with `_`, got {method!r}")  # EXT-12


def _cancelled(params: Any) -> Any:
    """PERM-V2-09: a permission request that was withdrawn is answered all the same."""
    if isinstance(params, v1.RequestPermissionRequest):
        return v1.RequestPermissionResponse(outcome=v1.CancelledPermissionOutcome())
    return v2.RequestPermissionResponse(outcome=v2.CancelledPermissionOutcome())


def _version_number(version: ProtocolVersion | None) -> int | None:
    """Return the number of the only version to accept; None for any."""
    if version == "v2-proposed":
        return V2
    if version is not None and version not in VERSIONS:
        raise LocalError(f"version must be 1, 2 or 'v2-proposed', got {version!r}")
    return version
