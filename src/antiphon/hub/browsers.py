"""Browsers: how a page of the hub gets in.

A link that is good once, and for minutes, is exchanged for a cookie that no script can read; with the cookie
the page gets tickets, each of which opens one WebSocket. The code stands behind the `#` of the link, which
browsers send to nobody. Neither code nor cookie lets anybody in at `/acp` itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from antiphon.hub.tickets import Tickets
from antiphon.hub.tokens import OWNER, Grant
from antiphon.transports.http_exchange import Exchange, Handler, Head, Reply, json, plain

if TYPE_CHECKING:
    from antiphon.hub.hub import Hub

LINK_SECONDS = 300.0
COOKIE_SECONDS = 12 * 3600.0
BODY = 4096

SECURITY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
PAGE = b"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Antiphon hub</title>
<body><p id="told">Antiphon hub</p><script src="/login.js"></script></body></html>
"""
SCRIPT = b"""const code = new URLSearchParams(location.hash.slice(1)).get("login");
history.replaceState(null, "", location.pathname);
if (code) {
  fetch("/login", { method: "POST", body: JSON.stringify({ code }) }).then((answer) => {
    document.getElementById("told").textContent = answer.ok
      ? "You are in. This browser may open sessions of the hub."
      : "This link was used before, or is too old. The hub prints another one when it starts.";
  });
}
"""


class Browsers:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._codes: Tickets[Grant] = Tickets(LINK_SECONDS)
        self._cookies: Tickets[Grant] = Tickets(COOKIE_SECONDS)

    def link(self, url: str) -> str:
        """A link to the page at an address of the hub, which lets a browser in once, as its owner."""
        return f"{url}#login={self._codes.issue(OWNER)}"

    def routes(self) -> dict[str, Handler]:
        return {
            "/": _Static(self._hub, PAGE, "text/html; charset=utf-8"),
            "/login.js": _Static(self._hub, SCRIPT, "text/javascript; charset=utf-8"),
            "/login": _Posted(self._hub, self._log_in),
            "/ticket": _Posted(self._hub, self._ticket),
            "/logout": _Posted(self._hub, self._log_out),
        }

    def _log_in(self, head: Head, body: bytes) -> Reply:
        grant = self._codes.redeem(_code(body))
        if grant is None:
            return self._hub.doorkeeper.refuse(head, 401, "This link is not good any more.")
        self._hub.audit.note("login", "allowed", token=grant.name)
        return Reply(204, headers={"Set-Cookie": self._cookie(self._cookies.issue(grant), COOKIE_SECONDS)})

    def _ticket(self, head: Head, body: bytes) -> Reply:
        grant = self._cookies.see(self._shown(head))
        if grant is None or not self._hub.doorkeeper.tokens.admits(grant):
            return self._hub.doorkeeper.refuse(head, 401, "This browser is not let in.")
        ticket = self._hub.doorkeeper.tickets.issue(grant)
        return json(200, msgspec.json.encode({"ticket": ticket}), {"Cache-Control": "no-store"})

    def _log_out(self, head: Head, body: bytes) -> Reply:
        self._cookies.redeem(self._shown(head))
        return Reply(204, headers={"Set-Cookie": self._cookie("", 0)})

    @property
    def _name(self) -> str:
        """Cookies do not tell ports apart: two hubs of one machine have two."""
        return f"antiphon-{self._hub.port}"

    def _cookie(self, value: str, seconds: float) -> str:
        secure = "; Secure" if self._hub.secure else ""
        return f"{self._name}={value}; Path=/; Max-Age={seconds:.0f}; HttpOnly; SameSite=Strict{secure}"

    def _shown(self, head: Head) -> str:
        pairs = (pair.strip().partition("=") for pair in head.headers.get("Cookie", "").split(";"))
        return next((value for name, _, value in pairs if name == self._name), "")


def _code(body: bytes) -> str:
    try:
        given: Any = msgspec.json.decode(body) if len(body) <= BODY else None
    except msgspec.DecodeError:
        return ""
    code = given.get("code") if isinstance(given, dict) else None
    return code if isinstance(code, str) else ""


class _Static:
    def __init__(self, hub: Hub, content: bytes, kind: str) -> None:
        self._hub = hub
        self._reply = Reply(200, content, {"Content-Type": kind, **SECURITY})

    def admit(self, head: Head) -> Reply | None:
        why = self._hub.doorkeeper.gate.refusal(head.headers)
        if why is not None:
            return self._hub.doorkeeper.refuse(head, 403, why)
        return None if head.method in ("GET", "HEAD") else plain(405, allow="GET, HEAD")

    async def answer(self, exchange: Exchange, body: bytes) -> None:
        exchange.reply(self._reply)

    def refused(self, head: Head | None, status: int) -> None: ...


class _Posted:
    """What only a page of the hub itself may ask for: its `Origin` says so, which no other page can forge."""

    def __init__(self, hub: Hub, act: Callable[[Head, bytes], Reply]) -> None:
        self._hub = hub
        self._act = act

    def admit(self, head: Head) -> Reply | None:
        if head.method != "POST":
            return plain(405, allow="POST")
        keeper = self._hub.doorkeeper
        why = keeper.gate.refusal(head.headers)
        if why is None and not keeper.gate.is_own(head.headers):
            why = "Only the hub's own page asks for this."
        return None if why is None else keeper.refuse(head, 403, why)

    async def answer(self, exchange: Exchange, body: bytes) -> None:
        exchange.reply(self._act(exchange.head, body))

    def refused(self, head: Head | None, status: int) -> None: ...
