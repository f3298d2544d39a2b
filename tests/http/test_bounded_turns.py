"""One turn of the event loop handles a bounded amount of one peer's input."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from websockets.frames import Opcode

from antiphon.remote.websocket_server import ServerOptions, websocket_server
from antiphon.transports.base import Inbox
from antiphon.transports.guarded_socket import SocketBounds
from antiphon.transports.websocket import WebSocketTransport, connect_websocket
from tests.http.raw import Raw, read_head
from tests.http.sockets import (
    KEY,
    UPGRADE,
    Run,
    echo,
    handling,
    opened,
    written,
)


class Trips:
    """Round trips of a neighbour, while something else goes on."""

    def __init__(self, trip: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self._trip = trip
        self.count = 0

    async def run(self) -> None:
        while True:
            await self._trip()
            self.count += 1


FRAMES = 200_000
CHUNKS = 1_000_000
"""Bytes of a burst. Up to 256 KiB are read at once: handled as they come, a neighbour has few turns."""
PATIENT = SocketBounds(mark=1 << 30, low=1 << 20)
"""Answers are no reason to stop: what is tried here is the input."""


@pytest.mark.parametrize(
    "frame",
    [written(b""), written(b"{}"), written(b"", Opcode.PING), written(b"", Opcode.BINARY)],
    ids=["empty", "text", "ping", "binary"],
)
def test_tiny_frames_let_others_be_served(run: Run, frame: bytes) -> None:
    async def scenario() -> None:
        async with websocket_server(
            echo, options=ServerOptions(initialize_first=False, socket_bounds=PATIENT)
        ) as server:
            client = await connect_websocket(f"ws://127.0.0.1:{server.port}/acp")
            inbox = Inbox(client)

            async def trip() -> None:
                client.send_now(b"{}")
                assert await inbox.take()

            trips = Trips(trip)
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 26)
            writer.write(Raw(server.port).request("GET", headers={**UPGRADE, **KEY, "Accept": None}))
            assert (await read_head(reader))[0] == 101
            writer.write(frame * (FRAMES // len(frame)) + written(b'"the end"'))
            neighbour = asyncio.ensure_future(trips.run())
            await reader.readuntil(b'"the end"')
            neighbour.cancel()
            assert trips.count > 5
            writer.transport.abort()
            await client.aclose()

    run(scenario())


def test_tiny_chunks_of_a_body_let_others_be_served(run: Run) -> None:
    async def scenario() -> None:
        async with handling() as (server, _), Raw(server.port).socket() as (reader, writer):
            raw = Raw(server.port)
            other, asks = await asyncio.open_connection("127.0.0.1", server.port)

            async def trip() -> None:
                asks.write(raw.request("GET", path="/"))
                _, told = await read_head(other)
                await other.readexactly(int(told["content-length"]))

            trips = Trips(trip)
            chunked = {"Content-Length": None, "Transfer-Encoding": "chunked"}
            head = raw.request("POST", path="/", headers=chunked)
            writer.write(head + b"1\r\nx\r\n" * (CHUNKS // 6) + b"0\r\n\r\n")
            neighbour = asyncio.ensure_future(trips.run())
            assert (await read_head(reader))[0] == 200
            neighbour.cancel()
            assert trips.count > 5
            asks.transport.abort()

    run(scenario())


def test_a_server_that_sends_tiny_frames_does_not_hold_up_its_client(run: Run) -> None:
    """An agent at a `ws://` address may be hostile, too."""

    async def scenario() -> None:
        async def serve(transport: WebSocketTransport) -> None:
            transport.send_framed(b"\x81\x00" * 100_000)
            await Inbox(transport).take()

        turns: list[int] = []
        async with websocket_server(serve, options=ServerOptions(initialize_first=False)) as server:
            client = await connect_websocket(f"ws://127.0.0.1:{server.port}/acp")
            inbox, got = Inbox(client, high=1 << 30), 0
            while got < 100_000:
                turns.append(len(await inbox.take()))
                got += turns[-1]
                await asyncio.sleep(0)
            assert max(turns) < 50_000
            await client.aclose()

    run(scenario())


def test_what_came_before_the_end_is_handed_on_before_the_end(run: Run) -> None:
    async def scenario() -> None:
        taken: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()

        async def serve(transport: WebSocketTransport) -> None:
            inbox, got = Inbox(transport), list[Any]()
            while frames := await inbox.take():
                got += frames
            taken.set_result(got)

        async with websocket_server(serve, options=ServerOptions(initialize_first=False)) as server:
            _, writer = await opened(server.port)
            writer.write(written(b"{}") * 20_000)
            writer.write_eof()
            assert len(await taken) == 20_000
            writer.transport.abort()

    run(scenario())
