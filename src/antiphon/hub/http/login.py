"""BrowserLogin: the login of the hub's page.

A login link is valid once, for a few minutes. The page exchanges its code for a cookie that no script can
read. With the cookie it gets tickets, each of which opens one WebSocket. The code is in the fragment of the
link, which browsers do not send. Neither code nor cookie is accepted at `/acp`.
"""

from __future__ import annotations

import asyncio
import getpass
import logging
from collections.abc import Collection
from typing import Protocol

import msgspec
from msgspec import Struct

from antiphon.engine.who import clean_name
from antiphon.errors import LocalError
from antiphon.hub.access import cookies
from antiphon.hub.access.admission import Admission
from antiphon.hub.access.audit import Audit
from antiphon.hub.access.cookies import Cookies, Invitation
from antiphon.hub.access.tickets import Tickets
from antiphon.hub.http.own_page import OwnPageAction
from antiphon.jsonrpc.frames import UNREADABLE
from antiphon.schema.antiphon.hub import LinkRequest, LinkResponse
from antiphon.server.method import Role
from antiphon.transports.http.exchange import Handler, Head, Reply, json

logger = logging.getLogger("antiphon.hub")

LINK_SECONDS = 300.0
NO_STORE = {"Cache-Control": "no-store"}


class HubAddress(Protocol):
    """The address of a hub."""

    @property
    def port(self) -> int | None: ...
    @property
    def secure(self) -> bool: ...
    @property
    def public_url(self) -> str | None: ...


class BrowserLogin:
    """Issues login links, cookies and tickets."""

    def __init__(self, address: HubAddress, admission: Admission, audit: Audit) -> None:
        self._address = address
        self._admission = admission
        self._audit = audit
        self._codes: Tickets[Invitation] = Tickets(LINK_SECONDS)
        self._cookies = Cookies(admission.tokens)

    def invite(
        self, role: Role = Role.OWNER, *, sessions: Collection[str] | None = None, name: str = ""
    ) -> str:
        """Return the code of a new login link. `name`: see `Invitation`."""
        only = None if sessions is None else frozenset(sessions)
        return self._codes.issue(Invitation(role=role, sessions=only, name=name))

    def link(self, url: str) -> str:
        """Return a login link to the page at `url` for the user who runs the hub, as an owner."""
        return f"{url}#login={self.invite(name=login_name())}"

    def answer_link(self, params: LinkRequest) -> LinkResponse:
        """Answer `_antiphon/link`."""
        public = self._address.public_url
        name = clean_name(params.name) or ""
        code = self.invite(Role(params.role), sessions=params.sessions, name=name)
        url = None if public is None else f"{public}/"
        return LinkResponse(code=code, seconds=LINK_SECONDS, url=url)

    def routes(self) -> dict[str, Handler]:
        return {
            "/login": OwnPageAction(self._admission, self._log_in),
            "/ticket": OwnPageAction(self._admission, self._ticket),
            "/logout": OwnPageAction(self._admission, self._log_out),
        }

    async def _log_in(self, head: Head, body: bytes) -> Reply:
        invitation = self._codes.redeem(_code(body))
        if invitation is None:
            return self._admission.refuse(head, 401, "This link is not good any more.")
        try:
            secret, grant = await asyncio.to_thread(self._cookies.issue, invitation)
        except (LocalError, OSError) as error:
            logger.warning("browser login failed: %s", error)
            return self._admission.refuse(head, 503, "Nobody can be let in just now.")
        about = {"token": grant.name, "role": str(grant.role), "peer": head.peer or None}
        self._audit.note("login", "allowed", **about)
        headers = {"Set-Cookie": self._cookie(head, secret, cookies.SECONDS), **NO_STORE}
        return json(200, msgspec.json.encode({"name": invitation.name or None}), headers)

    async def _ticket(self, head: Head, body: bytes) -> Reply:
        grant = self._cookies.find(self._secret(head))
        if grant is None:
            return self._admission.refuse(head, 401, "This browser is not let in.")
        ticket = self._admission.tickets.issue(grant)
        return json(200, msgspec.json.encode({"ticket": ticket}), NO_STORE)

    async def _log_out(self, head: Head, body: bytes) -> Reply:
        secret = self._secret(head)
        grant = self._cookies.find(secret)
        if grant is not None:
            await asyncio.to_thread(self._cookies.drop, secret)
            self._audit.note("logout", "done", token=grant.name, peer=head.peer or None)
        return Reply(204, headers={"Set-Cookie": self._cookie(head, "", 0), **NO_STORE})

    @property
    def _name(self) -> str:
        """Cookies ignore ports: the name keeps two hubs of one machine apart."""
        return f"antiphon-{self._address.port}"

    def _cookie(self, head: Head, value: str, seconds: float) -> str:
        """Write a `Set-Cookie` header, `Secure` if the page came over HTTPS, also that of a proxy
        (`Origin`)."""
        https = self._address.secure or head.headers.get("Origin", "").lower().startswith("https:")
        secure = "; Secure" if https else ""
        return f"{self._name}={value}; Path=/; Max-Age={seconds:.0f}; HttpOnly; SameSite=Strict{secure}"

    def _secret(self, head: Head) -> str:
        """Return the value of the request's cookie, or an empty string."""
        pairs = (pair.strip().partition("=") for pair in head.headers.get("Cookie", "").split(";"))
        return next((value for name, _, value in pairs if name == self._name), "")


def login_name() -> str:
    """Return the login name of the user who runs the hub, as `antiphon chat` does; empty if it has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # the user id has no name
        return ""


class _LoginBody(Struct):
    code: str = ""


def _code(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_LoginBody).code
    except UNREADABLE:
        return ""
