"""Client: one agent, and the sessions with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from antiphon.client.abilities import Abilities, abilities
from antiphon.client.answers import Decides, Permissions
from antiphon.client.eliciting import Eliciting
from antiphon.client.folders import Folder, folder
from antiphon.client.keeping import Keeping
from antiphon.client.logins import Logins
from antiphon.client.mcp import AnyMcpServer, Providing, declared
from antiphon.client.offering import Offering
from antiphon.client.opening import Opening
from antiphon.client.session import ClientSession
from antiphon.client.spoken import Spoken, SpokenV1, SpokenV2
from antiphon.client.subagents import Following
from antiphon.client.system_prompts import system_prompt as prompt_given
from antiphon.client.view import Follows
from antiphon.client.workspace import Workspace
from antiphon.connection import Connection, Role
from antiphon.connection.connection import Tap
from antiphon.errors import InvalidParams, LinkLost, LocalError
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v1, v2
from antiphon.schema.version import META_KEY, V1, V2, VERSIONS, Agreement, Dialect, Extras, OptIns
from antiphon.schema.wire import Unknown
from antiphon.transports.base import Transport

OPT_INS = OptIns(turn_complete=True, message_update=True)
SESSION_ABLE: dict[str, Any] = {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}}
"""What a v1 agent has to know that we take (INIT-18, CONF-V1-06, NOTE-01, COMP-01); v2 has it by itself."""

TOO_EARLY = "nothing is agreed on with the agent yet: `initialize` comes first"


class Client(Logins, Keeping):
    """What `connect` gives. Make one session or many; each has its own order, and none waits for another."""

    def __init__(
        self,
        transport: Transport,
        *,
        version: int | None = None,
        dialect: str | None = None,
        answers: Decides | None = None,
        silence: float | None = None,
        name: str = "antiphon",
        client_version: str = "0",
        opt_ins: OptIns = OPT_INS,
        numbered: bool = False,
        workspace: Workspace | None = None,
        terminal_login: bool = False,
        tap: Tap | None = None,
        relay: Callable[[ClientSession], Follows] | None = None,
    ) -> None:
        if version is not None and version not in VERSIONS:
            raise LocalError(f"there is no ACP version {version} here; it is one of {VERSIONS}")
        if dialect is not None and dialect not in list(Dialect):
            raise LocalError(f"there is no dialect {dialect!r}; it is one of {', '.join(Dialect)}")
        if dialect is not None and (dialect == Dialect.V1) is not (version == V1):
            version = _only(version, V1 if dialect == Dialect.V1 else V2, dialect)
        self.answers: Decides = answers or Permissions()
        self.relay = relay
        """Makes what follows a session, where all that comes is passed on to others."""
        self.silence = silence
        self._abilities: Abilities | None = None
        self.info: v1.Implementation | v2.Implementation | None = None
        """Name and version of the agent, if it told them."""
        self.lost: LinkLost | None = None
        self._version = version
        self._proposed = dialect == Dialect.V2_PROPOSED
        self._name = {"name": name, "version": client_version}
        self._opt_ins = opt_ins
        self._terminal_login = terminal_login
        self._extras = Extras(queue_updates=True, seq=numbered)
        self._sessions: dict[str, ClientSession] = {}
        self._left: set[str] = set()
        """Sessions that were open here and whose updates may still come."""
        self._folders: dict[str, str] = {}
        """The folders of the sessions that are known: made, opened or listed here."""
        self.offering = Offering(workspace, self._live)
        """The files and terminals that an agent of v1 may use here."""
        self.eliciting = Eliciting(self)
        self.providing = Providing(lambda: self.connection)
        """The MCP servers of our own that the agent may use."""
        self.following = Following(self._sessions.get, self._add)
        """The sessions that work for those that are open here."""
        self.connection = Connection(
            transport,
            role=Role.CLIENT,
            supported=VERSIONS if version is None else (version,),
            requests={
                "session/request_permission": self._permission,
                **self.eliciting.handlers,
                **self.offering.handlers,
                "mcp/message": self.providing.serve,
            },
            unbegun={"session/request_permission": self._permission_taken_back, **self.eliciting.unbegun},
            notifications={
                "session/update": self._updated,
                "auth/status_update": self._auth_status_updated,
                **self.eliciting.notifications,
            },
            on_lost=self._lose,
            tap=tap,
        )
        self._opening = Opening(self.connection)

    @property
    def agreement(self) -> Agreement:
        """What was agreed on: version, dialect and what was asked for beside them."""
        if self.connection.agreement is None:
            raise LocalError(TOO_EARLY)
        return self.connection.agreement

    @property
    def abilities(self) -> Abilities:
        """What the agent can do."""
        if self._abilities is None:
            raise LocalError(TOO_EARLY)
        return self._abilities

    async def initialize(self) -> None:
        """Agree on a version: both are offered in one request, and the answer's shape decides."""
        ours = self._extras.to_meta()
        params: dict[str, Any] = {
            "protocolVersion": V1 if self._version == V1 else V2,
            "clientInfo": self._name,
            "clientCapabilities": {
                **self.eliciting.capabilities,
                **self.offering.capabilities,
                "session": SESSION_ABLE,
                "subagents": {},  # SUB-01
                **({"auth": {"terminal": True}} if self._terminal_login else {}),
                "_meta": {META_KEY: {**ours, **self._opt_ins.to_meta()}},
            },
        }
        if self._version != V1:
            able = {**self.eliciting.capabilities, "_meta": {META_KEY: ours}}
            if self._terminal_login:
                able["auth"] = {"terminal": {}}
            params |= {"info": self._name, "capabilities": able}
        if self._proposed:
            params["_meta"] = {META_KEY: {"dialect": "proposed"}}
        result = await self.connection.initialize(params)
        self._abilities = abilities(result)
        self._take_methods(result)
        if isinstance(result, v2.InitializeResponse):
            self.info = result.info
        else:
            self.info = result.agent_info
            self._opening.v1_capabilities = result.agent_capabilities

    def _lose(self, reason: LinkLost) -> None:
        """The link has ended: each session is told once it has applied all that came over it."""
        self.lost = reason
        self.offering.lose()
        self.eliciting.lose()
        for session in self._sessions.values():
            self.connection.behind(session.id, partial(session.leave, reason))

    # --- sessions ----------------------------------------------------------------------------------

    @property
    def sessions(self) -> list[ClientSession]:
        """The sessions that are open here."""
        return [session for session in self._sessions.values() if session.parent is None]

    async def new_session(
        self,
        cwd: Folder | None = None,
        *,
        mcp_servers: Sequence[AnyMcpServer] = (),
        additional_directories: Sequence[Folder] = (),
        system_prompt: str | v2.SystemPrompt | None = None,
    ) -> ClientSession:
        """Begin a session in a folder, which is the current one unless another is given."""
        directories = [folder(directory) for directory in additional_directories]
        self.abilities.check_setup(declared(mcp_servers), directories)
        wanted = v2.NewSessionRequest(
            cwd=folder(cwd),
            mcp_servers=declared(mcp_servers),
            additional_directories=directories,
            system_prompt=prompt_given(system_prompt, self.abilities),
        )
        return await self.begin_session(wanted, mcp_servers)

    async def begin_session(
        self, wanted: v2.NewSessionRequest | v2.ForkSessionRequest, mcp_servers: Sequence[AnyMcpServer]
    ) -> ClientSession:
        """Ask for a session that is new, or goes on from another one."""
        opening = self._opening.new(wanted, partial(self._add, directories=wanted.additional_directories))
        session = await self.providing.during(mcp_servers, opening)
        self._folders[session.id] = wanted.cwd
        return session

    async def load_session(
        self,
        session_id: str,
        cwd: Folder | None = None,
        *,
        mcp_servers: Sequence[AnyMcpServer] = (),
        additional_directories: Sequence[Folder] = (),
        system_prompt: str | v2.SystemPrompt | None = None,
    ) -> ClientSession:
        """Open a session again, with everything it holds. `cwd` is its own folder (SESS-27), and need not be
        given for one that was made, opened or listed here."""
        if not self.abilities.load:
            raise LocalError("this agent cannot load sessions")  # SESS-12
        start = v2.ReplayFromStart()
        return await self._reopen(session_id, cwd, start, mcp_servers, additional_directories, system_prompt)

    async def resume_session(
        self,
        session_id: str,
        cwd: Folder | None = None,
        *,
        mcp_servers: Sequence[AnyMcpServer] = (),
        additional_directories: Sequence[Folder] = (),
        system_prompt: str | v2.SystemPrompt | None = None,
    ) -> ClientSession:
        """Open a session again, without its history where the agent can do that."""
        if not (self.abilities.resume or self.abilities.load):
            raise LocalError("this agent cannot resume sessions")  # SESS-14
        return await self._reopen(session_id, cwd, None, mcp_servers, additional_directories, system_prompt)

    @asynccontextmanager
    async def attach(
        self, session_id: str, *, cwd: Folder | None = None, after: int | None = None
    ) -> AsyncIterator[ClientSession]:
        """Follow a session that others may follow too, from its start or, with a hub, after an event; at the
        end this client leaves it, and it goes on."""
        if not self.abilities.load:
            raise LocalError("this agent cannot load sessions")  # SESS-12
        replay_from: v2.ReplayFrom = v2.ReplayFromStart()
        if after is not None:
            if not self.abilities.replay_after or self._v1:
                raise LocalError("this agent cannot replay after an event")
            replay_from = Unknown({"type": "_antiphon_after", "seq": after})
        session = await self._reopen(session_id, cwd, replay_from, (), ())
        try:
            yield session
        finally:
            self._leave(session, "this client has left the session")

    async def _reopen(
        self,
        session_id: str,
        cwd: Folder | None,
        replay_from: v2.ReplayFrom | None,
        mcp_servers: Sequence[AnyMcpServer],
        additional_directories: Sequence[Folder],
        system_prompt: str | v2.SystemPrompt | None = None,
    ) -> ClientSession:
        directories = [folder(directory) for directory in additional_directories]
        self.abilities.check_setup(declared(mcp_servers), directories)
        wanted = v2.ResumeSessionRequest(
            session_id=v2.SessionId(session_id),
            cwd=folder(self._folders.get(session_id) if cwd is None else cwd),
            mcp_servers=declared(mcp_servers),
            additional_directories=directories,
            replay_from=replay_from,
            system_prompt=prompt_given(system_prompt, self.abilities),
        )
        before = self._sessions.get(session_id)
        session = self._add(session_id, wanted.cwd, directories=directories)
        try:
            await self.providing.during(mcp_servers, self._opening.again(wanted, session), session)
        except BaseException:
            if self._sessions.get(session_id) is session:
                del self._sessions[session_id]
                if before is not None:
                    self._sessions[session_id] = before
            raise
        if before is not None:
            before.leave("the session was opened again")
        self._folders[session_id] = wanted.cwd
        return session

    def _add(self, session_id: str, cwd: str, *, directories: Sequence[str] = ()) -> ClientSession:
        able = self._opening.v1_capabilities
        spoken: Spoken = SpokenV2() if able is None else SpokenV1(self.agreement, able)
        session = self._sessions[session_id] = ClientSession(self, session_id, spoken, cwd=cwd)
        session.additional_directories = tuple(directories)
        self._left.discard(session_id)
        return session

    def _leave(self, session: ClientSession, reason: str) -> None:
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
            self._left.add(session.id)
            self.offering.left(session.id)
            self.providing.left(session.id)
        for child in tuple(self._sessions.values()):
            if child.parent is session:
                self._leave(child, reason)
        session.leave(reason)

    def _live(self, session_id: str) -> ClientSession | None:
        return None if self.lost is not None else self._sessions.get(session_id)

    async def close_session(self, session: ClientSession) -> None:
        """End a session at the agent; what is open of it here ends too."""
        if not self.abilities.close:
            raise LocalError("this agent cannot close sessions")  # SESS-29
        await self._end_session("session/close", v2.CloseSessionRequest(session_id=v2.SessionId(session.id)))
        session.close_questions()
        self._leave(session, "the session was closed")

    # --- what comes --------------------------------------------------------------------------------

    @property
    def _v1(self) -> bool:
        return self.agreement.version == V1

    def find(self, session_id: str) -> ClientSession | None:
        """A session that is open here."""
        return self._sessions.get(session_id)

    async def known(self, session_id: str) -> ClientSession | None:
        """A session that is open here, or that what was received so far announces."""
        return await self.following.known(session_id, tuple(self._sessions), self.connection.behind)

    def has_left(self, session_id: str) -> bool:
        """Whether a session was open here and goes on without this client."""
        return session_id in self._left

    def _updated(self, params: Any) -> Awaitable[None] | None:
        session = self._sessions.get(params.session_id)
        if session is not None:
            session.receive(params)
            return None if self.relay is None else session.pace()
        if params.session_id not in self._left:
            self._opening.keep(params)
            self.following.keep(params)
        return None

    async def _permission(self, params: Any, inbound: Inbound) -> Any:
        session = self._sessions.get(params.session_id)
        if session is not None:
            return await session.ask_permission(params, inbound)
        if params.session_id not in self._left:
            child = await self.known(params.session_id)
            if child is not None:
                return await child.ask_permission(params, inbound)
            raise InvalidParams("no such session is open here")
        # It goes on without this client: any answer, an error too, could decide it for those who are there.
        try:
            return await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            if not inbound.cancelled:
                raise  # the link ends
            return _cancelled(params)

    def _permission_taken_back(self, params: Any) -> Any:
        session = self._sessions.get(params.session_id)
        return _cancelled(params) if session is None else session.permission_taken_back(params)


def _cancelled(params: Any) -> Any:
    """PERM-V2-09: a permission request that was taken back is answered all the same."""
    if isinstance(params, v1.RequestPermissionRequest):
        return v1.RequestPermissionResponse(outcome=v1.CancelledPermissionOutcome())
    return v2.RequestPermissionResponse(outcome=v2.CancelledPermissionOutcome())


def _only(asked: int | None, version: int, dialect: str) -> int:
    if asked not in (None, version):
        raise LocalError(f"the dialect {dialect!r} is none of ACP version {asked}")
    return version
