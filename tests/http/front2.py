"""A tiny reverse proxy: HTTP/2 in front of a server of HTTP/1.1. Each stream becomes a request.

It shows the client's side of HTTP/2 where no real proxy is installed; the proxy tests have real ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset, WindowUpdated
from h2.exceptions import ProtocolError

DROPPED = frozenset({"connection", "keep-alive", "transfer-encoding", "upgrade", "host"})


class Front(asyncio.Protocol):
    def __init__(self, client: httpx.AsyncClient, behind: str) -> None:
        self._client = client
        self._behind = behind
        self._h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self._asked: dict[int, tuple[dict[str, str], bytearray]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._room = asyncio.Event()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._h2.initiate_connection()
        self._send()

    def data_received(self, data: bytes) -> None:
        for event in self._h2.receive_data(data):
            if isinstance(event, RequestReceived):
                self._asked[event.stream_id] = dict(event.headers), bytearray()  # type: ignore[arg-type]
            elif isinstance(event, DataReceived):
                self._asked[event.stream_id][1].extend(event.data)
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamEnded):
                id = event.stream_id
                self._tasks[id] = asyncio.ensure_future(self._forward(id, *self._asked.pop(id)))
            elif isinstance(event, StreamReset):
                if event.stream_id in self._tasks:
                    self._tasks.pop(event.stream_id).cancel()
            elif isinstance(event, WindowUpdated):
                self._room.set()
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        for task in self._tasks.values():
            task.cancel()

    async def _forward(self, id: int, headers: dict[str, str], body: bytearray) -> None:
        passed = {name: value for name, value in headers.items() if name[0] != ":" and name not in DROPPED}
        passed["host"] = headers[":authority"]
        url = f"{self._behind}{headers[':path']}"
        with contextlib.suppress(ProtocolError, httpx.HTTPError):
            async with self._client.stream(
                headers[":method"],
                url,
                headers={name.encode(): value.encode() for name, value in passed.items()},
                content=bytes(body),
            ) as answer:
                told = [(name, value) for name, value in answer.headers.items() if name not in DROPPED]
                self._h2.send_headers(id, [(":status", str(answer.status_code)), *told])
                self._send()
                async for part in answer.aiter_raw():
                    await self._write(id, part)
                self._h2.end_stream(id)
                self._send()

    async def _write(self, id: int, data: bytes) -> None:
        while data:
            size = min(self._h2.local_flow_control_window(id), self._h2.max_outbound_frame_size)
            if size <= 0:
                self._room.clear()
                await self._room.wait()
                continue
            self._h2.send_data(id, data[:size])
            data = data[size:]
            self._send()

    def _send(self) -> None:
        if data := self._h2.data_to_send():
            self._transport.write(data)


@asynccontextmanager
async def front2(port: int, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port of a front before the server at a port of this machine."""
    if tls is not None:
        tls.set_alpn_protocols(["h2"])
    fronts: list[Front] = []
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(trust_env=False, timeout=None, limits=limits) as client:

        def make() -> Front:
            fronts.append(Front(client, f"http://127.0.0.1:{port}"))
            return fronts[-1]

        server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0, ssl=tls)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for front in fronts:
                front.connection_lost(None)
            tasks = [task for front in fronts for task in front._tasks.values()]
            await asyncio.gather(*tasks, return_exceptions=True)
