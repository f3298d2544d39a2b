"""The sessions that a client has open with its agent: begun, opened again, followed and left."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from antiphon.client.folders import Folder, folder
from antiphon.client.keeping import Keeping
from antiphon.client.mcp import AnyMcpServer, Providing, declared
from antiphon.client.offering import Offering
from antiphon.client.opening import Opening
from antiphon.client.places import new_operation
from antiphon.client.session import ClientSession
from antiphon.client.subagents import Following
from antiphon.client.system_prompts import system_prompt as prompt_given
from antiphon.engine.recent import Recent
from antiphon.errors import LinkLost, LocalError
from antiphon.schema import v2
from antiphon.schema.version import V1, ours_in, with_ours
from antiphon.schema.wire import Unknown

LEFT = 4096
"""How many sessions are remembered that were left: what comes of others is news."""
KNOWN = 65536
"""How many sessions' folders are remembered."""


class Sessions(Keeping):
    opening: Opening
    offering: Offering
    providing: Providing
    following: Following
    lost: LinkLost | None
    lasting: bool

    def __init__(self) -> None:
        self._sessions: dict[str, ClientSession] = {}
        self._left: Recent[str, None] = Recent(LEFT)
        """Sessions that were open here and whose updates may still come."""
        self._folders: Recent[str, str] = Recent(KNOWN)
        """The folders of the sessions that are known: made, opened or listed here."""

    @abstractmethod
    def _add(self, session_id: str, cwd: str, *, directories: Sequence[str] = ()) -> ClientSession:
        """Have a session open here."""

    @property
    def sessions(self) -> list[ClientSession]:
        """The sessions that are open here."""
        return [session for session in self._sessions.values() if session.parent is None]

    def find(self, session_id: str) -> ClientSession | None:
        """A session that is open here."""
        return self._sessions.get(session_id)

    async def known(self, session_id: str) -> ClientSession | None:
        """A session that is open here, that what was received so far announces, or that is about to be named
        by the answer to a request for a new one."""
        found = await self.following.known(session_id, tuple(self._sessions), self.connection.behind)
        if found is None:
            await self.opening.until(lambda: session_id in self._sessions)
        return found or self._sessions.get(session_id)

    def has_left(self, session_id: str) -> bool:
        """Whether a session was open here and goes on without this client."""
        return session_id in self._left

    def _live(self, session_id: str) -> ClientSession | None:
        return None if self.lost is not None else self._sessions.get(session_id)

    # --- opening -----------------------------------------------------------------------------------

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
        """Begin a session in a folder, which is the current one unless another is given. `agent` names one of
        a hub's agents. `meta` goes beside the request as it is. Asked again under the same `operation_id`,
        where the agent offers that, it is the session of the first time."""
        ours = {} if agent is None else {"agent": agent}
        ours |= self.operation("new", operation_id)
        directories = [folder(directory) for directory in additional_directories]
        self.abilities.check_setup(declared(mcp_servers), directories)
        wanted = v2.NewSessionRequest(
            cwd=folder(cwd),
            mcp_servers=declared(mcp_servers),
            additional_directories=directories,
            system_prompt=prompt_given(system_prompt, self.abilities),
            meta=with_ours(meta, **ours) if ours else meta,
        )
        return await self.begin_session(wanted, mcp_servers)

    async def begin_session(
        self,
        wanted: v2.NewSessionRequest | v2.ForkSessionRequest,
        mcp_servers: Sequence[AnyMcpServer],
        *,
        prepare: Callable[[ClientSession], None] = lambda _: None,
    ) -> ClientSession:
        """Ask for a session that is new, or goes on from another one. `prepare` is called with it before
        anything that the agent sent of it is received."""
        find = self._begun if "operationId" in ours_in(wanted.meta) else self._add

        def add(session_id: str, cwd: str) -> ClientSession:
            session = find(session_id, cwd, directories=wanted.additional_directories)
            prepare(session)
            return session

        opening = self.opening.new(wanted, add)
        session = await self.providing.during(mcp_servers, opening)
        self._folders[session.id] = wanted.cwd
        return session

    def operation(self, kind: str, operation_id: str | None) -> dict[str, str]:
        """The operation id of a request, by its name: where another link may come it is made up, so that the
        request can be made again there."""
        if operation_id is None and self.lasting and kind in self.abilities.operations:
            operation_id = new_operation()
        return {} if operation_id is None else {"operationId": operation_id}

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
            if not self.abilities.replay_after or self.agreement.version == V1:
                raise LocalError("this agent cannot replay after an event")
            replay_from = Unknown({"type": "_antiphon_after", "seq": after})
        session = await self._reopen(session_id, cwd, replay_from, (), ())
        try:
            yield session
        finally:
            self.leave_session(session)

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
            await self.providing.during(mcp_servers, self.opening.again(wanted, session), session)
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

    def _begun(self, session_id: str, cwd: str, *, directories: Sequence[str]) -> ClientSession:
        """The session that an agent has begun, perhaps not for the first time."""
        return self._sessions.get(session_id) or self._add(session_id, cwd, directories=directories)

    # --- leaving -----------------------------------------------------------------------------------

    def _leave(self, session: ClientSession, reason: str) -> None:
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
            self._left[session.id] = None
            self.offering.left(session.id)
            self.providing.left(session.id)
        for child in tuple(self._sessions.values()):
            if child.parent is session:
                self._leave(child, reason)
        session.leave(reason)

    def leave_session(self, session: ClientSession, reason: str = "this client has left the session") -> None:
        """Follow a session no longer; at the agent it goes on."""
        self._leave(session, reason)
        if "attach" in self.abilities.ours:  # so that the others see who is there
            with suppress(LinkLost):
                self.connection.begin("_antiphon/detach", {"sessionId": session.id}, lambda _: None)

    async def close_session(self, session: ClientSession) -> None:
        """End a session at the agent; what is open of it here ends too."""
        if not self.abilities.close:
            raise LocalError("this agent cannot close sessions")  # SESS-29
        await self._end_session("session/close", v2.CloseSessionRequest(session_id=v2.SessionId(session.id)))
        session.close_questions()
        self._leave(session, "the session was closed")
