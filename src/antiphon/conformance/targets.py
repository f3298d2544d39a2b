"""Targets: how the judge reaches the peer it judges. Every link is a new connection."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from antiphon.transports.base import ADDRESSES, Transport
from antiphon.transports.processes.child import ChildTransport
from antiphon.transports.websocket import connect_websocket


class Target(Protocol):
    """A peer that accepts connections from the judge."""

    @property
    def name(self) -> str:
        """The command line or the address, for the report."""

    @property
    def stdio(self) -> bool:
        """Whether each connection is a process of its own with one frame per line."""

    async def open(self) -> Transport:
        """Make a new connection. Raises `SpawnFailed` or `LinkLost`."""


class JudgedProcess(ChildTransport):
    """A peer that is a process: the judge can end its input and still read what it writes."""

    async def end_input(self) -> None:
        """Close the peer's stdin."""
        await self._writer.aclose(deadline=self._grace)


class CommandTarget:
    """A command that speaks ACP on stdin and stdout. Each connection starts it again."""

    stdio = True

    def __init__(
        self, command: Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        self._command = command
        self._cwd = cwd
        self._env = env

    @property
    def name(self) -> str:
        return shlex.join(self._command)

    async def open(self) -> Transport:
        return await JudgedProcess.spawn(self._command, cwd=self._cwd, env=self._env)


class AddressTarget:
    """A server at a WebSocket or HTTP address."""

    stdio = False

    def __init__(self, address: str, *, token: str = "", headers: Mapping[str, str] | None = None) -> None:
        self.name = address
        self._headers = dict(headers or {})
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    async def open(self) -> Transport:
        if self.name.startswith("http"):
            from antiphon.conformance.http_transport import connect_http  # httpx is slow to import

            return await connect_http(self.name, headers=self._headers)
        return await connect_websocket(self.name, headers=self._headers)


class FunctionTarget:
    """A function that returns a connected transport: for peers in the same process."""

    def __init__(self, open: Callable[[], Transport], *, name: str = "in memory") -> None:
        self.name = name
        self.stdio = False
        self._open = open

    async def open(self) -> Transport:
        return self._open()


def target_of(peer: Sequence[str] | str | Target, *, token: str = "") -> Target:
    """Return the target for a command, an address or a target. Raises `ValueError` for other text.

    `token` is sent to an address.
    """
    if isinstance(peer, str):
        if not peer.startswith(ADDRESSES):
            raise ValueError(
                f"expected an address that begins with one of {', '.join(ADDRESSES)}, got {peer!r}"
            )
        return AddressTarget(peer, token=token)
    if isinstance(peer, Sequence):
        return CommandTarget(peer)
    return peer
