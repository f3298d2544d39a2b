"""ClientRun: one start of the client, and the connections that it opens to the judge's agent."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from antiphon.conformance.client.program import ClientProgram, client_command
from antiphon.conformance.client.socket_transport import SocketTransport


class ClientRun:
    """The client's program. A connection is queued when a stand-in opens it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: asyncio.Server
        self.socket = folder / "agent"
        """Where the stand-ins of this run find the judge."""
        self.program: ClientProgram
        self.connections: asyncio.Queue[SocketTransport] = asyncio.Queue()

    @classmethod
    async def start(cls, command: Sequence[str]) -> Self:
        """Start the client. Raises `SpawnFailed`."""
        # The folder belongs to this user alone, so nobody else can connect to the socket in it.
        folder = Path(tempfile.mkdtemp(prefix="judge-"))
        self = cls(folder)
        try:
            self._server = await asyncio.get_running_loop().create_unix_server(self._accept, self.socket)
            try:
                self.program = await ClientProgram.start(client_command(command, self.socket))
            except BaseException:
                self._server.close()
                raise
        except BaseException:
            shutil.rmtree(folder)
            raise
        return self

    def _accept(self) -> asyncio.Protocol:
        transport = SocketTransport()
        return transport.protocol(lambda: self.connections.put_nowait(transport))

    async def aclose(self) -> None:
        await self.program.aclose()
        self._server.close()
        while not self.connections.empty():
            await self.connections.get_nowait().aclose()
        shutil.rmtree(self._folder, ignore_errors=True)
