"""Logging in at an agent: by its own means, or in a terminal; and knowing who one is there."""

from __future__ import annotations

import asyncio
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from antiphon.bridge.authentication import methods_v2, status_v2
from antiphon.client.abilities import Abilities
from antiphon.connection import Connection
from antiphon.errors import LocalError, LoginFailed, SpawnFailed
from antiphon.schema import v1, v2
from antiphon.schema.version import V1, Agreement
from antiphon.transports.processes.environment import child_environment
from antiphon.transports.processes.groups import die_with_us

if TYPE_CHECKING:
    from antiphon.client.client import Client


class Launch(Struct, frozen=True):
    """How the agent was started, and how to start it again."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | os.PathLike[str] | None
    again: Callable[[], Awaitable[Client]]
    """Starts it anew: a client that is initialized, and lives as long as the first one would have."""


class Logins(ABC):
    connection: Connection
    auth_methods: Sequence[v2.AuthMethod] = ()
    """The ways to log in that the agent offers; of a type that is not known, as they are."""
    launch: Launch | None = None
    on_auth_status: Callable[[v2.AuthStatusResponse], None] | None = None
    """Called when the agent tells by itself that the status is another one. What it says of accounts is for
    people to see, and identifies nobody (AUTH-24)."""

    @property
    @abstractmethod
    def agreement(self) -> Agreement: ...

    @property
    @abstractmethod
    def abilities(self) -> Abilities: ...

    async def login(self, method_id: str, *, meta: dict[str, Any] | None = None) -> None:
        """Log in by one of the agent's `auth_methods`. Raises `CallFailed` where it refuses."""
        method = self._method(method_id)
        if isinstance(method, v2.AuthMethodTerminal):  # AUTH-08
            raise LocalError(f"{method_id!r} is for a terminal: `login_in_terminal`")
        if self.agreement.version == V1:
            old = v1.AuthenticateRequest(method_id=v1.AuthMethodId(method_id), meta=meta)
            await self.connection.call("authenticate", old)
        else:
            new = v2.LoginAuthRequest(method_id=v2.AuthMethodId(method_id), meta=meta)
            await self.connection.call("auth/login", new)

    async def logout(self) -> None:
        """Log out. Sessions that are open may fail from here on, until the next login (AUTH-22)."""
        if not self.abilities.logout:
            raise LocalError("this agent offers no logout")  # AUTH-10, AUTH-11
        await self.connection.call("logout" if self.agreement.version == V1 else "auth/logout")

    async def auth_status(self) -> v2.AuthStatusResponse:
        """Who this connection is at the agent. Act on its `state` alone."""
        if not self.abilities.auth_status:
            raise LocalError("this agent does not tell who is logged in")
        return status_v2(await self.connection.call("auth/status"))

    async def login_in_terminal(self, method_id: str) -> Client:
        """Start the agent a second time, in this terminal and with what the method adds, and wait for it to
        exit with 0; then connect anew: this client ends, and the one that is returned takes its place.
        Raises `LoginFailed` where it exits otherwise; this client then goes on (AUTH-15)."""
        method = self._method(method_id)
        if not isinstance(method, v2.AuthMethodTerminal):
            raise LocalError(f"{method_id!r} is for no terminal: `login`")
        if self.launch is None:
            raise LocalError("only an agent that was started here, with `terminal_login`, can be")
        added = {variable.name: variable.value for variable in method.env}
        command = [*self.launch.command, *method.args]
        code = await _run(command, env={**self.launch.env, **added}, cwd=self.launch.cwd)
        if code != 0:
            raise LoginFailed(f"the login in the terminal ended with {code}")
        await self.connection.aclose()
        return await self.launch.again()

    def _method(self, method_id: str) -> v2.AuthMethod:
        for method in self.auth_methods:
            known = method.get("methodId") if isinstance(method, dict) else method.method_id
            if known == method_id:
                return method
        raise LocalError(f"this agent offers no login {method_id!r}")  # AUTH-08, AUTH-10

    def _take_methods(self, result: v1.InitializeResponse | v2.InitializeResponse) -> None:
        if isinstance(result, v1.InitializeResponse):
            self.auth_methods = methods_v2(result.auth_methods)
        else:
            self.auth_methods = result.auth_methods

    def _auth_status_updated(self, params: Any) -> None:
        if self.on_auth_status is not None:
            self.on_auth_status(status_v2(params))


async def _run(command: Sequence[str], *, env: Mapping[str, str], cwd: str | os.PathLike[str] | None) -> int:
    """Run something in our own terminal, and never leave it behind."""
    try:
        with warnings.catch_warnings():
            # Forking beside threads is safe here: the child calls prctl and nothing else.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = await asyncio.create_subprocess_exec(
                *command, env=child_environment(env), cwd=cwd, preexec_fn=die_with_us()
            )
    except OSError as error:
        raise SpawnFailed(f"cannot start {command[0]!r}: {error.strerror or error}") from error
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
