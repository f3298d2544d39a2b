"""A socket that makes no progress in either direction ends by a deadline."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from antiphon.remote.websocket_server import ServerOptions, websocket_server
from antiphon.transports.base import Inbox
from antiphon.transports.guarded_socket import SocketBounds
from antiphon.transports.http.exchange import Limits
from antiphon.transports.websocket import WebSocketTransport, connect_websocket
from tests.http.raw import Raw, read_head
from tests.http.sockets import (
    Run,
    echo,
    handling,
    opened,
    until,
)

SHORT = SocketBounds(mark=20_000, low=5_000, stall=0.2, silence=0.4, last=0.2)


def test_a_websocket_that_reads_nothing_of_what_it_is_sent(run: Run) -> None:
    async def scenario() -> None:
        ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def serve(transport: WebSocketTransport) -> None:
            inbox = Inbox(transport)
            for _ in range(200):
                if not transport.congested:
                    transport.send(b"x" * 100_000)
                await asyncio.sleep(0)
            while await inbox.take():
                pass
            ended.set_result(transport.end_reason)

        async with websocket_server(
            serve, options=ServerOptions(initialize_first=False, socket_bounds=SHORT)
        ) as server:
            _, writer = await opened(server.port)
            assert "the peer read nothing of" in await ended
            writer.transport.abort()

    run(scenario())


@pytest.mark.parametrize("path", ["/big", "/stream"])
def test_a_client_that_reads_nothing_of_its_response(run: Run, path: str) -> None:
    async def scenario() -> None:
        async with handling(socket_bounds=SHORT) as (server, handler):
            handle = socket.socket()
            handle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            handle.connect(("127.0.0.1", server.port))
            handle.send(Raw(server.port).request("GET", path=path) * (100 if path == "/big" else 1))
            await until(lambda: server.sockets)
            if path == "/stream":
                stream = await handler.streams.get()
                while not stream.gone:
                    if not stream.congested:
                        stream.write(b"x" * 10_000)
                    await asyncio.sleep(0)
            await until(lambda: not server.sockets)
            handle.close()

    run(scenario())


def test_a_refused_client_that_does_not_close_its_end(run: Run) -> None:
    async def scenario() -> None:
        async with (
            handling(socket_bounds=SHORT, limits=Limits(head=100)) as (server, _),
            Raw(server.port).socket() as (reader, writer),
        ):
            writer.write(b"GET /" + b"x" * 200)
            assert (await read_head(reader))[0] == 431
            await until(lambda: not server.sockets)

    run(scenario())


def test_a_silent_websocket_ends_and_one_that_answers_pings_lives(run: Run) -> None:
    async def scenario() -> None:
        options: Any = {"initialize_first": False, "socket_bounds": SHORT}
        async with (
            websocket_server(echo, options=ServerOptions(ping_interval=None, **options)) as silent,
            websocket_server(echo, options=ServerOptions(ping_interval=0.05, **options)) as pinging,
        ):
            quiet = await connect_websocket(f"ws://127.0.0.1:{pinging.port}/acp", ping_interval=None)
            answering = Inbox(quiet)
            client = await connect_websocket(f"ws://127.0.0.1:{silent.port}/acp", ping_interval=None)
            for _ in range(3):  # each time as long as the deadline
                assert await Inbox(client).take() == []
                client = await connect_websocket(f"ws://127.0.0.1:{silent.port}/acp", ping_interval=None)
            quiet.send(b"{}")
            assert await answering.take() == [b"{}"]
            await quiet.aclose()
            await client.aclose()

    run(scenario())


def test_a_quiet_stream_lives_by_its_keep_alives(run: Run) -> None:
    async def scenario() -> None:
        async with (
            handling(socket_bounds=SHORT) as (server, handler),
            Raw(server.port).socket() as (reader, writer),
            Raw(server.port).socket() as (other, asks),
        ):
            writer.write(Raw(server.port).request("GET", path="/stream"))
            await read_head(reader)
            quiet = await handler.streams.get()
            asks.write(Raw(server.port).request("GET", path="/stream"))
            await read_head(other)
            ending = asyncio.ensure_future(other.read())
            while not ending.done():  # it gets none, and ends
                quiet.write(b": alive\n\n")
                await asyncio.sleep(0.05)
            assert ending.result() == b""
            assert not quiet.gone

    run(scenario())
