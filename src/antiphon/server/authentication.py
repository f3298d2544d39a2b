"""Authentication of connections: login, logout and status, and the gate before everything else.

`authenticate` and `logout` in v1, `auth/login` and `auth/logout` in v2; `auth/status` in both, unstable.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from antiphon.bridge.authentication import methods_v1
from antiphon.errors import AntiphonError, AuthRequired, InvalidParams, MethodNotFound, RequestError
from antiphon.schema import v1, v2
from antiphon.schema.wire import Unknown
from antiphon.server.questions import Channel

logger = logging.getLogger("antiphon.server")

NOWHERE = "Log in first, in a terminal: this client offers no way to do it here"
_OPEN = (v2.AuthState.AUTHENTICATED, v2.AuthState.NOT_REQUIRED)

ClientCapabilities = v1.ClientCapabilities | v2.ClientCapabilities


class LoginAttempt(Struct, kw_only=True):
    """A connection logs in, or has."""

    method_id: str
    meta: dict[str, Any]
    """The `_meta` that came with it."""
    accounts: list[v2.AuthAccount] = []
    """The accounts it turned out to be, for people to read (`auth/status`); the handler sets it."""
    channel: Channel | None = None
    """Asks the user, for as long as the client waits for its login."""


class Logins:
    """The ways to log in that a server offers, and what handles them."""

    def __init__(self, *, required: bool, attempt: Callable[..., LoginAttempt] = LoginAttempt) -> None:
        """`required`: a connection has to be logged in before it can do anything with sessions. `attempt`
        makes what handlers get."""
        self.required = required
        self.attempt = attempt
        self.methods: dict[str, v2.AuthMethod] = {}
        self.handlers: dict[str, Callable[[Any], Awaitable[None]]] = {}
        self.logs_out = True
        """Whether there is a logout where there are logins; v2 has it always (AUTH-09)."""
        self.on_logout: Callable[[Any], Awaitable[None]] | None = None
        self.on_status: Callable[[Any], Awaitable[v2.AuthStatusResponse | str]] | None = None

    def offered(self, client: ClientCapabilities) -> list[v2.AuthMethod]:
        """Return the ways to log in that a client gets to see."""
        if isinstance(client, v2.ClientCapabilities):
            terminal = client.auth is not None and client.auth.terminal is not None
        else:
            terminal = client.auth.terminal
        return [
            method
            for method in self.methods.values()
            if (terminal or not isinstance(method, v2.AuthMethodTerminal))  # AUTH-13
            and (isinstance(client, v2.ClientCapabilities) or not isinstance(method, Unknown))
        ]


class Authentication:
    """Whether one connection is let in, and as whom. A turn that is at work when its client logs out
    continues, and the client still gets its updates (AUTH-21); its later requests are refused."""

    def __init__(self, logins: Logins) -> None:
        self._logins = logins
        self._client: ClientCapabilities = v2.ClientCapabilities()
        self._announced: list[v2.AuthMethod] = []
        """The ways to log in that `initialize` announced to this client."""
        self._login: LoginAttempt | None = None
        self._in = False
        self._out = False
        """Whether it has logged out: then only a login lets it in (AUTH-20)."""
        self._logouts = 0
        self._reported: v2.AuthStatusResponse | None = None
        """The status that this client got last; nothing is sent to a client that never asked."""

    def offer(self, result: Any, client: ClientCapabilities) -> Any:
        """Return the answer to `initialize` with the ways to log in."""
        self._client = client
        self._announced = self._logins.offered(client)
        if isinstance(result, v2.InitializeResponse):
            # AUTH-12: that there are methods says that login and logout work.
            able = v2.AgentAuthCapabilities(status=v2.AuthStatusCapabilities())
            auth = able if self._has_status else None
            capabilities = replace(result.capabilities, auth=auth)
            return replace(result, capabilities=capabilities, auth_methods=self.offered)
        auth_v1 = v1.AgentAuthCapabilities(
            status=v1.AuthStatusCapabilities() if self._has_status else None,
            logout=v1.LogoutCapabilities() if self.offered and self._logins.logs_out else None,
        )
        able_v1 = replace(result.agent_capabilities, auth=auth_v1)
        return replace(result, agent_capabilities=able_v1, auth_methods=methods_v1(self.offered))

    @property
    def offered(self) -> list[v2.AuthMethod]:
        """The ways to log in that were announced to this client, and those that were added since: a client is
        not refused because its announcement is old."""
        now = self._logins.offered(self._client)
        ids = {_id(method) for method in now}
        return [*now, *(method for method in self._announced if _id(method) not in ids)]

    # --- the gate ----------------------------------------------------------------------------------

    @property
    def _gated(self) -> bool:
        return self._logins.required and bool(self._logins.methods)  # AUTH-19

    @property
    def open(self) -> bool:
        return self._in or not self._gated

    async def check(self) -> None:
        """Let the connection in by what is known of it without a login. Raises where that is not enough."""
        if self._logins.on_status is not None and not self._out:
            logouts = self._logouts
            status = await self.status()
            if status.state in _OPEN and logouts == self._logouts:
                self._in = True
                return
        if not self.offered:
            raise RequestError(AntiphonError.code, NOWHERE)  # AUTH-19: -32000 would ask for the impossible
        raise AuthRequired

    # --- login and logout --------------------------------------------------------------------------

    def check_has_login(self, method: str) -> None:
        if not self.offered:
            raise MethodNotFound(method)

    async def log_in(self, method_id: str, meta: dict[str, Any] | None, channel: Channel) -> None:
        """Log in; the handler may ask the user through `channel` (ELIC-04)."""
        offered = any(_id(method) == method_id for method in self.offered)
        handler = self._logins.handlers.get(method_id)
        if not offered or handler is None:
            raise InvalidParams("no such way to log in here")  # AUTH-08: nor in a terminal
        login = self._logins.attempt(method_id=method_id, meta=dict(meta or {}), channel=channel)
        logouts = self._logouts
        try:
            await handler(login)
        finally:
            login.channel = None
        if logouts != self._logouts:
            raise AuthRequired("it has logged out meanwhile")
        self._login, self._in, self._out = login, True, False

    async def log_out(self) -> None:
        if self._logins.on_logout is not None:
            await self._logins.on_logout(self._login)
        self._logouts += 1
        self._login, self._in, self._out = None, False, True

    # --- the status --------------------------------------------------------------------------------

    @property
    def _has_status(self) -> bool:
        return bool(self._logins.methods) or self._logins.on_status is not None

    def check_has_status(self, method: str) -> None:
        if not self._has_status:
            raise MethodNotFound(method)

    async def status(self) -> v2.AuthStatusResponse:
        """Return the status of the connection. Never fails: what cannot be found out is unknown (AUTH-23)."""
        handler = self._logins.on_status
        if handler is None:
            if not self._gated and not self._in:
                return v2.AuthStatusResponse(state=v2.AuthState.NOT_REQUIRED)
            return self._with_accounts(
                v2.AuthState.AUTHENTICATED if self._in else v2.AuthState.UNAUTHENTICATED
            )
        try:
            given = await handler(self._login)
        except AuthRequired:
            given = v2.AuthState.UNAUTHENTICATED
        except Exception:
            logger.exception("auth status handler failed")
            given = v2.AuthState.UNKNOWN
        status = self._with_accounts(v2.AuthState(given)) if isinstance(given, str) else given
        if self._out and status.state == v2.AuthState.AUTHENTICATED:
            return v2.AuthStatusResponse(state=v2.AuthState.UNAUTHENTICATED)
        return status

    def _with_accounts(self, state: v2.AuthState) -> v2.AuthStatusResponse:
        login = self._login if state == v2.AuthState.AUTHENTICATED else None
        return v2.AuthStatusResponse(state=state, accounts=[] if login is None else list(login.accounts))

    async def report(self) -> v2.AuthStatusResponse:
        """Return the status for the client, which knows it from here on."""
        self._reported = await self.status()
        return self._reported

    async def changed(self) -> v2.AuthStatusResponse | None:
        """Return the status where the client asked for it before and it is another one now (AUTH-25)."""
        before = self._reported
        if before is None:
            return None
        now = await self.report()
        return None if now == before else now

    async def renew(self) -> None:
        """Ask the status handler whether the connection is still let in."""
        if self._logins.on_status is not None and self._in:
            status = await self.status()
            if status.state not in _OPEN:
                self._login, self._in = None, False


def _id(method: v2.AuthMethod) -> Any:
    return method.get("methodId") if isinstance(method, dict) else method.method_id
