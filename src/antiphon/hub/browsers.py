"""Browsers: how a page of the hub gets in.

A link that is good once, and for minutes, is exchanged for a cookie that no script can read; with the cookie
the page gets tickets, each of which opens one WebSocket. The code stands behind the `#` of the link, which
browsers send to nobody. Neither code nor cookie lets anybody in at `/acp` itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any

import msgspec

from antiphon.errors import LocalError
from antiphon.hub import cookies
from antiphon.hub.cookies import Cookies, Invitation
from antiphon.hub.roles import Role
from antiphon.hub.tickets import Tickets
from antiphon.transports.http_exchange import Exchange, Handler, Head, Reply, json, plain
from antiphon.transports.http_frames import UNREADABLE

if TYPE_CHECKING:
    from antiphon.hub.hub import Hub

logger = logging.getLogger("antiphon.hub")

LINK_SECONDS = 300.0
NO_STORE = {"Cache-Control": "no-store"}


class Browsers:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._codes: Tickets[Invitation] = Tickets(LINK_SECONDS)
        self._cookies = Cookies(hub.doorkeeper.tokens)

    def invite(self, role: Role = Role.OWNER, *, sessions: Collection[str] | None = None) -> str:
        """The code of a link."""
        only = None if sessions is None else frozenset(sessions)
        return self._codes.issue(Invitation(role=role, sessions=only))

    def link(self, url: str) -> str:
        """A link to the page at an address of the hub, which lets a browser in once, as its owner."""
        return f"{url}#login={self.invite()}"

    def routes(self) -> dict[str, Handler]:
        return {
            "/login": _Posted(self._hub, self._log_in),
            "/ticket": _Posted(self._hub, self._ticket),
            "/logout": _Posted(self._hub, self._log_out),
        }

    async def _log_in(self, head: Head, body: bytes) -> Reply:
        keeper = self._hub.doorkeeper
        invitation = self._codes.redeem(_code(body))
        if invitation is None:
            return keeper.refuse(head, 401, "This link is not good any more.")
        try:
            secret, grant = await asyncio.to_thread(self._cookies.issue, invitation)
        except (LocalError, OSError) as error:
            logger.warning("a browser could not be let in: %s", error)
            return keeper.refuse(head, 503, "Nobody can be let in just now.")
        about = {"token": grant.name, "role": str(grant.role), "peer": head.peer or None}
        self._hub.audit.note("login", "allowed", **about)
        return Reply(204, headers={"Set-Cookie": self._cookie(head, secret, cookies.SECONDS), **NO_STORE})

    async def _ticket(self, head: Head, body: bytes) -> Reply:
        grant = self._cookies.find(self._shown(head))
        if grant is None:
            return self._hub.doorkeeper.refuse(head, 401, "This browser is not let in.")
        ticket = self._hub.doorkeeper.tickets.issue(grant)
        return json(200, msgspec.json.encode({"ticket": ticket}), NO_STORE)

    async def _log_out(self, head: Head, body: bytes) -> Reply:
        shown = self._shown(head)
        grant = self._cookies.find(shown)
        if grant is not None:
            await asyncio.to_thread(self._cookies.drop, shown)
            self._hub.audit.note("logout", "done", token=grant.name, peer=head.peer or None)
        return Reply(204, headers={"Set-Cookie": self._cookie(head, "", 0), **NO_STORE})

    @property
    def _name(self) -> str:
        """Cookies do not tell ports apart: two hubs of one machine have two."""
        return f"antiphon-{self._hub.port}"

    def _cookie(self, head: Head, value: str, seconds: float) -> str:
        """`Secure` where the page itself came over HTTPS, be it that of a proxy: its `Origin` says so."""
        https = self._hub.secure or head.headers.get("Origin", "").lower().startswith("https:")
        secure = "; Secure" if https else ""
        return f"{self._name}={value}; Path=/; Max-Age={seconds:.0f}; HttpOnly; SameSite=Strict{secure}"

    def _shown(self, head: Head) -> str:
        pairs = (pair.strip().partition("=") for pair in head.headers.get("Cookie", "").split(";"))
        return next((value for name, _, value in pairs if name == self._name), "")


def _code(body: bytes) -> str:
    try:
        given: Any = msgspec.json.decode(body)
    except UNREADABLE:
        return ""
    code = given.get("code") if isinstance(given, dict) else None
    return code if isinstance(code, str) else ""


class _Posted:
    """What only a page of the hub itself may ask for: its `Origin` says so, which no other page can forge."""

    def __init__(self, hub: Hub, act: Callable[[Head, bytes], Awaitable[Reply]]) -> None:
        self._hub = hub
        self._act = act

    def admit(self, head: Head) -> Reply | None:
        keeper = self._hub.doorkeeper
        refusal = keeper.refusal(head)
        if refusal is not None:
            return refusal
        if not keeper.gate.is_own(head.headers):
            return plain(403, "Only the hub's own page asks for this.")
        return None if head.method == "POST" else plain(405, allow="POST")

    async def answer(self, exchange: Exchange, body: bytes) -> None:
        exchange.reply(await self._act(exchange.head, body))

    def refused(self, head: Head, status: int) -> None: ...
