"""connect: creates a client for an agent: a command, an address, or an agent in this process."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from antiphon.client.client import Client
from antiphon.client.logins import Launch
from antiphon.client.options import ClientOptions, ProcessOptions, ProtocolVersion
from antiphon.client.permissions import PermissionDecider
from antiphon.client.reconnect import Reconnect, Reconnector
from antiphon.client.session.session import ClientSession
from antiphon.client.session.tracker import Follower
from antiphon.client.workspace.workspace import Workspace
from antiphon.errors import LinkLost, LocalError
from antiphon.transports.address import ADDRESSES
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair

if TYPE_CHECKING:
    import ssl


class InProcessAgent(Protocol):
    """An agent in this process, such as `Agent`."""

    def serving(self) -> Any: ...

    async def serve(self, transport: Transport) -> None: ...


Target = Sequence[str] | str | InProcessAgent


@asynccontextmanager
async def connect(
    target: Target,
    *,
    version: ProtocolVersion | None = None,
    token: str | None = None,
    answers: PermissionDecider | None = None,
    workspace: Workspace | None = None,
    reconnect: Reconnect | bool = True,
    process: ProcessOptions = ProcessOptions(),
    options: ClientOptions = ClientOptions(),
    relay: Callable[[ClientSession], Follower] | None = None,
) -> AsyncIterator[Client]:
    """Connect to an agent: a command to start, an address (`ws://`, `wss://`, `http://`, `https://`), or an
    `Agent` in this process.

    version: the only ACP version to accept: 1, 2 or "v2-proposed". By default the newest that the agent
        speaks.
    token: the bearer token for an address.
    answers: decides on permission requests. By default they are rejected.
    workspace: files and terminals for a v1 agent.
    reconnect: how a client of an address reconnects when its link is lost; False: not at all.
    process: how a command is started: environment, folder, stderr.
    options: how the client presents itself, and what it asks of the agent.
    relay: makes the follower of each session, for a hub.
    """
    command = _command(target)
    if process.terminal_login and command is None:  # AUTH-14
        raise LocalError(
            f"terminal_login needs a command, which can be started again in a terminal; got {target!r}"
        )
    async with AsyncExitStack() as stack:

        async def begin() -> Client:
            transport = await _reach(target, stack, token=token, process=process, tls=options.tls)
            reconnector = None
            if _is_address(target) and reconnect is not False and relay is None:
                policy = Reconnect() if reconnect is True else reconnect
                reconnector = Reconnector(
                    transport, policy, partial(_reach_again, policy, target, token, options.tls)
                )
                transport = reconnector.transport
            stack.push_async_callback(transport.aclose)  # also if the client cannot be initialized
            client = Client(
                transport,
                version=version,
                answers=answers,
                workspace=workspace,
                options=options,
                terminal_login=process.terminal_login,
                relay=relay,
                lasting=reconnector is not None,
            )
            stack.push_async_callback(client._workspace.aclose)
            await stack.enter_async_context(client.connection)
            await client._initialize()
            if reconnector is not None:
                await stack.enter_async_context(reconnector.serving(client))
            if process.terminal_login and command is not None:
                client._launch = Launch(tuple(command), process.env, process.cwd), begin
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
    process: ProcessOptions,
    tls: ssl.SSLContext | None,
) -> Transport:
    if _is_address(target):
        return await _open(target, token, tls)
    if token is not None:
        raise LocalError(f"a token needs an address, such as `wss://` or `https://`; got {target!r}")
    if isinstance(target, str | Sequence):
        from antiphon.transports.processes.child import ChildTransport

        return await ChildTransport.spawn(
            _command(target) or [], env=process.env, cwd=process.cwd, on_stderr=process.on_stderr
        )
    await stack.enter_async_context(target.serving())
    ours, theirs = memory_pair()
    serving = asyncio.get_running_loop().create_task(target.serve(theirs))

    async def served() -> None:
        await serving

    stack.push_async_callback(served)
    return ours
