"""ResumePoint: how far a session was read, and the request that continues it over another link."""

from __future__ import annotations

import secrets
from collections import deque
from typing import Any

from antiphon.schema import v2
from antiphon.schema.antiphon.readers import read_meta
from antiphon.schema.antiphon.sessions import SessionMeta
from antiphon.schema.version import META_KEY

START = 0
"""The position before the first event of a session."""
OPERATIONS = 32
"""How many prompts are remembered: the messages of those before them have certainly been read."""


def new_operation_id() -> str:
    """An id under which an agent runs an operation at most once, however often it is requested."""
    return f"op_{secrets.token_hex(12)}"


class ResumePoint:
    def __init__(self, session_id: str) -> None:
        self.cursor: int | None = None
        """The last event that was applied as a whole, if the agent numbers events for this client."""
        self._session_id = v2.SessionId(session_id)
        self._part = (-1, -1)
        """The last part of an event that was applied: v1 may need several updates for one event."""
        self._request: v2.ResumeSessionRequest | None = None
        self.operations: deque[str] = deque(maxlen=OPERATIONS)
        """The operation ids of the last prompts. A v1 client shows its prompts itself, so the agent does not
        send it their messages again."""

    def advance(self, meta: dict[str, Any]) -> bool:
        """Take the number of an update from its `_meta`. Returns False for a part of an event that was
        applied before the link was cut."""
        ours = meta.get(META_KEY)
        if not isinstance(ours, dict):
            return True
        seq, part = ours.get("seq"), ours.get("part")
        if not isinstance(seq, int):
            return True
        if not isinstance(part, int):
            self.cursor = seq
        elif (seq, part) <= self._part:
            return False
        else:
            self._part = seq, part
        return True

    def opened(self, meta: dict[str, Any]) -> None:
        """The session was opened; everything that came before the answer belongs to its number."""
        seq = read_meta(SessionMeta, meta).seq
        if seq is not None:
            self.cursor = seq

    def set_up(self, request: v2.NewSessionRequest | v2.ForkSessionRequest | v2.ResumeSessionRequest) -> None:
        """Remember the settings that the session was opened with."""
        self._request = v2.ResumeSessionRequest(
            session_id=self._session_id,
            cwd=request.cwd,
            additional_directories=request.additional_directories,
            mcp_servers=request.mcp_servers,
            system_prompt=request.system_prompt,
        )

    def request(self, cwd: str) -> v2.ResumeSessionRequest:
        """The request that opens the session again. `cwd` is for a session that was not opened here."""
        return self._request or v2.ResumeSessionRequest(session_id=self._session_id, cwd=cwd)
