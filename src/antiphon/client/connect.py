"""connect: a client for an agent, wherever it is."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

from antiphon.client.answers import Decides
from antiphon.client.client import OPT_INS, Client
from antiphon.client.logins import Launch
from antiphon.client.session import ClientSession
from antiphon.client.view import Follows
from antiphon.client.workspace import Workspace
from antiphon.connection.connection import Tap
from antiphon.errors import LocalError
from antiphon.schema.version import OptIns
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
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    name: str = "antiphon",
    client_version: str = "0",
    opt_ins: OptIns = OPT_INS,
    numbered: bool = False,
    workspace: Workspace | None = None,
    terminal_login: bool = False,
    on_stderr: Callable[[str], None] | None = None,
    tap: Tap | None = None,
    relay: Callable[[ClientSession], Follows] | None = None,
) -> AsyncIterator[Client]:
    """Connect to an agent: a command to start, a `ws://` or `wss://` address, or an `Agent` in this process.

    `version` insists on ACP 1 or 2; otherwise the newest that the agent speaks is used. `answers` decides on
    permission requests, which are rejected otherwise. `silence` is how many seconds a turn may pass without a
    word. `env` is added to the environment of a command, which is started in `cwd`. With `numbered`, an agent
    that can do it numbers its updates (`session.cursor`), to be attached to after one of them. `workspace`
    offers files and terminals to an agent of v1.
    `terminal_login` says that this process has a terminal to log in in (`client.login_in_terminal`).
    `relay` makes what follows a session in its lane, for who passes everything on.
    """
    command = _command(target)
    if terminal_login and command is None:
        raise LocalError("only a command can be started again in a terminal")  # AUTH-14
    async with AsyncExitStack() as stack:

        async def begin() -> Client:
            transport = await _reach(target, stack, token=token, env=env, cwd=cwd, on_stderr=on_stderr)
            stack.push_async_callback(transport.aclose)  # also where nothing comes of it
            client = Client(
                transport,
                version=version,
                dialect=dialect,
                answers=answers,
                silence=silence,
                name=name,
                client_version=client_version,
                opt_ins=opt_ins,
                numbered=numbered,
                workspace=workspace,
                terminal_login=terminal_login,
                tap=tap,
                relay=relay,
            )
            stack.push_async_callback(client.offering.aclose)
            await stack.enter_async_context(client.connection)
            await client.initialize()
            if terminal_login and command is not None:
                client.launch = Launch(tuple(command), env or {}, cwd, begin)
            return client

        yield await begin()


def _command(target: Sequence[str] | str | Serves) -> list[str] | None:
    """What is started for a target, if it is a command."""
    if isinstance(target, str):
        return None if target.startswith(("ws://", "wss://")) else shlex.split(target)
    return list(target) if isinstance(target, Sequence) else None


async def _reach(
    target: Sequence[str] | str | Serves,
    stack: AsyncExitStack,
    *,
    token: str | None,
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
    on_stderr: Callable[[str], None] | None,
) -> Transport:
    if isinstance(target, str) and target.startswith(("ws://", "wss://")):
        from antiphon.transports.websocket import connect_websocket

        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return await connect_websocket(target, headers=headers)
    if token is not None:
        raise LocalError("a token is for a `ws://` or `wss://` address")
    if isinstance(target, str | Sequence):
        from antiphon.transports.child import ChildTransport

        return await ChildTransport.spawn(_command(target) or [], env=env, cwd=cwd, on_stderr=on_stderr)
    await stack.enter_async_context(target.serving())
    ours, theirs = memory_pair()
    serving = asyncio.get_running_loop().create_task(target.serve(theirs))

    async def served() -> None:
        await serving

    stack.push_async_callback(served)
    return ours
