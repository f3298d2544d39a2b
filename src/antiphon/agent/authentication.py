"""Authentication on the wire: login, logout and status, and the gate before everything else.

`authenticate` and `logout` in v1, `auth/login` and `auth/logout` in v2; `auth/status` in both, unstable.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from antiphon.agent.asking import RequestChannel
from antiphon.agent.logins import Login
from antiphon.bridge.authentication import methods_v1, status_v1
from antiphon.errors import AntiphonError, AuthRequired, InvalidParams, MethodNotFound, RequestError
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v1, v2

if TYPE_CHECKING:
    from antiphon.agent.link import Handlers, Link

logger = logging.getLogger("antiphon.agent")

FREE = frozenset({"authenticate", "logout", "auth/login", "auth/logout", "auth/status", "session/close"})
"""What a connection may ask for that is not logged in: to get in, and to let go of what it has."""
NOWHERE = "Log in first, in a terminal: this client offers no way to do it here"
_OPEN = (v2.AuthState.AUTHENTICATED, v2.AuthState.NOT_REQUIRED)


class Access:
    """Whether one connection is let in, and as whom. A turn that works when its client logs out goes on, and
    is still told (AUTH-21); what the client asks for from then on is refused."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._agent = link.agent
        self._client: v1.ClientCapabilities | v2.ClientCapabilities = v2.ClientCapabilities()
        self._told_of: list[v2.AuthMethod] = []
        """The ways to log in that this client was told of."""
        self._login: Login | None = None
        self._in = False
        self._out = False
        """Whether it has logged out: then only a login lets it in (AUTH-20)."""
        self._logouts = 0
        self._reported: v2.AuthStatusResponse | None = None
        """What this client was last told; nothing is sent to one that has never asked."""

    def offer(self, result: Any, client: v1.ClientCapabilities | v2.ClientCapabilities) -> Any:
        """The answer to `initialize`, with the ways to log in."""
        self._client = client
        self._told_of = self._agent.offered(client)
        if isinstance(result, v2.InitializeResponse):
            # AUTH-12: that there are methods says that login and logout work.
            able = v2.AgentAuthCapabilities(status=v2.AuthStatusCapabilities())
            auth = able if self._tells else None
            capabilities = replace(result.capabilities, auth=auth)
            return replace(result, capabilities=capabilities, auth_methods=self.offered)
        auth_v1 = v1.AgentAuthCapabilities(
            status=v1.AuthStatusCapabilities() if self._tells else None,
            logout=v1.LogoutCapabilities() if self.offered and self._agent.logs_out else None,
        )
        able_v1 = replace(result.agent_capabilities, auth=auth_v1)
        return replace(result, agent_capabilities=able_v1, auth_methods=methods_v1(self.offered))

    @property
    def offered(self) -> list[v2.AuthMethod]:
        """The ways to log in that this client was told of, and those that there are by now: who was told less
        than is true is not refused for that."""
        now = self._agent.offered(self._client)
        ids = {_id(method) for method in now}
        return [*now, *(method for method in self._told_of if _id(method) not in ids)]

    # --- the gate ----------------------------------------------------------------------------------

    @property
    def _gated(self) -> bool:
        return self._agent.login_required and bool(self._agent.login_methods)  # AUTH-19

    @property
    def open(self) -> bool:
        return self._in or not self._gated

    async def check(self) -> None:
        """Let the connection in, by what is known of it without a login, or refuse."""
        if self._agent.auth_status_handler is not None and not self._out:
            logouts = self._logouts
            status = await self.status()
            if status.state in _OPEN and logouts == self._logouts:
                self._in = True
                return
        if not self.offered:
            raise RequestError(AntiphonError.code, NOWHERE)  # AUTH-19: -32000 would ask for the impossible
        raise AuthRequired

    # --- what is asked -----------------------------------------------------------------------------

    def serves_login(self, method: str) -> None:
        if not self.offered:
            raise MethodNotFound(method)

    async def log_in(self, method_id: str, meta: dict[str, Any] | None, inbound: Inbound) -> None:
        offered = any(_id(method) == method_id for method in self.offered)
        handler = self._agent.login_handlers.get(method_id)
        if not offered or handler is None:
            raise InvalidParams("no such way to log in here")  # AUTH-08: nor in a terminal
        asking = RequestChannel(self._link, inbound)  # ELIC-04
        login = Login(method_id=method_id, meta=dict(meta or {}), channel=asking)
        logouts = self._logouts
        try:
            await handler(login)
        finally:
            login.channel = None
        if logouts != self._logouts:
            raise AuthRequired("it has logged out meanwhile")
        self._login, self._in, self._out = login, True, False

    async def log_out(self) -> None:
        if self._agent.logout_handler is not None:
            await self._agent.logout_handler(self._login)
        self._logouts += 1
        self._login, self._in, self._out = None, False, True

    # --- the status --------------------------------------------------------------------------------

    @property
    def _tells(self) -> bool:
        return bool(self._agent.login_methods) or self._agent.auth_status_handler is not None

    def serves_status(self, method: str) -> None:
        if not self._tells:
            raise MethodNotFound(method)

    async def status(self) -> v2.AuthStatusResponse:
        """Who this connection is. Never fails: what cannot be found out is unknown (AUTH-23)."""
        handler = self._agent.auth_status_handler
        if handler is None:
            if not self._gated and not self._in:
                return v2.AuthStatusResponse(state=v2.AuthState.NOT_REQUIRED)
            return self._told(v2.AuthState.AUTHENTICATED if self._in else v2.AuthState.UNAUTHENTICATED)
        try:
            given = await handler(self._login)
        except AuthRequired:
            given = v2.AuthState.UNAUTHENTICATED
        except Exception:
            logger.exception("the status handler failed")
            given = v2.AuthState.UNKNOWN
        status = self._told(v2.AuthState(given)) if isinstance(given, str) else given
        if self._out and status.state == v2.AuthState.AUTHENTICATED:
            return v2.AuthStatusResponse(state=v2.AuthState.UNAUTHENTICATED)
        return status

    def _told(self, state: v2.AuthState) -> v2.AuthStatusResponse:
        known = self._login is not None and state == v2.AuthState.AUTHENTICATED
        accounts = self._login.accounts if self._login is not None and known else []
        return v2.AuthStatusResponse(state=state, accounts=list(accounts))

    async def tell(self) -> v2.AuthStatusResponse:
        """The status, which the client knows from here on."""
        self._reported = await self.status()
        return self._reported

    async def report(self) -> None:
        """Tell a client that asked before, if it is not as it was told (AUTH-25)."""
        before = self._reported
        if before is None:
            return
        now = await self.tell()
        if now == before:
            return
        types: Any = v1 if self._link.v1 else v2
        status: Any = status_v1(now) if self._link.v1 else now
        update = types.AuthStatusUpdateNotification(
            state=status.state, accounts=status.accounts, meta=status.meta
        )
        await self._link.connection.notify("auth/status_update", update)

    async def renew(self) -> None:
        """Ask the status handler whether the connection is still let in, and tell its client."""
        if self._agent.auth_status_handler is not None and self._in:
            status = await self.status()
            if status.state not in _OPEN:
                self._login, self._in = None, False
        await self.report()


