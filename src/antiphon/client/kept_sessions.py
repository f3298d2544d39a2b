"""Requests about the sessions that an agent keeps: list, archive, title, status, delete."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal

from antiphon.bridge.downgrade import requests as requests_v1
from antiphon.bridge.losses import Report
from antiphon.bridge.spelling import normalize_state
from antiphon.client.protocol.agent_connection import AgentConnection
from antiphon.client.protocol.calls import call_end
from antiphon.errors import LocalError
from antiphon.schema import v1, v2

Archived = Literal["exclude", "include", "only"]


class KeptSessions:
    def __init__(self, agent: AgentConnection[Any], report: Report) -> None:
        self._agent = agent
        self._report = report

    async def list(self, *, cwd: str | None, archived: Archived | None) -> AsyncIterator[v2.SessionInfo]:
        if not self._agent.abilities.listing:
            raise LocalError("this agent cannot list sessions")  # SESS-29
        filter = None if archived is None else self._filter(archived)
        cursor: v2.SessionListCursor | None = None
        while True:
            request = v2.ListSessionsRequest(cwd=cwd, cursor=cursor, archived=filter)
            params: Any = requests_v1.list_sessions(request) if self._agent.speaks_v1 else request
            page = await self._agent.connection.call("session/list", params)
            if self._agent.speaks_v1:
                page = requests_v1.listed_sessions(page, report=self._report)
            for info in page.sessions:
                yield info
            cursor = page.next_cursor
            if cursor is None or (self._agent.speaks_v1 and not cursor):
                return  # SESS-34

    def _filter(self, archived: str) -> v2.SessionArchiveFilter:
        filter = v2.SessionArchiveFilter(archived)
        if not filter.known:
            raise LocalError(f"`archived` must be 'exclude', 'include' or 'only', got {archived!r}")
        self._check_archive()  # SESS-54
        return filter

    def _check_archive(self) -> None:
        if not self._agent.abilities.archive:
            raise LocalError("this agent archives no sessions")  # SESS-53

    async def archive(self, session_id: str) -> None:
        self._check_archive()
        params = v2.ArchiveSessionRequest(session_id=v2.SessionId(session_id))
        await self._agent.connection.call("session/archive", params)

    async def unarchive(self, session_id: str) -> None:
        self._check_archive()
        params = v2.UnarchiveSessionRequest(session_id=v2.SessionId(session_id))
        await self._agent.connection.call("session/unarchive", params)

    async def status(self, session_id: str) -> v2.SessionStatusResponse:
        if not self._agent.abilities.status:
            raise LocalError("this agent does not report the status of sessions")
        params = v2.SessionStatusRequest(session_id=v2.SessionId(session_id))
        answer = await self._agent.connection.call("session/status", params)
        status = v2.SessionStatus(answer.status)
        state = None if isinstance(answer, v1.SessionStatusResponse) else answer.state
        return v2.SessionStatusResponse(
            status=status if status.known else v2.SessionStatus.SAVED,  # SESS-55
            state=normalize_state(state) if isinstance(state, v2.StateUpdate) else state,
            meta=answer.meta,
        )

    async def set_title(self, session_id: str, title: str) -> str:
        if not self._agent.abilities.title:
            raise LocalError("this agent takes no titles")
        if not title.strip():
            raise LocalError(f"a title must not be blank, got {title!r}")  # SESS-57
        request = v2.SetSessionTitleRequest(session_id=v2.SessionId(session_id), title=title)
        stored: str = (await self._agent.connection.call("session/set_title", request)).title
        return stored

    async def delete(self, session_id: str) -> None:
        if not self._agent.abilities.delete:
            raise LocalError("this agent cannot delete sessions")  # SESS-29
        request = v2.DeleteSessionRequest(session_id=v2.SessionId(session_id))
        await call_end(self._agent.connection, "session/delete", request)
