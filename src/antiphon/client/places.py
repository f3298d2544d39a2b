"""Place: how far a session was read, and what it takes to go on from there over another link."""

from __future__ import annotations

import secrets
from collections import deque
from typing import Any

from antiphon.schema import v2
from antiphon.schema.version import META_KEY


def new_operation() -> str:
    """An id under which something is done once, however often it is asked for."""
    return f"op_{secrets.token_hex(12)}"


OPERATIONS = 32
"""How many prompts of ours are remembered: the messages of those before them have been read for sure."""


class Place:
    def __init__(self, session_id: str) -> None:
        self.cursor: int | None = None
        """The last event that was applied as a whole, where the agent numbers them for us."""
        self._session_id = v2.SessionId(session_id)
        self._part = (-1, -1)
        """The last piece of an event that was applied: v1 may need several updates for one."""
        self._setup: v2.ResumeSessionRequest | None = None
        self.operations: deque[str] = deque(maxlen=OPERATIONS)
        """The ids of our last prompts. What they became is not told to a v1 client, which shows it itself."""

    def take(self, ours: dict[str, Any]) -> bool:
        """An update of a numbered event came; whether it is new. A piece of one may have come before the link
        was cut."""
        seq, part = ours["seq"], ours.get("part")
        if not isinstance(part, int):
            self.cursor = seq
        elif (seq, part) <= self._part:
            return False
        else:
            self._part = seq, part
        return True

    def opened(self, meta: dict[str, Any] | None) -> None:
        """The session was opened, and this is said beside the answer: what came before it is all there is."""
        ours = (meta or {}).get(META_KEY)
        if isinstance(ours, dict) and isinstance(ours.get("seq"), int):
            self.cursor = ours["seq"]

    def set_up(self, wanted: v2.NewSessionRequest | v2.ForkSessionRequest | v2.ResumeSessionRequest) -> None:
        """This is what it was opened with."""
        self._setup = v2.ResumeSessionRequest(
            session_id=self._session_id,
            cwd=wanted.cwd,
            additional_directories=wanted.additional_directories,
            mcp_servers=wanted.mcp_servers,
            system_prompt=wanted.system_prompt,
        )

    def reopening(self, cwd: str) -> v2.ResumeSessionRequest:
        """What opens it again."""
        return self._setup or v2.ResumeSessionRequest(session_id=self._session_id, cwd=cwd)
