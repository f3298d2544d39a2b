"""Client: one agent, and the sessions with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from antiphon.client.abilities import Abilities, abilities
from antiphon.client.answered import Answered
from antiphon.client.answers import Decides, Permissions
from antiphon.client.early import size_of
from antiphon.client.eliciting import Eliciting
from antiphon.client.extending import Extending
from antiphon.client.links import Link
from antiphon.client.logins import Logins
from antiphon.client.mcp import Providing
from antiphon.client.offering import Folders, Offering
from antiphon.client.opening import Opening
from antiphon.client.providers import Providers
from antiphon.client.session import ClientSession
from antiphon.client.sessions import Sessions
from antiphon.client.spoken import CompletionPromise, Spoken, SpokenV1, SpokenV2
from antiphon.client.subagents import Following
from antiphon.client.text_chunks import pass_on_text_chunks
from antiphon.client.view import Follows
from antiphon.client.workspace import Workspace
from antiphon.connection import Connection, Role
from antiphon.connection.tap import Tap
from antiphon.engine.who import Who
from antiphon.errors import InvalidParams, LinkLost, LocalError
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v1, v2
from antiphon.schema.version import (
    META_KEY,
    V1,
    V2,
    VERSIONS,
    Agreement,
    Dialect,
    Extras,
    OptIns,
)
from antiphon.transports.base import Transport

if TYPE_CHECKING:
    from antiphon.bridge.originals import Originals

OPT_INS = OptIns(turn_complete=True, message_update=True)
SESSION_ABLE: dict[str, Any] = {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}}
"""What a v1 agent has to know that we take (INIT-18, CONF-V1-06, NOTE-01, COMP-01); v2 has it by itself."""

TOO_EARLY = "nothing is agreed on with the agent yet: `initialize` comes first"


class Client(Logins, Sessions, Extending):
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
        client_id: str | None = None,
        lasting: bool = False,
        on_link: Callable[[Link], None] | None = None,
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
        self.new_originals: Callable[[], Originals] | None = None
        """Makes what finds the updates of a v1 agent that are kept as they were written, where they are."""
        self.silence = silence
        self._abilities: Abilities | None = None
        self.info: v1.Implementation | v2.Implementation | None = None
        """Name and version of the agent, if it told them."""
        self.lost: LinkLost | None = None
        self.link = Link(on_link)
        """Whether the agent can be reached just now."""
        self.lasting = lasting
        """Whether another link comes when one is lost."""
        self._version = version
        self._proposed = dialect == Dialect.V2_PROPOSED
        self.who = Who(client_id=client_id or f"client_{token_hex(12)}", name=name)
        """Who this client is to the others of its sessions; its id is the same over all its links."""
        self._name = {"name": name, "version": client_version}
        self._opt_ins = opt_ins
        self.completion_promise = CompletionPromise()
        """Whether `turn_complete` is waited for, where the agent announced it."""
        self._terminal_login = terminal_login
        # Who passes everything on has clients, a queue and questions of its own.
        alone = relay is None
        self._extras = Extras(
            queue_updates=alone,
            seq=numbered or lasting,
            presence=alone,
            annotations=True,
            prompt_ids=self._proposed,
        )
        Sessions.__init__(self)
        self.offering = Offering(workspace, self._live, beginning=self._beginning, keep=self._keep)
        """The files and terminals that an agent of v1 may use here."""
        self.answered = Answered()
        self.eliciting = Eliciting(self)
        self.providers = Providers(self)
        """Where the agent reaches its models, as far as that can be set. Unstable."""
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
                "session/update": self.updated,
                "auth/status_update": self._auth_status_updated,
                **self.eliciting.notifications,
            },
            on_lost=self._lose,
            tap=tap,
        )
        self.opening = Opening(self.connection)
        Extending.__init__(self)

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

    @property
    def agent_name(self) -> str:
        """What the other side is called, as far as it said."""
        return "unknown agent" if self.info is None else self.info.title or self.info.name

    @property
    def agents(self) -> list[str]:
        """The names of the agents that a hub lets its clients choose from; none where it is no hub."""
        offered = self.abilities.ours.get("agents")
        return [name for name in offered if isinstance(name, str)] if isinstance(offered, list) else []

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
        dialect = {"dialect": "proposed"} if self._proposed else {}
        params["_meta"] = {META_KEY: {"clientId": self.who.client_id, **dialect}}
        result = await self.connection.initialize(params)
        self._abilities = abilities(result)
        self._take_methods(result)
        if self.relay is not None:
            pass_on_text_chunks(self)
        if isinstance(result, v2.InitializeResponse):
            self.info = result.info
        else:
            self.info = result.agent_info
            self.opening.v1_capabilities = result.agent_capabilities
            if self.relay is not None:
                from antiphon.client.originals import keep_originals

                keep_originals(self)

    def cut(self, reason: str) -> None:
        """The link was lost, and another one is looked for."""
        self.connection.cut(reason)
        self.offering.lose()
        self.eliciting.lose()
        for session in self._sessions.values():
            self.connection.behind(session.id, partial(session.cut, LinkLost(reason)))
        self.link.lose(reason)

    def restored(self) -> None:
        """Another link is in use, and every session was resumed there."""
        self.connection.restored()
        for session in self._sessions.values():
            session.restored()
        self.link.restore()

    def _lose(self, reason: LinkLost) -> None:
        """The link has ended: each session is told once it has applied all that came over it."""
        self.lost = reason
        self.link.end(reason.reason)
        self.offering.lose()
        self.eliciting.lose()
        for session in self._sessions.values():
            self.connection.behind(session.id, partial(session.leave, reason))

    def _beginning(self, session_id: str) -> Folders | None:
        """The folders of a session that an agent names before it has answered the request for it."""
        wanted = None if session_id in self._left else self.opening.only_pending
        return None if wanted is None else Folders(wanted.cwd, wanted.additional_directories)

    def _keep(self, session_id: str, receive: Callable[[], object]) -> None:
        if session_id not in self._left:
            self.opening.keep(session_id, receive)

    def _add(self, session_id: str, cwd: str, *, directories: Sequence[str] = ()) -> ClientSession:
        able = self.opening.v1_capabilities
        own = self.who if self.relay is None else None
        spoken: Spoken = SpokenV2()
        if able is not None:
            spoken = SpokenV1(self.agreement, able, own=own, promise=self.completion_promise)
            spoken.originals = None if self.new_originals is None else self.new_originals()
        session = self._sessions[session_id] = ClientSession(self, session_id, spoken, cwd=cwd)
        session.additional_directories = tuple(directories)
        self._left.pop(session_id, None)
        return session

    # --- what comes --------------------------------------------------------------------------------

    def updated(self, params: Any) -> Awaitable[None] | None:
        """`session/update` came."""
        session = self._sessions.get(params.session_id)
        if session is not None:
            session.receive(params)
            return None if self.relay is None else session.pace()
        if params.session_id not in self._left:
            size = size_of(params)
            self.opening.keep(params.session_id, partial(self.updated, params), size=size)
            self.following.keep(params, size)
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
