"""A socket of a stand-in as a transport, one frame per line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from antiphon.jsonrpc.lines import DEFAULT_BOUND
from antiphon.transports.pipes import LineReader, LineWriter, PipeTransport


class SocketTransport(PipeTransport):
    """The judge's end of one connection."""

    def __init__(self) -> None:
        super().__init__(bound=DEFAULT_BOUND)

    def protocol(self, connected: Callable[[], None]) -> asyncio.Protocol:
        """Return the protocol for the server of the socket. `connected` is called once it is connected."""
        return _Duplex(self._reader, self._writer, connected)


class _Duplex(asyncio.Protocol):
    """Hands the events of a socket to a reader and a writer."""

    def __init__(self, reader: LineReader, writer: LineWriter, connected: Callable[[], None]) -> None:
        self._reader = reader
        self._writer = writer
        self._connected = connected

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._reader.connection_made(transport)
        self._writer.connection_made(transport)
        self._connected()

    def data_received(self, data: bytes) -> None:
        self._reader.data_received(data)

    def pause_writing(self) -> None:
        self._writer.pause_writing()

    def resume_writing(self) -> None:
        self._writer.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._reader.connection_lost(error)
        self._writer.connection_lost(error)