def handlers(link: Link) -> Handlers:
    access = link.access

    async def log_in(params: Any, inbound: Inbound) -> Any:
        access.serves_login(inbound.method)
        await access.log_in(params.method_id, params.meta, inbound)
        link.connection.answer(inbound, {})
        await access.report()
        return {}

    async def log_out(params: Any, inbound: Inbound) -> Any:
        access.serves_login(inbound.method)
        await access.log_out()
        link.connection.answer(inbound, {})
        await access.report()
        return {}

    async def status(params: Any, inbound: Inbound) -> Any:
        access.serves_status(inbound.method)
        told = await access.tell()
        return status_v1(told) if link.v1 else told

    return {
        "authenticate": log_in,
        "logout": log_out,
        "auth/login": log_in,
        "auth/logout": log_out,
        "auth/status": status,
    }


def guarded(link: Link, handlers: Handlers) -> Handlers:
    """These, where the connection is logged in or need not be (AUTH-18)."""
    access = link.access

    def guard(method: str) -> Any:
        handler = handlers[method]

        async def call(params: Any, inbound: Inbound) -> Any:
            if not access.open:
                await access.check()
            return await handler(params, inbound)

        return handler if method in FREE else call

    return {method: guard(method) for method in handlers}


def _id(method: v2.AuthMethod) -> Any:
    return method.get("methodId") if isinstance(method, dict) else method.method_id
