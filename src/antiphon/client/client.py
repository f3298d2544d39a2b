"""Client: one agent, and the sessions with it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol

from antiphon.bridge import requests_v1
from antiphon.client.abilities import Abilities, abilities
from antiphon.client.answers import Permission, Permissions
from antiphon.client.session import ClientSession
from antiphon.client.spoken import Spoken, SpokenV1, SpokenV2
from antiphon.connection import Connection, Role
from antiphon.connection.connection import Tap
from antiphon.errors import CallFailed, InvalidParams, LinkLost, LocalError, ResourceNotFound
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v1, v2
from antiphon.schema.v2.permissions import PermissionOption
from antiphon.schema.version import META_KEY, V1, V2, VERSIONS, Agreement, Dialect, Extras, OptIns
from antiphon.schema.wire import Unknown
from antiphon.transports.base import Transport

logger = logging.getLogger("antiphon.client")

EARLY = 10_000
"""How many updates are kept for sessions that nobody has named yet."""
OPT_INS = OptIns(turn_complete=True, message_update=True)


class Decides(Protocol):
    """Answers permission requests; `Permissions` is one."""

    async def decide(self, permission: Permission) -> PermissionOption | None: ...


class Client:
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
        tap: Tap | None = None,
    ) -> None:
        if version is not None and version not in VERSIONS:
            raise LocalError(f"there is no ACP version {version} here; it is one of {VERSIONS}")
        self.answers: Decides = answers or Permissions()
        self.silence = silence
        self.abilities = Abilities()
        self.info: v1.Implementation | v2.Implementation | None = None
        """Name and version of the agent, if it told them."""
        self.lost: LinkLost | None = None
        self._version = version
        self._proposed = dialect is not None and Dialect(dialect) is Dialect.V2_PROPOSED
        self._name = {"name": name, "version": client_version}
        self._opt_ins = opt_ins
        self._extras = Extras(queue_updates=True, seq=numbered)
        self._sessions: dict[str, ClientSession] = {}
        self._early: dict[str, list[Any]] = {}
        self._v1_capabilities = v1.AgentCapabilities()
        self.connection = Connection(
            transport,
            role=Role.CLIENT,
            supported=VERSIONS if version is None else (version,),
            requests={"session/request_permission": self._permission},
            notifications={"session/update": self._updated},
            on_lost=self._lose,
            tap=tap,
        )

    @property
    def agreement(self) -> Agreement:
        """What was agreed on: version, dialect and what was asked for beside them."""
        assert self.connection.agreement is not None
        return self.connection.agreement

    async def initialize(self) -> None:
        """Agree on a version: both are offered in one request, and the answer's shape decides."""
        ours = self._extras.to_meta()
        params: dict[str, Any] = {
            "protocolVersion": V1 if self._version == V1 else V2,
            "clientInfo": self._name,
            "clientCapabilities": {"_meta": {META_KEY: {**ours, **self._opt_ins.to_meta()}}},
        }
        if self._version != V1:
            params |= {"info": self._name, "capabilities": {"_meta": {META_KEY: ours}}}
        if self._proposed:
            params["_meta"] = {META_KEY: {"dialect": "proposed"}}
        result = await self.connection.initialize(params)
        self.abilities = abilities(result)
        if isinstance(result, v2.InitializeResponse):
            self.info = result.info
        else:
            self.info = result.agent_info
            self._v1_capabilities = result.agent_capabilities

    def _lose(self, reason: LinkLost) -> None:
        """The link has ended: each session is told once it has applied all that came over it."""
        self.lost = reason
        for session in self._sessions.values():
            self.connection.behind(session.id, partial(session.lose, reason))

    # --- sessions ----------------------------------------------------------------------------------

    @property
    def sessions(self) -> list[ClientSession]:
        """The sessions that are open here."""
        return list(self._sessions.values())

    async def new_session(
        self,
        cwd: str | os.PathLike[str] | None = None,
        *,
        mcp_servers: Sequence[v2.McpServer] = (),
        additional_directories: Sequence[str] = (),
    ) -> ClientSession:
        """Begin a session in a folder, which is the current one unless another is given."""
        if additional_directories and not self.abilities.additional_directories:
            raise LocalError("this agent takes no additional directories")  # SESS-09
        folder = _folder(cwd)
        wanted = v2.NewSessionRequest(
            cwd=folder,
            mcp_servers=list(mcp_servers),
            additional_directories=[_folder(directory) for directory in additional_directories],
        )
        params: Any = wanted
        if self._v1:
            params = requests_v1.new_session(wanted, capabilities=self._v1_capabilities)
        made: asyncio.Future[ClientSession] = asyncio.get_running_loop().create_future()

        def settled(outcome: Any) -> None:
            """In the lane of the session that the answer names: what came for it earlier is known."""
            if made.done():
                return
            if isinstance(outcome, Exception):
                made.set_exception(outcome)
                return
            session = self._add(outcome.session_id, folder)
            self._opened(session, outcome)
            for early in self._early.pop(session.id, ()):
                session.receive(early)
            made.set_result(session)

        call = self.connection.begin("session/new", params, settled)
        try:
            return await made
        except asyncio.CancelledError:
            self.connection.abandon(call)
            raise

    async def load_session(
        self, session_id: str, cwd: str | os.PathLike[str] | None = None, **options: Any
    ) -> ClientSession:
        """Open a session again, with everything it holds."""
        if not self.abilities.load:
            raise LocalError("this agent cannot load sessions")  # SESS-12
        return await self._reopen(session_id, cwd, replay_from=v2.ReplayFromStart(), **options)

    async def resume_session(
        self, session_id: str, cwd: str | os.PathLike[str] | None = None, **options: Any
    ) -> ClientSession:
        """Open a session again, without its history where the agent can do that."""
        if not (self.abilities.resume or self.abilities.load):
            raise LocalError("this agent cannot resume sessions")  # SESS-14
        return await self._reopen(session_id, cwd, replay_from=None, **options)

    @asynccontextmanager
    async def attach(
        self, session_id: str, *, cwd: str | os.PathLike[str] | None = None, after: int | None = None
    ) -> AsyncIterator[ClientSession]:
        """Follow a session that others may follow too, from its start or, with a hub, after an event; at the
        end this client leaves it, and it goes on."""
        replay_from: v2.ReplayFrom = v2.ReplayFromStart()
        if after is not None:
            if not self.abilities.replay_after:
                raise LocalError("this agent cannot replay after an event")
            replay_from = Unknown({"type": "_antiphon_after", "seq": after})
        session = await self._reopen(session_id, cwd, replay_from=replay_from)
        try:
            yield session
        finally:
            self._sessions.pop(session_id, None)

    async def _reopen(
        self,
        session_id: str,
        cwd: str | os.PathLike[str] | None,
        *,
        replay_from: v2.ReplayFrom | None,
        mcp_servers: Sequence[v2.McpServer] = (),
    ) -> ClientSession:
        folder = _folder(cwd)
        wanted = v2.ResumeSessionRequest(
            session_id=v2.SessionId(session_id),
            cwd=folder,
            mcp_servers=list(mcp_servers),
            replay_from=replay_from,
        )
        before = self._sessions.pop(session_id, None)
        session = self._add(session_id, folder)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def settled(outcome: Any) -> None:
            if done.done():
                return
            if isinstance(outcome, Exception):
                done.set_exception(outcome)
                return
            self._opened(session, outcome)
            done.set_result(None)

        params: Any = wanted
        if isinstance(session.spoken, SpokenV1):
            params = requests_v1.resume_session(wanted, capabilities=self._v1_capabilities)
            session.spoken.upgrade.reopening()
        method = "session/load" if isinstance(params, v1.LoadSessionRequest) else "session/resume"
        call = self.connection.begin(method, params, settled)
        try:
            await done
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                self.connection.abandon(call)
            del self._sessions[session_id]
            if before is not None:
                self._sessions[session_id] = before
            raise
        return session

    def _add(self, session_id: str, cwd: str) -> ClientSession:
        spoken: Spoken = SpokenV1(self.agreement, self._v1_capabilities) if self._v1 else SpokenV2()
        session = self._sessions[session_id] = ClientSession(self, session_id, spoken, cwd=cwd)
        return session

    def _opened(self, session: ClientSession, result: Any) -> None:
        """What the answer of new, load or resume tells beside the session's id."""
        if isinstance(session.spoken, SpokenV1):
            upgrade = session.spoken.upgrade
            if isinstance(result, v1.NewSessionResponse):
                result = upgrade.configuration.new_session(result)
            else:
                result, states = upgrade.reopened(result)
                for state in states:
                    session.tell(state)
        if result.config_options and not session.config_options:
            session.tell(v2.ConfigOptionUpdate(config_options=result.config_options))
        if result.available_commands and not session.commands:
            session.tell(v2.AvailableCommandsUpdate(available_commands=result.available_commands))

    async def list_sessions(
        self, *, cwd: str | os.PathLike[str] | None = None
    ) -> AsyncIterator[v2.SessionInfo]:
        """The sessions that the agent keeps, the newest first, page by page as they are read."""
        if not self.abilities.listing:
            raise LocalError("this agent cannot list sessions")  # SESS-29
        cursor: v2.SessionListCursor | None = None
        while True:
            wanted = v2.ListSessionsRequest(cwd=None if cwd is None else _folder(cwd), cursor=cursor)
            params: Any = requests_v1.list_sessions(wanted) if self._v1 else wanted
            page = await self.connection.call("session/list", params)
            if self._v1:
                page = requests_v1.listed_sessions(page)
            for info in page.sessions:
                yield info
            cursor = page.next_cursor
            if cursor is None or (self._v1 and not cursor):
                return  # SESS-34

    async def close_session(self, session: ClientSession) -> None:
        if not self.abilities.close:
            raise LocalError("this agent cannot close sessions")
        await self._end_session("session/close", v2.CloseSessionRequest(session_id=v2.SessionId(session.id)))
        self._sessions.pop(session.id, None)

    async def delete_session(self, session_id: str) -> None:
        """Remove a session with all that belongs to it."""
        if not self.abilities.delete:
            raise LocalError("this agent cannot delete sessions")
        await self._end_session(
            "session/delete", v2.DeleteSessionRequest(session_id=v2.SessionId(session_id))
        )
        self._sessions.pop(session_id, None)

    async def _end_session(self, method: str, params: Any) -> None:
        try:
            await self.connection.call(method, params)
        except CallFailed as error:
            if error.error.code != ResourceNotFound.code:
                raise  # SESS-45: what is not there is closed

    # --- what comes --------------------------------------------------------------------------------

    @property
    def _v1(self) -> bool:
        return self.agreement.version == V1

    def _updated(self, params: Any) -> None:
        session = self._sessions.get(params.session_id)
        if session is not None:
            session.receive(params)
            return
        # SESS-08: some agents speak of a session before they have named it.
        early = self._early.setdefault(params.session_id, [])
        early.append(params)
        if sum(map(len, self._early.values())) > EARLY:
            dropped = next(iter(self._early))
            logger.warning("updates of the unknown session %s were dropped", dropped)
            del self._early[dropped]

    async def _permission(self, params: Any, inbound: Inbound) -> Any:
        session = self._sessions.get(params.session_id)
        if session is None:
            raise InvalidParams("no such session is open here")
        return await session.ask_permission(params, inbound)


def _folder(path: str | os.PathLike[str] | None) -> str:
    """RPC-43: paths on the wire are absolute."""
    return os.path.abspath(os.fspath(path) if path is not None else os.getcwd())
