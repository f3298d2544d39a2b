"""The doorkeeper: who comes in, how many at a time, and who has to leave.

Refusals are worded alike, whatever is wrong with a token. Each is in the audit log, with its status.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from antiphon.hub.access import Gate
from antiphon.hub.audit import Audit
from antiphon.hub.limits import HubLimits, Rate
from antiphon.hub.permits import ACTS, PROMPTS
from antiphon.hub.roles import Role
from antiphon.hub.tickets import Tickets
from antiphon.hub.tokens import Grant, Tokens
from antiphon.hub.trusted_proxies import TrustedProxies, UnclearClient
from antiphon.transports.http_exchange import Head, Reply, plain, wants_websocket
from antiphon.transports.http_frames import CONNECTION_ID

logger = logging.getLogger("antiphon.hub")

LOOK = 0.5
"""Seconds after which somebody whose token is revoked, or over, has to leave, at the latest."""
TICKET_SECONDS = 60.0
TICKET = "acp-ticket."
"""What stands before a ticket among the protocols that a page offers for a WebSocket."""
POLICY_VIOLATION = 1008
TRY_LATER = 1013
STRANGERS_PER_MINUTE = 600
"""Refusals of those without a token that get a line each: a page that asks on and on must not wear the audit
log out, and with it what others did."""
FREE = frozenset({"read", "call", "cancel", "close"})
"""Acts that keep nothing, or that end something: whoever is over a limit can still do these."""
SMALLEST = 1024
"""Bytes that a request counts as at least."""
METRICS = "/metrics"
NO_TOKEN = "A token is needed: Authorization: Bearer TOKEN"


class Doorkeeper:
    def __init__(
        self,
        gate: Gate,
        tokens: Tokens,
        *,
        limits: HubLimits,
        audit: Audit,
        proxies: TrustedProxies | None = None,
    ) -> None:
        self.gate = gate
        self.tokens = tokens
        self.tickets: Tickets[Grant] = Tickets(TICKET_SECONDS)
        self._limits = limits
        self._audit = audit
        self._proxies = proxies or TrustedProxies()
        self._prompts = Rate(limits.prompts_per_minute)
        self._bytes = Rate(limits.bytes_per_minute)
        self._strangers = Rate(STRANGERS_PER_MINUTE)
        self._unlisted = 0
        """Refusals of strangers that have no line of their own."""
        self._inside: dict[asyncio.Task[Any], tuple[Grant, Any]] = {}

    # --- at the door -------------------------------------------------------------------------------

    def check(self, head: Head) -> Reply | Grant:
        """By the head of a request: whose it is, or how it is refused."""
        refusal = self.refusal(head)
        if refusal is not None:
            self.note_refused(head, refusal.status)
            return refusal
        grant = self._shown(head)
        if grant is None:
            return self.refuse(head, 401, NO_TOKEN)
        if not _is_for(grant, head.path):
            return self.refuse(head, 403, "This token is not for that.", token=grant.name)
        new = wants_websocket(head) or (head.method == "POST" and CONNECTION_ID not in head.headers)
        full = self._full(grant) if new else None
        return grant if full is None else self.refuse(head, *full, token=grant.name)

    def refusal(self, head: Head) -> Reply | None:
        """How a request is refused by where it comes from. Every request goes through here before anything
        else is done for it: from here on its `peer` is the client, not the proxy in front of the hub."""
        try:
            head.peer = self._proxies.client_of(head.peer, head.headers)
        except UnclearClient as unclear:
            return plain(400, f"{unclear}.")
        why = self.gate.refusal(head.headers)
        return None if why is None else plain(403, why)

    def refuse(self, head: Head, status: int, why: str = "", *, token: str | None = None) -> Reply:
        self.note_refused(head, status, token=token)
        if status == 401:
            return plain(status, why, www_authenticate="Bearer")
        return plain(status, why, retry_after="5") if status in (429, 503) else plain(status, why)

    def note_refused(self, head: Head, status: int, *, token: str | None = None) -> None:
        with contextlib.suppress(UnclearClient):  # some are refused before anything else was looked at
            head.peer = self._proxies.client_of(head.peer, head.headers)
        token = token or (head.who.name if isinstance(head.who, Grant) else None)
        if token is None and not self._strangers.take(""):
            self._unlisted += 1
            return
        unlisted = self._unlisted
        listed = self._audit.note(
            "connect",
            "refused",
            status=status,
            token=token,
            unlisted=unlisted or None,
            peer=head.peer or None,
            path=head.path or None,
            host=head.headers.get("Host"),
            origin=head.headers.get("Origin"),
        )
        if listed:
            self._unlisted -= unlisted

    def note_oversized(self, grant: Grant, peer: str) -> None:
        """A message of a client was over the bound."""
        self._audit.note("call", "limit: frame", token=grant.name, peer=peer or None)

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
        peer = transport.peer or None
        if self._full(grant) is not None:
            self._audit.note("connect", "refused", token=grant.name, peer=peer, status=TRY_LATER)
            transport.close_code = TRY_LATER
            yield False
            return
        self._inside[task] = grant, transport
        self._audit.note("connect", "allowed", token=grant.name, role=str(grant.role), peer=peer)
        try:
            yield True
        finally:
            del self._inside[task]
            why = transport.end_reason or None
            self._audit.note("disconnect", "done", token=grant.name, peer=peer, why=why)

    def exceeded(self, grant: Grant, method: str, size: int) -> str | None:
        """The limit that stands against one more of this, whose params have so many bytes."""
        if ACTS.get(method, "read") not in FREE and not self._bytes.take(grant.name, max(size, SMALLEST)):
            return "bytes_per_minute"
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
        self._audit.tell_unlisted()
        stands: dict[Grant, bool] = {}
        for task, (grant, transport) in tuple(self._inside.items()):
            if grant not in stands:
                stands[grant] = self.tokens.stands(grant)
            if not stands[grant]:
                self._audit.note("disconnect", "cut", token=grant.name, peer=transport.peer or None)
                transport.close_code = POLICY_VIOLATION
                task.cancel()


def _is_for(grant: Grant, path: str) -> bool:
    """The numbers are of all sessions: for owners of all, and for who is to read them and nothing else."""
    counts = grant.role is Role.METRICS
    if path == METRICS:
        return counts or (grant.role is Role.OWNER and grant.sessions is None)
    return not counts
