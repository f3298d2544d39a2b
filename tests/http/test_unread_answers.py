"""While a peer reads nothing of what it was sent, the server does not read from it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from websockets.frames import Opcode

from antiphon.remote.websocket_server import ServerOptions, websocket_server
from antiphon.transports.base import Inbox
from antiphon.transports.guarded_socket import SocketBounds
from antiphon.transports.websocket import WebSocketTransport, connect_websocket
from tests.http.raw import Raw, read_head
from tests.http.sockets import (
    Run,
    echo,
    flood,
    handling,
    narrow,
    never_over,
    opened,
    until,
    written,
)

SMALL = SocketBounds(mark=20_000, low=5_000, most=100_000, stall=60.0)
ROOM = 20_000 + 300_000 + 1_000
"""The mark, and one answer that is written when there is room."""


def test_pings_of_a_client_that_reads_no_pongs(run: Run) -> None:
    async def scenario() -> None:
        async with websocket_server(
            echo, options=ServerOptions(initialize_first=False, socket_bounds=SMALL)
        ) as server:
            _, writer = await opened(server.port)
            flooding = asyncio.ensure_future(flood(writer, written(b"p" * 100, Opcode.PING) * 100))
            [link] = server.sockets
            await until(lambda: link._full)
            read = link._read_bytes
            await never_over(link.get_write_buffer_size, SMALL.mark + SMALL.slice, 0.3)
            assert link._read_bytes - read < 1_000_000, "reading goes on only as far as the kernel takes more"
            flooding.cancel()
            writer.transport.abort()

    run(scenario())


def test_messages_of_a_client_that_reads_no_answers(run: Run) -> None:
    async def scenario() -> None:
        async with websocket_server(
            echo, options=ServerOptions(initialize_first=False, socket_bounds=SMALL)
        ) as server:
            _, writer = await opened(server.port)
            flooding = asyncio.ensure_future(flood(writer, written(b"m" * 1000) * 20))
            [link] = server.sockets
            await until(lambda: link._full)
            await never_over(link.get_write_buffer_size, SMALL.mark + SMALL.most + 3000, 0.3)
            flooding.cancel()
            writer.transport.abort()

    run(scenario())


@pytest.mark.parametrize("path", ["/big", "/nowhere"])
def test_requests_of_a_client_that_reads_no_responses(run: Run, path: str) -> None:
    async def scenario() -> None:
        async with handling(socket_bounds=SMALL) as (server, _):
            _, writer = await narrow(server.port)
            request = Raw(server.port).request("GET", path=path) * 50
            flooding = asyncio.ensure_future(flood(writer, request))
            await until(lambda: server.sockets)
            [link] = server.sockets
            await until(lambda: link._full or link.is_closing())
            await never_over(link.get_write_buffer_size, ROOM, 0.3)
            assert len(link.get_protocol()._messages) <= 32
            flooding.cancel()
            writer.transport.abort()

    run(scenario())


def test_requests_behind_a_stream_wait_outside(run: Run) -> None:
    async def scenario() -> None:
        async with handling(socket_bounds=SMALL) as (server, handler):
            raw = Raw(server.port)
            _, writer = await narrow(server.port)
            writer.write(raw.request("GET", path="/stream"))
            stream = await handler.streams.get()
            flooding = asyncio.ensure_future(flood(writer, raw.request("GET", path="/") * 100))
            [link] = server.sockets
            await until(lambda: len(link.get_protocol()._messages) == 32)
            read = link._read_bytes
            await never_over(lambda: len(link.get_protocol()._messages), 32, 0.2)
            assert link._read_bytes == read, "nothing more is read"
            while not stream.congested:
                stream.write(b"x" * 10_000)
                await asyncio.sleep(0)
            assert link.get_write_buffer_size() < 2 * SMALL.mark
            flooding.cancel()
            writer.transport.abort()

    run(scenario())


def test_large_heads_behind_a_stream_wait_outside_and_are_answered_after_it(run: Run) -> None:
    async def scenario() -> None:
        async with handling() as (server, handler):
            raw = Raw(server.port)
            large = raw.request("GET", path="/", headers={f"X-{number}": "x" * 15_000 for number in range(4)})
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(raw.request("GET", path="/stream"))
            stream = await handler.streams.get()
            [link] = server.sockets
            flooding = asyncio.ensure_future(flood(writer, large * 32))
            await never_over(lambda: link._read_bytes, 1024 * 1024, 0.3)
            flooding.cancel()
            stream.end()
            await reader.readuntil(b"\r\n0\r\n\r\n")
            for _ in range(20):
                status, headers = await read_head(reader)
                assert status == 200
                await reader.readexactly(int(headers["content-length"]))
            writer.transport.abort()

    run(scenario())


@pytest.mark.parametrize("kind", ["websocket", "stream"])
def test_beyond_the_hard_bound_the_link_ends(run: Run, kind: str) -> None:
    """Somebody writes on and on, whether there is room or not."""

    async def websocket() -> None:
        served: asyncio.Queue[WebSocketTransport] = asyncio.Queue()

        async def serve(transport: WebSocketTransport) -> None:
            served.put_nowait(transport)
            await Inbox(transport).take()

        async with websocket_server(
            serve, options=ServerOptions(initialize_first=False, socket_bounds=SMALL)
        ) as server:
            _, writer = await opened(server.port)
            link = await served.get()
            while not link.end_reason:
                link.send_now(b"x" * 10_000)
                assert link._transport.get_write_buffer_size() <= SMALL.mark + SMALL.most + 20_100
                await asyncio.sleep(0)
            assert "over 100000 bytes were written to a peer that does not read" in link.end_reason
            writer.transport.abort()

    async def stream() -> None:
        async with handling(socket_bounds=SMALL) as (server, handler):
            _, writer = await narrow(server.port)
            writer.write(Raw(server.port).request("GET", path="/stream"))
            stream = await handler.streams.get()
            [link] = server.sockets
            while not stream.gone:
                stream.write(b"x" * 10_000)
                assert link.get_write_buffer_size() <= SMALL.mark + SMALL.most + 20_100
                await asyncio.sleep(0)
            writer.transport.abort()

    run(websocket() if kind == "websocket" else stream())


def test_a_large_message_is_no_reason_to_end_a_link(run: Run) -> None:
    async def scenario() -> None:
        async with websocket_server(
            echo, options=ServerOptions(initialize_first=False, socket_bounds=SMALL)
        ) as server:
            client = await connect_websocket(f"ws://127.0.0.1:{server.port}/acp")
            client.send(b"x" * 5_000_000)
            client.send(b"y")
            inbox, got = Inbox(client), list[Any]()
            while len(got) < 2:
                got += await inbox.take()
            assert [len(frame) for frame in got] == [5_000_000, 1]
            await client.aclose()

    run(scenario())
