"""AgentReader: reads updates of an agent: plain text in runs, and those of a v1 agent with their lines."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Any

from msgspec import Raw

from antiphon.bridge.upgrade.messages import as_v1
from antiphon.client.protocol.agent_connection import AgentConnection
from antiphon.client.protocol.dialect import text_chunk_v2
from antiphon.hub.upstream.session import UpstreamSession
from antiphon.schema import v1, v2
from antiphon.schema.updates import TextChunk


class AgentReader:
    def __init__(self, agent: AgentConnection[UpstreamSession]) -> None:
        """`agent` is initialized."""
        self._agent = agent
        handlers = agent.connection.handlers
        handlers.on_text_chunks = self._read_text
        if agent.speaks_v1:
            handlers.on_written = self._read_line

    def _read_text(self, run: tuple[str, list[TextChunk]]) -> Awaitable[None] | None:
        session_id, chunks = run
        session = self._agent.sessions.get(session_id)
        if session is None or not session.receive_text(chunks):
            for chunk in chunks:  # the session may be opening, be a subagent's, or replay
                self._agent.receive(self._notification(session_id, chunk))
        return None if session is None else session.feed.pace()

    def _notification(self, session_id: str, chunk: TextChunk) -> Any:
        if self._agent.speaks_v1:
            return v1.SessionNotification(session_id=v1.SessionId(session_id), update=as_v1(chunk))
        return v2.UpdateSessionNotification(session_id=v2.SessionId(session_id), update=text_chunk_v2(chunk))

    def _read_line(self, read: tuple[Any, bytes | Raw]) -> Awaitable[None] | None:
        params, line = read
        session = self._agent.sessions.get(params.session_id)
        if session is not None:
            return session.receive_line(params, line)
        self._agent.keep_update(params, partial(self._read_line, read), len(bytes(line)))
        return None
