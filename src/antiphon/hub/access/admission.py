"""Admission: authenticates requests, bounds connections, and disconnects clients whose tokens end.

Refusals have the same words, whatever is wrong with a token. Each is in the audit log, with its status.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any
from weakref import WeakValueDictionary

from antiphon.hub.access.audit import Audit
from antiphon.hub.access.limits import HubLimits, Rate, Spent, limited
from antiphon.hub.access.origins import OriginPolicy
from antiphon.hub.access.tickets import Tickets
from antiphon.hub.access.tokens import Grant, Tokens
from antiphon.hub.access.trusted_proxies import TrustedProxies, UnclearClient
from antiphon.remote.frames import CONNECTION_ID
from antiphon.server.method import Act, Method, Role
from antiphon.transports.http.exchange import Head, Reply, plain, wants_websocket
from antiphon.transports.http.incomplete_input import IncompleteInput

logger = logging.getLogger("antiphon.hub")

SWEEP = 0.5
"""Seconds between two checks for connections whose token was revoked or has expired."""
TICKET_SECONDS = 60.0
TICKET = "acp-ticket."
"""The prefix of a ticket among the subprotocols that a page offers for a WebSocket."""
POLICY_VIOLATION = 1008
TRY_LATER = 1013
STRANGERS_PER_MINUTE = 600
"""Refusals of requests without a token that get a line each in the audit log. A page that repeats requests
must not rotate away what others did."""
FREE = frozenset({Act.READ, Act.CALL, Act.CANCEL, Act.CLOSE})
"""Acts that store nothing or end something. They are allowed over a limit, too."""
SMALLEST = 1024
"""Bytes that a request counts as at least."""
METRICS = "/metrics"
NO_TOKEN = "A token is needed: Authorization: Bearer TOKEN"


class Admission:
    """Decides about each request and connection of a hub."""

    def __init__(
        self,
        origins: OriginPolicy,
        tokens: Tokens,
        *,
        limits: HubLimits,
        audit: Audit,
        proxies: TrustedProxies | None = None,
        spent: Spent | None = None,
    ) -> None:
        """`spent` gets what is counted per minute, if other hubs count it too."""
        self.origins = origins
        self.tokens = tokens
        self.tickets: Tickets[Grant] = Tickets(TICKET_SECONDS)
        self._limits = limits
        self._spent = spent
        self._audit = audit
        self._proxies = proxies or TrustedProxies()
        self._prompts = Rate(limits.prompts_per_minute)
        self._searches = Rate(limits.searches_per_minute)
        self._searching: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._bytes = Rate(limits.bytes_per_minute)
        self._in_progress = IncompleteInput(limits.bytes_in_progress)
        self._strangers = Rate(STRANGERS_PER_MINUTE)
        self._unlisted = 0
        """Refusals of requests without a token that got no line."""
        self._connected: dict[asyncio.Task[Any], tuple[Grant, Any]] = {}

    # --- requests ----------------------------------------------------------------------------------

    def check(self, head: Head) -> Reply | Grant:
        """Return the grant of a request, or the reply that refuses it."""
        refusal = self.refusal(head)
        if refusal is not None:
            self.note_refused(head, refusal.status)
            return refusal
        grant = self._authenticate(head)
        if grant is None:
            return self.refuse(head, 401, NO_TOKEN)
        if not _is_for(grant, head.path):
            return self.refuse(head, 403, "This token is not for that.", token=grant.name)
        new = wants_websocket(head) or (head.method == "POST" and CONNECTION_ID not in head.headers)
        full = self._full(grant) if new else None
        return grant if full is None else self.refuse(head, *full, token=grant.name)

    def refusal(self, head: Head) -> Reply | None:
        """Return the reply to a request from a wrong host or origin. Every request is checked here first, and
        its `peer` becomes the address of the client instead of that of a proxy."""
        try:
            head.peer = self._proxies.client_of(head.peer, head.headers)
        except UnclearClient as unclear:
            return plain(400, f"{unclear}.")
        why = self.origins.refusal(head.headers)
        return None if why is None else plain(403, why)

    def refuse(self, head: Head, status: int, why: str = "", *, token: str | None = None) -> Reply:
        """Write a refusal into the audit log and return the reply."""
        self.note_refused(head, status, token=token)
        if status == 401:
            return plain(status, why, www_authenticate="Bearer")
        return plain(status, why, retry_after="5") if status in (429, 503) else plain(status, why)

    def note_refused(self, head: Head, status: int, *, token: str | None = None) -> None:
        with contextlib.suppress(UnclearClient):  # some requests are refused before `refusal` saw them
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
        """Write into the audit log that a client's frame was over `HubLimits.frame`."""
        self._audit.note("call", "limit: frame", token=grant.name, peer=peer or None)

    def _authenticate(self, head: Head) -> Grant | None:
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
        """Return the status and text for a connection over a limit."""
        if len(self._connected) >= self._limits.connections:
            return 503, "There are too many connections."
        own = Counter(grant.name for grant, _ in self._connected.values())[grant.name]
        if own >= self._limits.connections_per_token:
            return 429, "There are too many connections with this token."
        return None

    # --- connections -------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def connected(self, grant: Grant, transport: Any) -> AsyncIterator[bool]:
        """Count a connection inside the block. Yields whether there is room for it: several may have come
        since `check`."""
        task = asyncio.current_task()
        assert task is not None
        peer = transport.peer or None
        if self._full(grant) is not None:
            self._audit.note("connect", "refused", token=grant.name, peer=peer, status=TRY_LATER)
            transport.close_code = TRY_LATER
            yield False
            return
        self._connected[task] = grant, transport
        self._audit.note("connect", "allowed", token=grant.name, role=str(grant.role), peer=peer)
        try:
            yield True
        finally:
            del self._connected[task]
            why = transport.end_reason or None
            self._audit.note("disconnect", "done", token=grant.name, peer=peer, why=why)

    def exceeded(self, grant: Grant, method: Method, size: int) -> str | None:
        """Count a request with `size` bytes of params. Return the name of the limit that it exceeds."""
        counted = max(size, SMALLEST)
        if method.act not in FREE:
            if not self._bytes.take(grant.name, counted):
                return "bytes_per_minute"
            if self._spent is not None:
                self._spent.bytes[grant.name] += counted
        if method.counts_as_search and not self._searches.take(grant.name):
            return "searches_per_minute"
        if method.counts_as_prompt:
            if not self._prompts.take(grant.name):
                return "prompts_per_minute"
            if self._spent is not None:
                self._spent.prompts[grant.name] += 1
        return None

    def charge(self, token: str, *, prompts: int = 0, bytes: int = 0) -> None:
        """Count what another hub has allowed to a token of this name."""
        if prompts:
            self._prompts.charge(token, prompts)
        if bytes:
            self._bytes.charge(token, bytes)

    @contextlib.contextmanager
    def in_progress(self, grant: Grant, size: int) -> Iterator[None]:
        """Count a request with `size` bytes of params while the block handles it. Raises `RequestError` over
        the limit, but for a request that is alone."""
        with self._in_progress.counting(grant.name) as resize:
            if not resize(size) and self._in_progress.of(grant.name) > size:
                raise limited("bytes_in_progress", "Too many: bytes of requests that are being handled")
            yield

    def searching(self, grant: Grant) -> asyncio.Lock:
        """Return the lock under which the clients of a token search: one at a time, so that many searches of
        one token do not go before those of others."""
        return self._searching.setdefault(grant.name, asyncio.Lock())

    async def watch(self) -> None:
        """Disconnect clients whose tokens were revoked or have expired, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP)
            try:
                self.sweep()
            except Exception:
                logger.exception("token expiry sweep failed")

    def sweep(self) -> None:
        """Disconnect clients whose tokens were revoked or have expired, and write due audit counts."""
        self._audit.write_counts()
        valid: dict[Grant, bool] = {}
        for task, (grant, transport) in tuple(self._connected.items()):
            if grant not in valid:
                valid[grant] = self.tokens.is_valid(grant)
            if not valid[grant]:
                self._audit.note("disconnect", "cut", token=grant.name, peer=transport.peer or None)
                transport.close_code = POLICY_VIOLATION
                task.cancel()


def _is_for(grant: Grant, path: str) -> bool:
    """Return whether a grant is for a path. `/metrics` covers all sessions: it is for owners of all sessions,
    and for the role that reads nothing else."""
    metrics_only = grant.role is Role.METRICS
    if path == METRICS:
        return metrics_only or (grant.role is Role.OWNER and grant.sessions is None)
    return not metrics_only
