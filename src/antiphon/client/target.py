"""Target: where an agent is: a command, an address, or an agent in this process."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from antiphon.client.options import ProcessOptions
from antiphon.errors import LocalError
from antiphon.transports.base import ADDRESSES, Transport
from antiphon.transports.memory import memory_pair

if TYPE_CHECKING:
    import ssl


class InProcessAgent(Protocol):
    """An agent in this process, such as `Agent`."""

    def serving(self) -> Any: ...

    async def serve(self, transport: Transport) -> None: ...


Target = Sequence[str] | str | InProcessAgent


def command_line(target: Target) -> list[str] | None:
    """The command line of a target, if it is a command."""
    if is_address(target):
        return None
    if isinstance(target, str):
        return shlex.split(target)
    return list(target) if isinstance(target, Sequence) else None


def is_address(target: Target) -> TypeGuard[str]:
    return isinstance(target, str) and target.startswith(ADDRESSES)


async def open_address(address: str, token: str | None, tls: ssl.SSLContext | None) -> Transport:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    if address.startswith("http"):
        from antiphon.remote.http_client import connect_http

        return await connect_http(address, headers=headers, tls=tls)
    from antiphon.transports.websocket import connect_websocket

    return await connect_websocket(address, headers=headers, tls=tls)


async def open_target(
    target: Target,
    stack: AsyncExitStack,
    *,
    process: ProcessOptions,
    token: str | None = None,
    tls: ssl.SSLContext | None = None,
) -> Transport:
    """Open a transport to an agent. What the agent needs while it runs in this process is left to `stack`."""
    if is_address(target):
        return await open_address(target, token, tls)
    if token is not None:
        raise LocalError(f"a token needs an address, such as `wss://` or `https://`; got {target!r}")
    if isinstance(target, str | Sequence):
        from antiphon.transports.processes.child import ChildTransport

        return await ChildTransport.spawn(
            command_line(target) or [], env=process.env, cwd=process.cwd, on_stderr=process.on_stderr
        )
    await stack.enter_async_context(target.serving())
    ours, theirs = memory_pair()
    serving = asyncio.get_running_loop().create_task(target.serve(theirs))

    async def served() -> None:
        await serving

    stack.push_async_callback(served)
    return ours
