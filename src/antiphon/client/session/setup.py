"""SessionSetup: opens the sessions of a client. Folders and the system prompt as they go on the wire."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any, Generic

from antiphon.client.mcp.servers import AnyMcpServer, McpServers, declarations
from antiphon.client.protocol.abilities import Abilities
from antiphon.client.protocol.agent_connection import AgentConnection
from antiphon.client.protocol.session_opener import Setup
from antiphon.client.session.context import SessionContext
from antiphon.client.session.core import SessionCore, V
from antiphon.engine.recent import Recent
from antiphon.errors import CallFailed, LocalError
from antiphon.schema import v2
from antiphon.schema.version import with_ours
from antiphon.schema.wire import Unknown

logger = logging.getLogger("antiphon.client")

KNOWN = 65536
"""How many sessions' folders are remembered."""

Folder = str | os.PathLike[str]


def absolute_folder(path: Folder | None) -> str:
    """RPC-43: paths on the wire are absolute. None is the current folder."""
    return os.path.abspath(os.fspath(path) if path is not None else os.getcwd())


def system_prompt_for(given: str | v2.SystemPrompt | None, abilities: Abilities) -> v2.SystemPrompt | None:
    """The system prompt to send (SESS-58, unstable). A plain text is added to the agent's own. Raises
    `LocalError` for a prompt that the agent does not take."""
    if given is None:
        return None
    if isinstance(given, str):
        given = v2.SystemPrompt(mode=v2.SystemPromptMode.APPEND, content=[v2.TextContent(text=given)])
    if not abilities.system_prompt:
        raise LocalError("this agent takes no system prompt")
    if given.mode not in abilities.system_prompt:
        raise LocalError(f"this agent takes no system prompt of mode {str(given.mode)!r}")
    texts = [block.text for block in given.content if isinstance(block, v2.TextContent)]
    if not all(texts) or not texts or len(texts) != len(given.content):
        raise LocalError("a system prompt needs one or more text blocks, none of them empty")
    return given


class SessionSetup(Generic[V]):
    def __init__(self, context: SessionContext, mcp: McpServers) -> None:
        """`mcp`: the MCP servers of this client."""
        self._context = context
        self._agent: AgentConnection[SessionCore[V]] = context.agent
        self._mcp = mcp
        self.folders: Recent[str, str] = Recent(KNOWN)
        """The folders of sessions that were created, opened or listed here."""

    def fields(
        self,
        mcp_servers: Sequence[AnyMcpServer],
        additional_directories: Sequence[Folder],
        system_prompt: str | v2.SystemPrompt | None,
    ) -> dict[str, Any]:
        """The fields that the requests for sessions have in common."""
        servers = declarations(mcp_servers)
        directories = [absolute_folder(directory) for directory in additional_directories]
        self._agent.abilities.check_setup(servers, directories)
        return {
            "mcp_servers": servers,
            "additional_directories": directories,
            "system_prompt": system_prompt_for(system_prompt, self._agent.abilities),
        }

    async def open(self, request: Setup, mcp_servers: Sequence[AnyMcpServer]) -> SessionCore[V]:
        """Open a new session, a fork, or a session again."""
        token = self._mcp.offer(mcp_servers)
        try:
            if isinstance(request, v2.ResumeSessionRequest):
                keeps = isinstance(request.replay_from, Unknown)  # it is replayed event by event
                core = await self._agent.reopen(request, prepare=_keep_replay if keeps else lambda _: None)
            else:
                core = await self._agent.create(request)
        except BaseException:
            self._mcp.release(token)
            raise
        self._mcp.bind(token, core.id)
        self.folders[core.id] = request.cwd
        return core

    async def reopen(
        self,
        session_id: str,
        cwd: Folder | None,
        replay_from: v2.ReplayFrom | None,
        mcp_servers: Sequence[AnyMcpServer] = (),
        additional_directories: Sequence[Folder] = (),
        system_prompt: str | v2.SystemPrompt | None = None,
    ) -> SessionCore[V]:
        """Load or resume a session."""
        request = v2.ResumeSessionRequest(
            session_id=v2.SessionId(session_id),
            cwd=absolute_folder(self.folders.get(session_id) if cwd is None else cwd),
            replay_from=replay_from,
            **self.fields(mcp_servers, additional_directories, system_prompt),
        )
        return await self.open(request, mcp_servers)

    async def fork(
        self,
        source: SessionCore[V],
        *,
        at: str | None,
        cwd: Folder | None,
        mcp_servers: Sequence[AnyMcpServer],
        additional_directories: Sequence[Folder],
        system_prompt: str | v2.SystemPrompt | None,
        operation_id: str | None,
    ) -> SessionCore[V]:
        """Fork a session (SESS-51, unstable), with its history if the agent can replay it: only the agent
        knows where it cut a session that works."""
        abilities = self._agent.abilities
        if not abilities.fork:
            raise LocalError("this agent cannot fork sessions")
        if at is not None and not abilities.fork_at:
            raise LocalError("this agent cannot fork a session at a message")
        ours = {} if at is None else {"messageId": at}
        ours |= self._context.operation("fork", operation_id)
        request = v2.ForkSessionRequest(
            session_id=v2.SessionId(source.id),
            cwd=source.cwd if cwd is None else absolute_folder(cwd),
            meta=with_ours(None, **ours) if ours else None,
            **self.fields(mcp_servers, additional_directories, system_prompt),
        )
        fork = await self.open(request, mcp_servers)
        if not abilities.load:
            return fork
        options = mcp_servers, request.additional_directories
        try:
            return await self.reopen(fork.id, request.cwd, v2.ReplayFromStart(), *options)
        except CallFailed:
            logger.warning("fork %s has no history: the agent does not replay it", fork.id)
            return fork


def _keep_replay(core: SessionCore[Any]) -> None:
    core.tracker.keep_replay()
