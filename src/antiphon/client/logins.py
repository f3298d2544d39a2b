"""Logins: how a client logs in at its agent, by request or in a terminal."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from antiphon.bridge.authentication import status_v2
from antiphon.client.protocol.agent_connection import AgentConnection
from antiphon.errors import LocalError, LoginFailed, SpawnFailed
from antiphon.schema import v1, v2
from antiphon.transports.processes.environment import child_environment
from antiphon.transports.processes.groups import die_with_us


class Launch(Struct, frozen=True):
    """How the agent process was started."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | os.PathLike[str] | None


class Logins:
    def __init__(self, agent: AgentConnection[Any]) -> None:
        self._agent = agent

    async def login(self, method_id: str, meta: dict[str, Any] | None) -> None:
        method = self._find(method_id)
        if isinstance(method, v2.AuthMethodTerminal):  # AUTH-08
            raise LocalError(f"the login {method_id!r} needs a terminal: use `login_in_terminal`")
        if self._agent.speaks_v1:
            old = v1.AuthenticateRequest(method_id=v1.AuthMethodId(method_id), meta=meta)
            await self._agent.connection.call("authenticate", old)
        else:
            new = v2.LoginAuthRequest(method_id=v2.AuthMethodId(method_id), meta=meta)
            await self._agent.connection.call("auth/login", new)

    async def logout(self) -> None:
        if not self._agent.abilities.logout:
            raise LocalError("this agent offers no logout")  # AUTH-10, AUTH-11
        await self._agent.connection.call("logout" if self._agent.speaks_v1 else "auth/logout")

    async def status(self) -> v2.AuthStatusResponse:
        if not self._agent.abilities.auth_status:
            raise LocalError("this agent does not report the login status")
        return status_v2(await self._agent.connection.call("auth/status"))

    async def run_in_terminal(self, method_id: str, launch: Launch | None) -> None:
        """Run the agent with the arguments of a login method in this terminal. Raises `LoginFailed` unless it
        exits with 0 (AUTH-15)."""
        method = self._find(method_id)
        if not isinstance(method, v2.AuthMethodTerminal):
            raise LocalError(f"the login {method_id!r} needs no terminal: use `login`")
        if launch is None:
            raise LocalError(
                "a terminal login needs an agent that `connect` started with "
                "`ProcessOptions(terminal_login=True)`"
            )
        added = {variable.name: variable.value for variable in method.env}
        code = await _run([*launch.command, *method.args], env={**launch.env, **added}, cwd=launch.cwd)
        if code != 0:
            raise LoginFailed(f"the login in the terminal ended with exit code {code}")

    def _find(self, method_id: str) -> v2.AuthMethod:
        for method in self._agent.auth_methods:
            known = method.get("methodId") if isinstance(method, dict) else method.method_id
            if known == method_id:
                return method
        raise LocalError(f"this agent offers no login {method_id!r}")  # AUTH-08, AUTH-10


async def _run(command: Sequence[str], *, env: Mapping[str, str], cwd: str | os.PathLike[str] | None) -> int:
    """Run a command in this terminal, and end it if the caller is cancelled."""
    try:
        with warnings.catch_warnings():
            # A fork in a process with threads is safe here: the child calls prctl and nothing else.
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
