"""connect: a client for an agent, wherever it is."""

from __future__ import annotations

import asyncio
import os
import shlex
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Protocol, TypeGuard

from antiphon.client.answers import Decides
from antiphon.client.client import OPT_INS, Client
from antiphon.client.links import Link
from antiphon.client.logins import Launch
from antiphon.client.reconnecting import Reconnect, Reconnecting
from antiphon.client.session import ClientSession
from antiphon.client.view import Follows
from antiphon.client.workspace import Workspace
from antiphon.connection.tap import Tap
from antiphon.errors import LinkLost, LocalError
from antiphon.schema.version import OptIns
from antiphon.transports.address import ADDRESSES
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair


class Serves(Protocol):
    """An agent in this process."""

    def serving(self) -> Any: ...

    async def serve(self, transport: Transport) -> None: ...


@asynccontextmanager
async def connect(
    target: Sequence[str] | str | Serves,
    *,
    version: int | None = None,
    dialect: str | None = None,
    answers: Decides | None = None,
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
    relay: Callable[[ClientSession], Follows] | None = None,
    reconnect: Reconnect | bool = True,
    on_link: Callable[[Link], None] | None = None,
) -> AsyncIterator[Client]:
    """Connect to an agent: a command to start, an address (`ws://`, `wss://`, `http://`, `https://`), or an
    `Agent` in this process.

    `version` insists on ACP 1 or 2; otherwise the newest that the agent speaks is used. `answers` decides on
    permission requests, which are rejected otherwise. `token` is shown to an address, and `tls` says whose
    certificates count there. `silence` is how many seconds a turn may pass without a
    word. `env` is added to the environment of a command, which is started in `cwd`. With `numbered`, an agent
    that can do it numbers its updates (`session.cursor`), to be attached to after one of them. `workspace`
    offers files and terminals to an agent of v1.
    `terminal_login` says that this process has a terminal to log in in (`client.login_in_terminal`).
    `name` and `client_id` are what the other clients of a session see of this one; the id is made up unless
    it is given, by who wants to be the same one in another process.
    `relay` makes what follows a session in its lane, for who passes everything on.
    A client of an address comes back by itself when its link is lost, and goes on with its sessions;
    `reconnect` says how, or `False` that it does not. `on_link` is told of it (`client.link`).
    """
    command = _command(target)
    if terminal_login and command is None:
        raise LocalError("only a command can be started again in a terminal")  # AUTH-14
    async with AsyncExitStack() as stack:

        async def begin() -> Client:
            transport = await _reach(
                target, stack, token=token, tls=tls, env=env, cwd=cwd, on_stderr=on_stderr
            )
            reconnecting = None
            if _is_address(target) and reconnect is not False and relay is None:
                policy = Reconnect() if reconnect is True else reconnect
                reconnecting = Reconnecting(
                    transport, policy, partial(_reach_again, policy, target, token, tls)
                )
                transport = reconnecting.transport
            stack.push_async_callback(transport.aclose)  # also where nothing comes of it
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
                lasting=reconnecting is not None,
                on_link=on_link,
            )
            stack.push_async_callback(client.offering.aclose)
            await stack.enter_async_context(client.connection)
            await client.initialize()
            if reconnecting is not None:
                await stack.enter_async_context(reconnecting.serving(client))
            if terminal_login and command is not None:
                client.launch = Launch(tuple(command), env or {}, cwd, begin)
            return client

        yield await begin()


def _command(target: Sequence[str] | str | Serves) -> list[str] | None:
    """What is started for a target, if it is a command."""
    if _is_address(target):
        return None
    if isinstance(target, str):
        return shlex.split(target)
    return list(target) if isinstance(target, Sequence) else None


def _is_address(target: Sequence[str] | str | Serves) -> TypeGuard[str]:
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
            raise LinkLost("there is nobody to be reached")
        address, token = found
    return await _open(address, token, tls)


async def _reach(
    target: Sequence[str] | str | Serves,
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
        raise LocalError("a token is for an address, such as `wss://` or `https://`")
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
