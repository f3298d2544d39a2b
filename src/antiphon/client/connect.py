"""connect: creates a client for an agent: a command, an address, or an agent in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from antiphon.client.client import Client
from antiphon.client.logins import Launch
from antiphon.client.options import ClientOptions, ProcessOptions, ProtocolVersion
from antiphon.client.permissions import PermissionDecider
from antiphon.client.reconnect import Reconnect, Reconnector
from antiphon.client.target import Target, command_line, is_address, open_address, open_target
from antiphon.client.workspace.workspace import Workspace
from antiphon.errors import LinkLost, LocalError
from antiphon.transports.base import Transport

if TYPE_CHECKING:
    import ssl


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
    """
    command = command_line(target)
    if process.terminal_login and command is None:  # AUTH-14
        raise LocalError(
            f"terminal_login needs a command, which can be started again in a terminal; got {target!r}"
        )
    async with AsyncExitStack() as stack:

        async def begin() -> Client:
            transport = await open_target(target, stack, token=token, process=process, tls=options.tls)
            reconnector = None
            if is_address(target) and reconnect is not False:
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


async def _reach_again(
    policy: Reconnect, address: str, token: str | None, tls: ssl.SSLContext | None
) -> Transport:
    if policy.find is not None:
        found = policy.find()
        if found is None:
            raise LinkLost("the address of the agent is not known now")
        address, token = found
    return await open_address(address, token, tls)
