"""Client: the connection to one agent, and the sessions with it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from secrets import token_hex
from typing import Any, Literal

from antiphon.bridge.authentication import status_v2
from antiphon.bridge.downgrade import requests as requests_v1
from antiphon.bridge.losses import LossCounter
from antiphon.bridge.proposed import normalize_state
from antiphon.client.decider import QuestionDecider
from antiphon.client.elicitation import Elicitation, elicitation_modes
from antiphon.client.elicitation_requests import ElicitationRequests
from antiphon.client.extensions import ClientExtensions, E
from antiphon.client.link import Link, LinkInput
from antiphon.client.logins import Launch, Logins
from antiphon.client.mcp.servers import AnyMcpServer, McpServers
from antiphon.client.options import ClientOptions, ProtocolVersion
from antiphon.client.permissions import PermissionDecider, Permissions
from antiphon.client.protocol.abilities import Abilities
from antiphon.client.protocol.agent_connection import AgentConnection, AgentHandlers
from antiphon.client.protocol.calls import call_end
from antiphon.client.protocol.dialect import AgentDialect
from antiphon.client.protocol.handshake import ClientOffer, version_number
from antiphon.client.protocol.session_opener import Setup
from antiphon.client.providers import Providers
from antiphon.client.session.context import SessionContext
from antiphon.client.session.core import SessionCore
from antiphon.client.session.session import ClientSession
from antiphon.client.session.setup import Folder, SessionSetup, absolute_folder
from antiphon.client.workspace.offer import WorkspaceOffer
from antiphon.client.workspace.workspace import Workspace
from antiphon.connection import Connection
from antiphon.errors import LinkLost, LocalError
from antiphon.schema import v1, v2
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.antiphon.hub import SearchSessionsRequest, SearchSessionsResponse
from antiphon.schema.version import (
    V1,
    Agreement,
    Extras,
    with_ours,
)
from antiphon.schema.wire import Unknown
from antiphon.transports.base import Transport

logger = logging.getLogger("antiphon.client")


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
        lasting: bool = False,
    ) -> None:
        """For `connect`, which documents the options. `lasting`: another link follows a lost one."""
        proposed = version == "v2-proposed"
        number = version_number(version)
        self.answers: PermissionDecider = answers or Permissions()
        """Decides on permission requests."""
        self.link = Link(options.on_link)
        """Whether the agent can be reached now."""
        self.who = Who(client_id=options.client_id or f"client_{token_hex(12)}", name=options.name)
        """How other clients of its sessions see this client. The id stays the same over all links."""
        self.on_auth_status: Callable[[v2.AuthStatusResponse], None] | None = None
        """Called when the agent reports another login status. What it reports about accounts is for people to
        read, and identifies nobody (AUTH-24)."""
        self._silence = options.silence
        self._launch: tuple[Launch, Callable[[], Awaitable[Client]]] | None = None
        """How the agent was started, and a function that connects anew."""
        self._losses = LossCounter()
        self._elicitations = ElicitationRequests(
            elicitation_modes(self.answers),
            lambda elicitation: _elicit(self.answers, elicitation),
            lambda: self._agent,
        )
        self._workspace = WorkspaceOffer(workspace, lambda: self._agent)
        self._mcp = McpServers(lambda: self.connection)
        offer = ClientOffer(
            name=options.name,
            client_version=options.client_version,
            client_id=self.who.client_id,
            version=number,
            proposed=proposed,
            opt_ins=options.opt_ins,
            extras=Extras(
                queue_updates=True,
                seq=options.numbered or lasting,
                presence=True,
                annotations=True,
                prompt_ids=proposed,
            ),
            elicitation=self._elicitations.capabilities,
            workspace=self._workspace.capabilities,
            terminal_login=terminal_login,
        )
        self._agent: AgentConnection[SessionCore[ClientSession]] = AgentConnection(
            transport,
            offer,
            self._make_session,
            AgentHandlers(
                requests={
                    **self._elicitations.handlers,
                    **self._workspace.handlers,
                    "mcp/message": self._mcp.serve,
                },
                unbegun=self._elicitations.unbegun,
                notifications={
                    "auth/status_update": self._auth_status_updated,
                    **self._elicitations.notifications,
                },
                on_left=self._session_left,
                on_lost=self._link_ended,
            ),
            sender=self.who,
            report=self._losses,
            tap=options.tap,
        )
        self._context = SessionContext(
            agent=self._agent,
            link=self.link,
            decider=QuestionDecider(self.find, lambda: self.answers, self._elicitations),
            lasting=lasting,
        )
        self._setup: SessionSetup[ClientSession] = SessionSetup(self._context, self._mcp)
        self._extensions = ClientExtensions(self._agent.connection)
        self._logins = Logins(self._agent)

    async def _initialize(self) -> None:
        await self._agent.initialize()

    # --- the agent ---------------------------------------------------------------------------------

    @property
    def connection(self) -> Connection:
        return self._agent.connection

    @property
    def lost(self) -> LinkLost | None:
        """Why the link was lost for good; None while the client is in use."""
        return self._agent.lost

    @property
    def info(self) -> v1.Implementation | v2.Implementation | None:
        """Name and version of the agent, if it reported them."""
        return self._agent.info

    @property
    def agreement(self) -> Agreement:
        """The agreed version, dialect and options."""
        return self._agent.agreement

    @property
    def abilities(self) -> Abilities:
        """What the agent can do."""
        return self._agent.abilities

    @property
    def agent_name(self) -> str:
        """The title or name of the agent, if it reported one."""
        return self._agent.agent_name

    @property
    def agents(self) -> list[str]:
        """The names of the agents that a hub lets its clients choose from; empty if it is not a hub."""
        return self.abilities.ours.agents

    @property
    def providers(self) -> Providers:
        """The model providers of the agent, as far as they can be set. Unstable."""
        return Providers(self.connection, self.abilities)

    # --- logins ------------------------------------------------------------------------------------

    @property
    def auth_methods(self) -> Sequence[v2.AuthMethod]:
        """The logins that the agent offers; those of an unknown type as they are."""
        return self._agent.auth_methods

    async def login(self, method_id: str, *, meta: dict[str, Any] | None = None) -> None:
        """Log in by one of the agent's `auth_methods`. Raises `CallFailed` if it refuses."""
        await self._logins.login(method_id, meta)

    async def logout(self) -> None:
        """Log out. Open sessions may fail until the next login (AUTH-22)."""
        await self._logins.logout()

    async def auth_status(self) -> v2.AuthStatusResponse:
        """The login status of this connection. Act on its `state` alone."""
        return await self._logins.status()

    async def login_in_terminal(self, method_id: str) -> Client:
        """Start the agent a second time, in this terminal and with what the method adds, and wait until it
        exits with 0. Then connect anew: this client ends, and the returned one takes its place. Raises
        `LoginFailed` if it exits otherwise; this client then stays in use (AUTH-15)."""
        launch = None if self._launch is None else self._launch[0]
        await self._logins.run_in_terminal(method_id, launch)
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
        return self._extensions.register(method)

    async def call_extension(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Send a request that the protocol does not have. Raises `CallFailed`, `LinkLost`."""
        return await self._extensions.call(method, params)

    async def notify_extension(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification that the protocol does not have."""
        await self._extensions.notify(method, params)

    # --- sessions ----------------------------------------------------------------------------------

    @property
    def sessions(self) -> list[ClientSession]:
        """The sessions that are open here."""
        return [core.view for core in self._agent.sessions.values() if core.parent is None]

    def find(self, session_id: str) -> ClientSession | None:
        """A session that is open here."""
        core = self._agent.find(session_id)
        return None if core is None else core.view

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
        ours |= self._context.operation("new", operation_id)
        request = v2.NewSessionRequest(
            cwd=absolute_folder(cwd),
            meta=with_ours(meta, **ours) if ours else meta,
            **self._setup.fields(mcp_servers, additional_directories, system_prompt),
        )
        return (await self._setup.open(request, mcp_servers)).view

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
        options = mcp_servers, additional_directories, system_prompt
        return (await self._setup.reopen(session_id, cwd, v2.ReplayFromStart(), *options)).view

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
        options = mcp_servers, additional_directories, system_prompt
        return (await self._setup.reopen(session_id, cwd, None, *options)).view

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
        session = (await self._setup.reopen(session_id, cwd, replay_from)).view
        try:
            yield session
        finally:
            self.leave_session(session)

    def _check_load(self) -> None:
        if not self.abilities.load:
            raise LocalError("this agent cannot load sessions")  # SESS-12

    def leave_session(self, session: ClientSession, reason: str = "this client has left the session") -> None:
        """Stop following a session; it goes on at the agent."""
        self._agent.detach(session._core, reason)

    async def close_session(self, session: ClientSession) -> None:
        """Close a session at the agent."""
        await self._agent.close(session._core)

    async def list_sessions(
        self, *, cwd: Folder | None = None, archived: Literal["exclude", "include", "only"] | None = None
    ) -> AsyncIterator[v2.SessionInfo]:
        """The sessions that the agent keeps, the newest first, read page by page. Archived ones are left out
        unless `archived` is `include` or `only`."""
        if not self.abilities.listing:
            raise LocalError("this agent cannot list sessions")  # SESS-29
        filter = None if archived is None else v2.SessionArchiveFilter(archived)
        if filter is not None:
            if not filter.known:
                raise LocalError(f"`archived` must be 'exclude', 'include' or 'only', got {archived!r}")
            self._check_archive()  # SESS-54
        folder = None if cwd is None else absolute_folder(cwd)
        speaks_v1 = self._agent.speaks_v1
        cursor: v2.SessionListCursor | None = None
        while True:
            request = v2.ListSessionsRequest(cwd=folder, cursor=cursor, archived=filter)
            params: Any = requests_v1.list_sessions(request) if speaks_v1 else request
            page = await self.connection.call("session/list", params)
            if speaks_v1:
                page = requests_v1.listed_sessions(page, report=self._losses)
            for info in page.sessions:
                self._setup.folders[info.session_id] = info.cwd  # SESS-27
                yield info
            cursor = page.next_cursor
            if cursor is None or (speaks_v1 and not cursor):
                return  # SESS-34

    async def search_sessions(
        self, query: str, *, limit: int = 20, cursor: str | None = None
    ) -> SearchSessionsResponse:
        """Find words in the contents of a hub's sessions. Raises `LocalError` where that is not offered.

        query: words, and phrases in double quotes; the last word may be the beginning of one
        limit: the most matches, 1 to 100
        cursor: the `next_cursor` of the page before
        """
        if self.abilities.ours.search_sessions is None:
            raise LocalError("this agent does not search sessions")
        asked = SearchSessionsRequest(query=query, limit=limit, cursor=cursor)
        found: SearchSessionsResponse = await self.connection.call("_antiphon/search_sessions", asked)
        return found

    async def archive(self, session_id: str) -> None:
        """Close a session and take it out of the usual list."""
        self._check_archive()
        params = v2.ArchiveSessionRequest(session_id=v2.SessionId(session_id))
        await self.connection.call("session/archive", params)
        self._session_over(session_id, "the session was archived")

    async def unarchive(self, session_id: str) -> None:
        """Put a session back into the usual list; this does not open it."""
        self._check_archive()
        params = v2.UnarchiveSessionRequest(session_id=v2.SessionId(session_id))
        await self.connection.call("session/unarchive", params)

    def _check_archive(self) -> None:
        if not self.abilities.archive:
            raise LocalError("this agent archives no sessions")  # SESS-53

    async def session_status(self, session_id: str) -> v2.SessionStatusResponse:
        """Whether a session is `open` at the agent or only `saved`, and in v2 its state, if reported.

        This opens nothing: a session that is not open here has to be resumed before it can be prompted, and a
        missing state does not mean idle (SESS-56).
        """
        if not self.abilities.status:
            raise LocalError("this agent does not report the status of sessions")
        params = v2.SessionStatusRequest(session_id=v2.SessionId(session_id))
        answer = await self.connection.call("session/status", params)
        status = v2.SessionStatus(answer.status)
        state = None if isinstance(answer, v1.SessionStatusResponse) else answer.state
        return v2.SessionStatusResponse(
            status=status if status.known else v2.SessionStatus.SAVED,  # SESS-55
            state=normalize_state(state) if isinstance(state, v2.StateUpdate) else state,
            meta=answer.meta,
        )

    async def set_title(self, session_id: str, title: str) -> str:
        """Set a title that the agent keeps and does not replace. Returns it as the agent stored it."""
        if not self.abilities.title:
            raise LocalError("this agent takes no titles")
        if not title.strip():
            raise LocalError(f"a title must not be blank, got {title!r}")  # SESS-57
        request = v2.SetSessionTitleRequest(session_id=v2.SessionId(session_id), title=title)
        stored: str = (await self.connection.call("session/set_title", request)).title
        session = self.find(session_id)
        if session is not None and session.title != stored:
            session._core.apply(v2.SessionInfoUpdate(title=stored))
        return stored

    async def delete_session(self, session_id: str) -> None:
        """Delete a session with all that belongs to it."""
        if not self.abilities.delete:
            raise LocalError("this agent cannot delete sessions")  # SESS-29
        request = v2.DeleteSessionRequest(session_id=v2.SessionId(session_id))
        await call_end(self.connection, "session/delete", request)
        self._setup.folders.pop(session_id, None)
        self._session_over(session_id, "the session was deleted")

    # --- opening and leaving -----------------------------------------------------------------------

    def _make_session(
        self, session_id: str, dialect: AgentDialect, request: Setup
    ) -> SessionCore[ClientSession]:
        return SessionCore(self._context, session_id, dialect, request, partial(ClientSession, self))

    def _session_over(self, session_id: str, reason: str) -> None:
        """A session was archived or deleted at the agent."""
        core = self._agent.find(session_id)
        if core is not None:
            self._agent.end(core, reason)

    def _session_left(self, core: SessionCore[ClientSession]) -> None:
        self._workspace.release(core.id)
        self._mcp.release(core.id)

    # --- links -------------------------------------------------------------------------------------

    def _link_lost(self, reason: str) -> None:
        """The link was lost, and another one may follow."""
        self.connection.cut(reason)
        self._workspace.link_lost()
        self._elicitations.link_lost()
        for session in self._agent.sessions.values():
            self.connection.after_received(session.id, partial(session.link_lost, LinkLost(reason)))
        self.link._step(LinkInput.LOST, reason)

    def _link_restored(self) -> None:
        """Another link is in use, and every session was resumed there."""
        self.connection.restored()
        for session in self._agent.sessions.values():
            session.link_restored()
        self.link._step(LinkInput.RESTORED)

    def _link_ended(self, reason: LinkLost) -> None:
        """The link has ended for good."""
        self.link._step(LinkInput.ENDED, reason.reason)
        self._workspace.link_lost()
        self._elicitations.link_lost()


async def _elicit(answers: Any, elicitation: Elicitation) -> Any:
    return await answers.elicit(elicitation)  # it has this if elicitations are offered
