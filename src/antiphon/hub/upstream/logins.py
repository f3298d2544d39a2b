"""AgentLogins: offers the logins of the agents to the hub's clients, and logs in there for them. A process
that is started later and needs a login gets the last one again."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct, structs

from antiphon.client.protocol.abilities import Abilities
from antiphon.errors import AntiphonError, CallFailed, LocalError, MethodNotFound, RequestError
from antiphon.hub.upstream.errors import LOGIN, explained, to_request_error
from antiphon.hub.upstream.pool import UpstreamPool
from antiphon.hub.upstream.upstream import Upstream
from antiphon.schema import v2
from antiphon.schema.wire import Unknown
from antiphon.server.authentication import LoginAttempt, Logins

logger = logging.getLogger("antiphon.hub")

T = TypeVar("T")


class Given(Struct, frozen=True):
    """How a client logged in at an agent."""

    method_id: str
    meta: dict[str, Any] | None


class AgentLogins:
    def __init__(self, logins: Logins, upstreams: UpstreamPool, default: str) -> None:
        """`logins`: the hub's own. `default`: the name of the first agent."""
        self._logins = logins
        self._upstreams = upstreams
        self._default = default
        self._given: dict[str, Given] = {}
        """By the names of agents, until a client logs out."""
        self._offered: dict[str, list[str]] = {}
        """The logins that are offered here, by the names of their agents."""

    def offer(self, name: str, methods: Sequence[v2.AuthMethod], able: Abilities) -> None:
        """Offer the logins of an agent here; under its name, if it is not the first. What it offered before
        and does not offer now keeps its handler, which answers clients that still know it with an error."""
        for id in self._offered.pop(name, ()):
            self._logins.methods.pop(id, None)
        for method in methods:
            if isinstance(method, v2.AuthMethodTerminal):
                continue  # AUTH-14: no terminal leads to the agent from a client of the hub
            there = _id(method)
            here = there if name == self._default else f"{name}/{there}"
            self._logins.methods[here] = _named(method, here)
            self._logins.handlers[here] = partial(self._log_in, name, there)
            self._offered.setdefault(name, []).append(here)
        if self._logins.methods or able.auth_status:
            self._logins.on_status = self._status
            self._logins.on_logout = self._log_out
        if name == self._default:
            self._logins.logs_out = able.logout

    async def _log_in(self, name: str, method_id: str, login: LoginAttempt) -> None:
        """Log in at every process that needs it, or at the one that the next session gets."""
        given = Given(method_id, login.meta or None)
        wanting = [upstream for upstream in self._upstreams.of(name) if upstream.wants_login]
        try:
            first, *others = wanting or [await self._upstreams.spare(name)]
            if first.asks is not None:
                raise RequestError(AntiphonError.code, "Somebody else is about to log in at this agent")
            first.asks = login.channel
            try:
                await _log_in(first, given)
            finally:
                first.asks = None
        except (AntiphonError, OSError) as error:
            raise to_request_error(error) from error
        self._given[name] = given
        for upstream in others:
            await self._log_in_again(upstream)

    async def _log_in_again(self, upstream: Upstream) -> bool:
        """Repeat the last login. Returns whether that worked."""
        given = self._given.get(upstream.name)
        if given is None:
            return False
        try:
            await _log_in(upstream, given)
        except AntiphonError as error:
            logger.warning("the agent %s does not take the login again: %s", upstream.name, error)
            return False
        return True

    async def _log_out(self, _: LoginAttempt | None) -> None:
        name = self._default
        self._given.pop(name, None)
        try:
            running = self._upstreams.of(name) or [await self._upstreams.spare(name)]
            able = [upstream for upstream in running if upstream.agent.abilities.logout]
            if not able:
                raise RequestError(MethodNotFound.code, "The agent offers no logout")
            for upstream in able:
                await upstream.logins.logout()
        except (AntiphonError, OSError) as error:
            raise to_request_error(error) from error

    async def _status(self, login: LoginAttempt | None) -> v2.AuthStatusResponse | str:
        for upstream in self._upstreams.of(self._default):
            if upstream.agent.abilities.auth_status:
                return await upstream.logins.status()
        known = self._default in self._given
        return v2.AuthState.AUTHENTICATED if known else v2.AuthState.UNKNOWN

    async def admitted(self, upstream: Upstream, call: Callable[[], Awaitable[T]]) -> T:
        """Call an agent, and log in first if it asks for that (AUTH-18)."""
        try:
            return await call()
        except CallFailed as error:
            if not error.needs_login:
                raise
            upstream.wants_login = True
            if not await self._log_in_again(upstream):
                raise self._refusal(upstream, error) from error
        return await call()

    def _refusal(self, upstream: Upstream, error: CallFailed) -> RequestError:
        if any(not isinstance(method, v2.AuthMethodTerminal) for method in upstream.agent.auth_methods):
            return to_request_error(error, upstream.failed_agent)
        told = explained(error.error, upstream.failed_agent)
        # AUTH-19: -32000 would ask the client for the impossible.
        return RequestError(
            AntiphonError.code,
            f"The agent {upstream.name} wants a login that no client of the hub can do: log in with it in a "
            "terminal, on the hub's machine, and try again",
            data={**(told.data if isinstance(told.data, dict) else {}), "reason": LOGIN},
        )


async def _log_in(upstream: Upstream, given: Given) -> None:
    if not any(_id(method) == given.method_id for method in upstream.agent.auth_methods):
        raise LocalError(f"the agent offers no login {given.method_id!r} any more")
    await upstream.logins.login(given.method_id, given.meta)
    upstream.wants_login, upstream.logged_in = False, True


def _id(method: v2.AuthMethod) -> str:
    return str(method.get("methodId") if isinstance(method, dict) else method.method_id)


def _named(method: v2.AuthMethod, id: str) -> v2.AuthMethod:
    if isinstance(method, dict):
        return Unknown({**method, "methodId": id})
    return structs.replace(method, method_id=v2.AuthMethodId(id))
