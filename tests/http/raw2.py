"""A client of HTTP/2 by hand: what goes over the socket is what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Self

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ResponseReceived, StreamReset

from tests.http.raw import DEADLINE


class Raw2:
    """One socket."""

    def __init__(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._port = port
        self._reader = reader
        self.writer = writer
        self.h2 = H2Connection(H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.send()

    @classmethod
    @asynccontextmanager
    async def at(cls, port: int) -> AsyncIterator[Self]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield cls(port, reader, writer)
        finally:
            writer.transport.abort()

    def send(self) -> None:
        self.writer.write(self.h2.data_to_send())

    def ask(
        self, method: str, *, path: str = "/acp", headers: Mapping[str, str] | None = None, end: bool = False
    ) -> int:
        """Begin a request; the number of its stream."""
        id = self.h2.get_next_available_stream_id()
        pseudo = {
            ":method": method,
            ":scheme": "http",
            ":authority": f"127.0.0.1:{self._port}",
            ":path": path,
        }
        self.h2.send_headers(id, [*pseudo.items(), *(headers or {}).items()], end_stream=end)
        self.send()
        return id

    async def answered(self) -> tuple[int | None, bool]:
        """The status of what is answered next, and whether the rest of the request is not wanted; none where
        the socket is closed instead."""
        async with asyncio.timeout(DEADLINE):
            while data := await self._reader.read(65536):
                events = self.h2.receive_data(data)
                self.send()
                for event in events:
                    if isinstance(event, ResponseReceived):
                        status = int(dict(event.headers)[":status"])  # type: ignore[arg-type, call-overload]
                        # A short answer, and that it is all, come together.
                        return status, any(isinstance(each, StreamReset) for each in events)
        return None, False
