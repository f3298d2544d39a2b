"""Logins: the ways into an agent, as its author declares them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from antiphon.agent.elicitation import ask, ask_url, can_ask
from antiphon.errors import LocalError
from antiphon.schema import v2
from antiphon.server.authentication import LoginAttempt, Logins
from antiphon.server.questions import Channel


class Login(LoginAttempt, kw_only=True):
    """A connection logs in, or has: what a login handler works with. It can ask the user, with `ask_url` and
    `ask`, for as long as the client waits for its login."""

    can_ask = can_ask
    ask = ask
    ask_url = ask_url

    def _channel(self) -> Channel:
        if self.channel is None:
            raise LocalError("this login has ended, so its client cannot be asked")
        return self.channel


LoginHandler = Callable[[Login], Awaitable[None]]
LogoutHandler = Callable[[Login | None], Awaitable[None]]
StatusHandler = Callable[[Login | None], Awaitable[v2.AuthStatusResponse | str]]
TerminalFlow = Callable[[], Coroutine[Any, Any, None]]


def offer_login(logins: Logins, method: v2.AuthMethod, method_id: str) -> None:
    if not method_id:
        raise LocalError("a login needs an id")
    if method_id in logins.methods:
        raise LocalError(f"there is a login {method_id!r} already")
    logins.methods[method_id] = method  # AUTH-05


def run_flow(flows: dict[tuple[str, ...], TerminalFlow], arguments: Sequence[str]) -> None:
    """If this process was started for a login in a terminal, log in and exit: with 0 if it worked (AUTH-15).
    Clients append the arguments of the login."""
    flow = next((flow for args, flow in flows.items() if tuple(arguments[-len(args) :]) == args), None)
    if flow is None:
        return
    try:
        asyncio.run(flow())
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        sys.stderr.write(f"not logged in: {error}\n")
        sys.exit(1)
    sys.exit(0)
