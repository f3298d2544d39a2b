"""Logins: the ways into an agent, as its author declares them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import Struct

from antiphon.agent.asking import Asks, Channel
from antiphon.errors import LocalError
from antiphon.schema import v1, v2
from antiphon.schema.wire import Unknown

if TYPE_CHECKING:
    from antiphon.agent.link import Link


class Login(Asks, Struct, kw_only=True):
    """A connection logs in, or has: what a login handler works with. It can ask the user, with `ask_url` and
    `ask`, for as long as the client waits for its login."""

    method_id: str
    meta: dict[str, Any]
    """The `_meta` that came with it."""
    accounts: list[v2.AuthAccount] = []
    """Who it turned out to be, for people to read (`auth/status`); the handler sets it."""
    channel: Channel | None = None

    def _channel(self) -> Channel:
        if self.channel is None:
            raise LocalError("there is nobody to ask: this login is over")
        return self.channel


LoginHandler = Callable[[Login], Awaitable[None]]
LogoutHandler = Callable[[Login | None], Awaitable[None]]
StatusHandler = Callable[[Login | None], Awaitable[v2.AuthStatusResponse | str]]
TerminalFlow = Callable[[], Coroutine[Any, Any, None]]


class Logins:
    """What an agent asks for before it lets a connection in. Every connection logs in for itself."""

    _links: set[Link]

    def __init__(self, *, login_required: bool) -> None:
        self.login_required = login_required
        """Whether a connection has to be logged in before it can do anything with sessions."""
        self.login_methods: dict[str, v2.AuthMethod] = {}
        self.login_handlers: dict[str, LoginHandler] = {}
        self.logs_out = True
        """Whether there is a logout where there are logins; v2 has it always (AUTH-09)."""
        self.logout_handler: LogoutHandler | None = None
        self.auth_status_handler: StatusHandler | None = None
        self._flows: dict[tuple[str, ...], TerminalFlow] = {}

    def on_login(
        self, method_id: str, *, name: str, description: str | None = None, type: str = "agent"
    ) -> Callable[[LoginHandler], LoginHandler]:
        """Offer a way to log in. The handler's return lets the connection in; raise `AuthRequired` to refuse.
        A type of your own begins with `_`; only v2 clients get to see it."""
        if type == "agent":
            self._offer(
                v2.AuthMethodAgent(method_id=v2.AuthMethodId(method_id), name=name, description=description),
                method_id,
            )
        elif type.startswith("_"):  # AUTH-04
            custom = {"type": type, "methodId": method_id, "name": name}
            described = {} if description is None else {"description": description}
            self._offer(Unknown({**custom, **described}), method_id)
        else:
            raise LocalError(f"{type!r} is no type of login; one of your own begins with `_`")

        def decorate(handler: LoginHandler) -> LoginHandler:
            self.login_handlers[method_id] = handler
            return handler

        return decorate

    def terminal_login(
        self,
        method_id: str,
        *,
        name: str,
        description: str | None = None,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> Callable[[TerminalFlow], TerminalFlow]:
        """Offer to log in in a terminal, to clients that can open one (AUTH-13): they start this very agent
        with these arguments behind its own and these variables over its own, and connect again once it has
        exited with 0. What this decorates is what `agent.run()` then does instead of serving (AUTH-17)."""
        if isinstance(args, str):
            raise LocalError("`args` is a list of strings")
        self._offer(
            v2.AuthMethodTerminal(
                method_id=v2.AuthMethodId(method_id),
                name=name,
                description=description,
                args=list(args),
                env=[v2.EnvVariable(name=key, value=value) for key, value in (env or {}).items()],
            ),
            method_id,
        )

        def decorate(flow: TerminalFlow) -> TerminalFlow:
            if not args:
                raise LocalError("a login flow is recognised by its `args`, and has none")
            self._flows[tuple(args)] = flow
            return flow

        return decorate

    def on_logout(self, handler: LogoutHandler) -> LogoutHandler:
        """Run this when a connection logs out; it gets the login that ends, if there was one here."""
        if self.logout_handler is not None:
            raise LocalError("an agent has one logout handler")
        self.logout_handler = handler
        return handler

    def on_auth_status(self, handler: StatusHandler) -> StatusHandler:
        """Ask this who a connection is: it gets the connection's login, if there was one, and returns a state
        (`authenticated`, `unauthenticated`, `not_required`, `unknown`) or a whole status. A connection that
        is `authenticated` without a login, by what an earlier process kept, is let in."""
        if self.auth_status_handler is not None:
            raise LocalError("an agent has one status handler")
        self.auth_status_handler = handler
        return handler

    async def auth_changed(self) -> None:
        """Who is logged in may be another than before, by no login or logout here (an expired token): ask the
        status handler again for every connection."""
        for link in tuple(self._links):
            await link.access.renew()

    def offered(self, client: v1.ClientCapabilities | v2.ClientCapabilities) -> list[v2.AuthMethod]:
        """The ways to log in that a client gets to see."""
        if isinstance(client, v2.ClientCapabilities):
            terminal = client.auth is not None and client.auth.terminal is not None
        else:
            terminal = client.auth.terminal
        return [
            method
            for method in self.login_methods.values()
            if (terminal or not isinstance(method, v2.AuthMethodTerminal))  # AUTH-13
            and (isinstance(client, v2.ClientCapabilities) or not isinstance(method, Unknown))
        ]

    def _offer(self, method: v2.AuthMethod, method_id: str) -> None:
        if not method_id:
            raise LocalError("a login needs an id")
        if method_id in self.login_methods:
            raise LocalError(f"there is a login {method_id!r} already")
        self.login_methods[method_id] = method  # AUTH-05

    # --- in a terminal -----------------------------------------------------------------------------

    def terminal_flow(self, arguments: Sequence[str]) -> TerminalFlow | None:
        """The login that this process was started for, if it was: clients append its arguments."""
        for args, flow in self._flows.items():
            if tuple(arguments[-len(args) :]) == args:
                return flow
        return None


def run_flow(flow: TerminalFlow) -> NoReturn:
    """Log in in this terminal, and exit: with 0 where it worked (AUTH-15)."""
    try:
        asyncio.run(flow())
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        sys.stderr.write(f"not logged in: {error}\n")
        sys.exit(1)
    sys.exit(0)
