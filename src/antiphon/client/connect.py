"""connect: creates a client for an agent: a command, an address, or an agent in this process."""

from __future__ import annotations

import asyncio
import os
import shlex
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Literal, Protocol, TypeGuard

from antiphon.client.client import OPT_INS, Client
from antiphon.client.link import Link
from antiphon.client.logins import Launch
from antiphon.client.permissions import PermissionDecider
from antiphon.client.reconnect import Reconnect, Reconnector
from antiphon.client.session.session import ClientSession
from antiphon.client.session.tracker import Follower
from antiphon.client.workspace.workspace import Workspace
from antiphon.connection.tap import Tap
from antiphon.errors import LinkLost, LocalError
from antiphon.schema.version import Dialect, OptIns
from antiphon.transports.address import ADDRESSES
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair


class InProcessAgent(Protocol):
    """An agent in this process, such as `Agent`."""

    def serving(self) -> Any: ...

    async def serve(self, transport: Transport) -> None: ...


Target = Sequence[str] | str | InProcessAgent


@asynccontextmanager
async def connect(
    target: Target,
    *,
    version: int | None = None,
    dialect: Dialect | Literal["v1", "v2", "v2-proposed"] | None = None,
    answers: PermissionDecider | None = None,
    silence: float | None = None,
    token: str | None = None,
    tls: ssl.SSLContext | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    name: str = "antiphon",
    client_version: str = "0",
    client_id: str | None = None,
    opt_ins: OptIns = OPT_INS,
    numbered: bool = False,
    workspace: Workspace | None = None,
    terminal_login: bool = False,
    on_stderr: Callable[[str], None] | None = None,
    tap: Tap | None = None,
    relay: Callable[[ClientSession], Follower] | None = None,
    reconnect: Reconnect | bool = True,
    on_link: Callable[[Link], None] | None = None,
) -> AsyncIterator[Client]:
    """Connect to an agent: a command to start, an address (`ws://`, `wss://`, `http://`, `https://`), or an
    `Agent` in this process.

    version: the only ACP version to accept, 1 or 2. By default the newest that the agent speaks.
    dialect: the only dialect to accept; implies the version.
    answers: decides on permission requests. By default they are rejected.
    silence: seconds without an update after which a turn ends.
    token: the bearer token for an address.
    tls: the TLS settings for an address.
    env: variables that are added to the environment of a command.
    cwd: the folder that a command is started in.
    name, client_version: how the agent and other clients see this client.
    client_id: its id for other clients. By default a new one; give the same one to be the same client later.
    opt_ins: what to ask a v1 agent for.
    numbered: ask the agent to number its updates (`session.cursor`), to attach after one of them.
    workspace: files and terminals for a v1 agent.
    terminal_login: this process has a terminal for logins (`client.login_in_terminal`).
    on_stderr: called with each line that a command writes to its stderr.
    tap: receives a copy of all frames.
    relay: makes the follower of each session, for a hub.
    reconnect: how a client of an address reconnects when its link is lost; False: not at all.
    on_link: called when the state of the link changes (`client.link`).
    """
    command = _command(target)
    if terminal_login and command is None:
        raise LocalError(
            "terminal_login needs a command, which can be started again in a terminal"
        )  # AUTH-14
    async with AsyncExitStack() as stack:

        async def begin() -> Client:
            transport = await _reach(
                target, stack, token=token, tls=tls, env=env, cwd=cwd, on_stderr=on_stderr
            )
            reconnector = None
            if _is_address(target) and reconnect is not False and relay is None:
                policy = Reconnect() if reconnect is True else reconnect
                reconnector = Reconnector(
                    transport, policy, partial(_reach_again, policy, target, token, tls)
                )
                transport = reconnector.transport
            stack.push_async_callback(transport.aclose)  # also if the client cannot be initialized
            client = Client(
                transport,
                version=version,
                dialect=dialect,
                answers=answers,
                silence=silence,
                name=name,
                client_version=client_version,
                client_id=client_id,
                opt_ins=opt_ins,
                numbered=numbered,
                workspace=workspace,
                terminal_login=terminal_login,
                tap=tap,
                relay=relay,
                lasting=reconnector is not None,
                on_link=on_link,
            )
            stack.push_async_callback(client._workspace.aclose)
            await stack.enter_async_context(client.connection)
            await client._initialize()
            if reconnector is not None:
                await stack.enter_async_context(reconnector.serving(client))
            if terminal_login and command is not None:
                client._launch = Launch(tuple(command), env or {}, cwd), begin
            return client

        yield await begin()


def _command(target: Target) -> list[str] | None:
    """The command line of a target, if it is a command."""
    if _is_address(target):
        return None
    if isinstance(target, str):
        return shlex.split(target)
    return list(target) if isinstance(target, Sequence) else None


def _is_address(target: Target) -> TypeGuard[str]:
    return isinstance(target, str) and target.startswith(ADDRESSES)


async def _open(address: str, token: str | None, tls: ssl.SSLContext | None) -> Transport:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    if address.startswith("http"):
        from antiphon.remote.http_client import connect_http

        return await connect_http(address, headers=headers, tls=tls)
    from antiphon.transports.websocket import connect_websocket

    return await connect_websocket(address, headers=headers, tls=tls)


async def _reach_again(
    policy: Reconnect, address: str, token: str | None, tls: ssl.SSLContext | None
) -> Transport:
    if policy.find is not None:
        found = policy.find()
        if found is None:
            raise LinkLost("the address of the agent is not known now")
        address, token = found
    return await _open(address, token, tls)


async def _reach(
    target: Target,
    stack: AsyncExitStack,
    *,
    token: str | None,
    tls: ssl.SSLContext | None,
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
    on_stderr: Callable[[str], None] | None,
) -> Transport:
    if _is_address(target):
        return await _open(target, token, tls)
    if token is not None:
        raise LocalError("a token needs an address, such as `wss://` or `https://`")
    if isinstance(target, str | Sequence):
        from antiphon.transports.processes.child import ChildTransport

        return await ChildTransport.spawn(_command(target) or [], env=env, cwd=cwd, on_stderr=on_stderr)
    await stack.enter_async_context(target.serving())
    ours, theirs = memory_pair()
    serving = asyncio.get_running_loop().create_task(target.serve(theirs))

    async def served() -> None:
        await serving

    stack.push_async_callback(served)
    return ours
