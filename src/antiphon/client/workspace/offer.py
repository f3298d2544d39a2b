"""WorkspaceOffer: serves the workspace of a client to the sessions of one connection."""

from __future__ import annotations

import binascii
from collections.abc import Awaitable, Callable
from typing import Any

from antiphon.client.protocol.agent_connection import AgentConnection, SessionAtAgent
from antiphon.client.protocol.dialect_v1 import AgentDialectV1
from antiphon.client.workspace.workspace import SessionWorkspace, Workspace
from antiphon.errors import ResourceNotFound
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v1, v2


class WorkspaceOffer:
    def __init__(self, workspace: Workspace | None, agent: Callable[[], AgentConnection[Any]]) -> None:
        """`agent` returns the connection, once there is one."""
        self._workspace = workspace
        self._agent = agent
        self._open: dict[str, SessionWorkspace] = {}
        self._leaving: list[SessionWorkspace] = []

    @property
    def capabilities(self) -> dict[str, Any]:
        """The part of `initialize`; empty if nothing is offered."""
        return {} if self._workspace is None else self._workspace.capabilities

    @property
    def handlers(self) -> dict[str, Callable[[Any, Inbound], Awaitable[Any]]]:
        """The request handlers. A method that is not offered has none."""
        offered = () if self._workspace is None else self._workspace.methods
        return {method: self._handler(method) for method in offered}

    def _handler(self, method: str) -> Callable[[Any, Inbound], Awaitable[Any]]:
        async def serve(params: Any, inbound: Inbound) -> Any:
            return await self._open_workspace(params.session_id).serve(method, params)

        return serve

    def _open_workspace(self, session_id: str) -> SessionWorkspace:
        agent = self._agent()
        # An agent may need files before it has answered the request for a session.
        opening = agent.find_live(session_id) or agent.pending_request(session_id)
        if opening is None or self._workspace is None:
            raise ResourceNotFound(f"session {session_id!r} is not open here", data={"sessionId": session_id})
        opened = self._open.get(session_id)
        if opened is None:
            observer = _TerminalUpdates(session_id, agent)
            opened = self._workspace.open(opening.cwd, opening.additional_directories, observer=observer)
            self._open[session_id] = opened
        return opened

    def release(self, session_id: str) -> None:
        """End the terminals of a session that has ended here."""
        opened = self._open.pop(session_id, None)
        if opened is not None:
            opened.close()
            self._leaving.append(opened)

    def link_lost(self) -> None:
        """The link has ended, and every session with it."""
        for session_id in tuple(self._open):
            self.release(session_id)

    async def aclose(self) -> None:
        """End all terminals and wait until they are gone."""
        self.link_lost()
        while self._leaving:
            await self._leaving.pop().aclose()


class _TerminalUpdates:
    """Applies a session's terminals to the session: in v2 terms they are the agent's (24.4, TERMV1-08)."""

    def __init__(self, session_id: str, agent: AgentConnection[Any]) -> None:
        self._session_id = session_id
        self._agent = agent

    def _act(self, act: Callable[[SessionAtAgent], None]) -> None:
        """Act on the session, now or once it is open."""
        session = self._agent.find_live(self._session_id)
        if session is None:
            self._agent.keep(self._session_id, lambda: self._act(act))
        else:
            act(session)

    def _apply(self, update: v2.SessionUpdate) -> None:
        self._act(lambda session: session.apply(update))

    def created(self, terminal_id: str, params: v1.CreateTerminalRequest) -> None:
        def create(session: SessionAtAgent) -> None:
            if isinstance(session.dialect, AgentDialectV1):
                tools = session.dialect.upgrade.tools
                session.apply(tools.terminal_created(terminal_id, params, cwd=session.cwd))

        self._act(create)

    def wrote(self, terminal_id: str, data: bytes) -> None:
        self._apply(v2.TerminalOutputChunk(terminal_id=v2.TerminalId(terminal_id), data=_encoded(data)))

    def shows(self, terminal_id: str, output: bytes) -> None:
        whole = v2.TerminalOutput(data=_encoded(output))
        self._apply(v2.TerminalUpdate(terminal_id=v2.TerminalId(terminal_id), output=whole))

    def exited(self, terminal_id: str, *, exit_code: int | None, signal: str | None) -> None:
        status = v2.TerminalExitStatus(exit_code=exit_code, signal=signal)
        self._apply(v2.TerminalUpdate(terminal_id=v2.TerminalId(terminal_id), exit_status=status))


def _encoded(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")
