"""SessionStart: what the answer to `session/new` or `session/fork` says of a session, and what comes behind
it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Self

from msgspec import Struct, field

from antiphon.engine.session import Session
from antiphon.live.pending_notifications import MOST
from antiphon.schema import v2
from antiphon.server.session_facts import commands_of, options_of

Note = tuple[int, str, Any]
"""A notification, and the event that it comes behind."""


class SessionStart(Struct, frozen=True):
    """Where the client that begins a session starts to follow it. Everything after `seq` is sent to it: an
    agent may speak before that client is attached."""

    seq: int
    config_options: Sequence[v2.SessionConfigOption]
    commands: Sequence[v2.AvailableCommand]
    notes: list[Note] = field(default_factory=list)
    """The extension notifications that came since."""
    followed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a client follows the session."""

    @classmethod
    def of(cls, fold: Session) -> Self:
        """The session as it is now is what the answer says."""
        return cls(fold.last_seq, options_of(fold), commands_of(fold))

    def note(self, seq: int, method: str, params: Any) -> None:
        if len(self.notes) < MOST:
            self.notes.append((seq, method, params))

    def send_notes(self, notify_at: Callable[[int, str, Any], None]) -> None:
        for seq, method, params in self.notes:
            notify_at(seq, method, params)
