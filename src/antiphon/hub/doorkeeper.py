"""The doorkeeper: who comes in, how many at a time, and who has to leave.

Refusals are worded alike, whatever is wrong with a token. Each is in the audit log, with its status.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

from antiphon.hub.access import Gate
from antiphon.hub.audit import Audit
from antiphon.hub.limits import HubLimits, Rate
from antiphon.hub.permits import OPENS, PROMPTS
from antiphon.hub.tickets import Tickets
from antiphon.hub.tokens import Grant, Tokens
from antiphon.transports.http1 import wants_websocket
from antiphon.transports.http_exchange import Head, Reply, plain
from antiphon.transports.http_frames import CONNECTION_ID

logger = logging.getLogger("antiphon.hub")

LOOK = 0.5
"""Seconds after which somebody whose token is revoked, or over, has to leave, at the latest."""
TICKET_SECONDS = 60.0
TICKET = "acp-ticket."
"""What stands before a ticket among the protocols that a page offers for a WebSocket."""
POLICY_VIOLATION = 1008
TRY_LATER = 1013
NO_TOKEN = "A token is needed: Authorization: Bearer TOKEN"


class Doorkeeper:
    def __init__(
        self,
        gate: Gate,
        tokens: Tokens,
        *,
        limits: HubLimits,
        audit: Audit,
        open_sessions: Callable[[], int],
    ) -> None:
        self.gate = gate
        self.tokens = tokens
        self.tickets: Tickets[Grant] = Tickets(TICKET_SECONDS)
        self._limits = limits
        self._audit = audit
        self._open_sessions = open_sessions
        self._prompts = Rate(limits.prompts_per_minute)
        self._inside: dict[asyncio.Task[Any], tuple[Grant, Any]] = {}

    # --- at the door -------------------------------------------------------------------------------

    def check(self, head: Head) -> Reply | Grant:
        """By the head of a request: whose it is, or how it is refused."""
        why = self.gate.refusal(head.headers)
        if why is not None:
            return self.refuse(head, 403, why)
        grant = self._shown(head)
        if grant is None:
            return self.refuse(head, 401, NO_TOKEN)
        new = wants_websocket(head) or (head.method == "POST" and CONNECTION_ID not in head.headers)
        full = self._full(grant) if new else None
        return grant if full is None else self.refuse(head, *full, token=grant.name)

    def refuse(self, head: Head | None, status: int, why: str = "", *, token: str | None = None) -> Reply:
        self.note_refused(head, status, token=token)
        if status == 401:
            return plain(status, why, www_authenticate="Bearer")
        return plain(status, why, retry_after="5") if status in (429, 503) else plain(status, why)

    def note_refused(self, head: Head | None, status: int, *, token: str | None = None) -> None:
        who = None if head is None or not isinstance(head.who, Grant) else head.who.name
        self._audit.note(
            "connect",
            "refused",
            status=status,
            token=token or who,
            path=None if head is None else head.path,
            host=None if head is None else head.headers.get("Host"),
            origin=None if head is None else head.headers.get("Origin"),
        )

    def _shown(self, head: Head) -> Grant | None:
        kind, _, secret = head.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self.tokens.find(secret.strip())
        if kind or not wants_websocket(head):
            return None
        offered = [name.strip() for name in head.headers.get("Sec-WebSocket-Protocol", "").split(",")]
        tickets = [name.removeprefix(TICKET) for name in offered if name.startswith(TICKET)]
        grant = self.tickets.redeem(tickets[0]) if len(tickets) == 1 else None
        return grant if grant is not None and self.tokens.admits(grant) else None

    def _full(self, grant: Grant) -> tuple[int, str] | None:
        if len(self._inside) >= self._limits.connections:
            return 503, "There are too many connections."
        own = Counter(grant.name for grant, _ in self._inside.values())[grant.name]
        if own >= self._limits.connections_per_token:
            return 429, "There are too many connections with this token."
        return None

    # --- inside ------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def inside(self, grant: Grant, transport: Any) -> AsyncIterator[bool]:
        """While it is served; whether there is room for it after all, as several may have come at once."""
        task = asyncio.current_task()
        assert task is not None
        if self._full(grant) is not None:
            self._audit.note("connect", "refused", token=grant.name, status=TRY_LATER)
            transport.close_code = TRY_LATER
            yield False
            return
        self._inside[task] = grant, transport
        self._audit.note("connect", "allowed", token=grant.name, role=str(grant.role))
        try:
            yield True
        finally:
            del self._inside[task]
            self._audit.note("disconnect", "done", token=grant.name, why=transport.end_reason or None)

    def exceeded(self, grant: Grant, method: str) -> str | None:
        """The limit that stands against one more of this."""
        if method in OPENS and self._open_sessions() >= self._limits.sessions:
            return "sessions"
        if method in PROMPTS and not self._prompts.take(grant.name):
            return "prompts_per_minute"
        return None

    # --- and out -----------------------------------------------------------------------------------

    async def watch(self) -> None:
        """Send away, for ever, those whose tokens are revoked or over."""
        while True:
            await asyncio.sleep(LOOK)
            try:
                self.look()
            except Exception:
                logger.exception("it could not be seen whose tokens are over")  # the next look may

    def look(self) -> None:
        stands: dict[Grant, bool] = {}
        for task, (grant, transport) in tuple(self._inside.items()):
            if grant not in stands:
                stands[grant] = self.tokens.stands(grant)
            if not stands[grant]:
                self._audit.note("disconnect", "cut", token=grant.name)
                transport.close_code = POLICY_VIOLATION
                task.cancel()
