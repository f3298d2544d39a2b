"""What a client does with the sessions that an agent keeps: list, archive, title, status, delete."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from antiphon.bridge import requests_v1
from antiphon.bridge.spelling import normalize_state
from antiphon.client.abilities import Abilities
from antiphon.client.folders import Folder, folder
from antiphon.connection import Connection
from antiphon.errors import CallFailed, LocalError, ResourceNotFound
from antiphon.schema import v1, v2
from antiphon.schema.version import V1, Agreement

if TYPE_CHECKING:
    from antiphon.client.session import ClientSession


class Keeping(ABC):
    connection: Connection
    _sessions: dict[str, ClientSession]
    _folders: dict[str, str]

    @property
    @abstractmethod
    def agreement(self) -> Agreement: ...

    @property
    @abstractmethod
    def abilities(self) -> Abilities: ...

    @abstractmethod
    def _leave(self, session: ClientSession, reason: str) -> None: ...

    async def list_sessions(
        self, *, cwd: Folder | None = None, archived: str | None = None
    ) -> AsyncIterator[v2.SessionInfo]:
        """The sessions that the agent keeps, the newest first, page by page as they are read. Archived ones
        are left out unless `archived` is `include` or `only`."""
        if not self.abilities.listing:
            raise LocalError("this agent cannot list sessions")  # SESS-29
        wanted_ones = None if archived is None else self._filter(archived)
        cursor: v2.SessionListCursor | None = None
        old = self.agreement.version == V1
        while True:
            wanted = v2.ListSessionsRequest(
                cwd=None if cwd is None else folder(cwd), cursor=cursor, archived=wanted_ones
            )
            params: Any = requests_v1.list_sessions(wanted) if old else wanted
            page = await self.connection.call("session/list", params)
            if old:
                page = requests_v1.listed_sessions(page)
            for info in page.sessions:
                self._folders[info.session_id] = info.cwd  # SESS-27
                yield info
            cursor = page.next_cursor
            if cursor is None or (old and not cursor):
                return  # SESS-34

    def _filter(self, archived: str) -> v2.SessionArchiveFilter:
        wanted = v2.SessionArchiveFilter(archived)
        if not wanted.known:
            raise LocalError(f"`archived` is `exclude`, `include` or `only`, not {archived!r}")
        if not self.abilities.archive:
            raise LocalError("this agent archives no sessions")  # SESS-54
        return wanted

    async def archive(self, session_id: str) -> None:
        """Put a session away: it stays as it is, and is not listed with the others. Work in it ends."""
        if not self.abilities.archive:
            raise LocalError("this agent archives no sessions")  # SESS-53
        await self.connection.call(
            "session/archive", v2.ArchiveSessionRequest(session_id=v2.SessionId(session_id))
        )
        session = self._sessions.get(session_id)
        if session is not None:
            session.close_questions()
            self._leave(session, "the session was archived")

    async def unarchive(self, session_id: str) -> None:
        """List a session with the others again; this does not open it."""
        if not self.abilities.archive:
            raise LocalError("this agent archives no sessions")
        await self.connection.call(
            "session/unarchive", v2.UnarchiveSessionRequest(session_id=v2.SessionId(session_id))
        )

    async def session_status(self, session_id: str) -> v2.SessionStatusResponse:
        """Whether a session is `open` at the agent or only `saved`, and in v2 its state, if the agent tells.

        Asking opens nothing: a session that is not open here has to be resumed before it can be prompted,
        and a missing state is not idle (SESS-56).
        """
        if not self.abilities.status:
            raise LocalError("this agent does not tell the status of sessions")
        told = await self.connection.call(
            "session/status", v2.SessionStatusRequest(session_id=v2.SessionId(session_id))
        )
        status = v2.SessionStatus(told.status)
        state = None if isinstance(told, v1.SessionStatusResponse) else told.state
        return v2.SessionStatusResponse(
            status=status if status.known else v2.SessionStatus.SAVED,  # SESS-55
            state=normalize_state(state) if isinstance(state, v2.StateUpdate) else state,
            meta=told.meta,
        )

    async def set_title(self, session_id: str, title: str) -> str:
        """Give a session a title that the agent keeps, and does not replace; as it was kept."""
        if not self.abilities.title:
            raise LocalError("this agent takes no titles")
        if not title.strip():
            raise LocalError("a title says something")  # SESS-57
        request = v2.SetSessionTitleRequest(session_id=v2.SessionId(session_id), title=title)
        stored: str = (await self.connection.call("session/set_title", request)).title
        session = self._sessions.get(session_id)
        if session is not None and session.title != stored:
            session.tell(v2.SessionInfoUpdate(title=stored))
        return stored

    async def delete_session(self, session_id: str) -> None:
        """Remove a session with all that belongs to it."""
        if not self.abilities.delete:
            raise LocalError("this agent cannot delete sessions")  # SESS-29
        await self._end_session(
            "session/delete", v2.DeleteSessionRequest(session_id=v2.SessionId(session_id))
        )
        self._folders.pop(session_id, None)
        session = self._sessions.get(session_id)
        if session is not None:
            session.close_questions()
            self._leave(session, "the session was deleted")

    async def _end_session(self, method: str, params: Any) -> None:
        try:
            await self.connection.call(method, params)
        except CallFailed as error:
            if error.error.code != ResourceNotFound.code:
                raise  # SESS-45: what is not there is closed
