"""An exception that belongs to one socket never leaves it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

import pytest

from antiphon.remote.websocket_server import ServerOptions, websocket_server
from antiphon.transports.base import Inbox
from antiphon.transports.guarded_socket import GuardedSocket, SocketFaults
from antiphon.transports.websocket import WebSocketTransport, connect_websocket
from tests.http.raw import Raw, read_head
from tests.http.sockets import (
    Run,
    handling,
    until,
)


class Raising(asyncio.Protocol):
    def __init__(self, where: str) -> None:
        for name in ("connection_made", "data_received", "eof_received", "connection_lost"):
            setattr(self, name, self._raise if name == where else lambda *_: None)

    def _raise(self, *_: Any) -> None:
        raise RuntimeError("a mistake of ours")


@pytest.mark.parametrize("where", ["connection_made", "data_received", "eof_received", "connection_lost"])
def test_what_a_protocol_raises_ends_its_socket_and_is_logged_once(
    run: Run, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        loop, unhandled = asyncio.get_running_loop(), list[Any]()
        loop.set_exception_handler(lambda _, context: unhandled.append(context))
        faults, sockets = SocketFaults(), set[GuardedSocket]()
        server = await loop.create_server(
            lambda: GuardedSocket(Raising(where), faults, sockets=sockets), "127.0.0.1", 0
        )
        port = server.sockets[0].getsockname()[1]
        for _ in range(20):
            async with Raw(port).socket() as (reader, writer):
                with suppress(OSError):  # it may be gone already
                    writer.write(b"x")
                    writer.write_eof()
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await reader.readexactly(1)
        await until(lambda: faults.total == 20 and not sockets)
        server.close()
        assert unhandled == []
        faults.close()

    with caplog.at_level(logging.INFO):
        run(scenario())
    assert [record.getMessage() for record in caplog.records] == [
        "socket failed: peer 127.0.0.1: RuntimeError: a mistake of ours",
        "socket failed: 19 more since the last such line",
    ]
    assert "Traceback" not in caplog.text


def test_what_a_handler_raises_ends_its_request_and_is_logged_once(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with handling() as (server, _):
            for _ in range(20):
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await Raw(server.port).ask("GET", path="/fail")
            assert (await Raw(server.port).ask("GET", path="/")).status == 200
            assert server.faults.total == 20

    with caplog.at_level(logging.INFO):
        run(scenario())
    assert len(caplog.records) == 2
    assert "Traceback" not in caplog.text


def test_a_stream_whose_socket_fails_ends_alone(run: Run) -> None:
    async def scenario() -> None:
        async with handling() as (server, handler):
            async with Raw(server.port).socket() as (one, asks), Raw(server.port).socket() as (two, also):
                asks.write(Raw(server.port).request("GET", path="/stream"))
                await read_head(one)
                first = await handler.streams.get()
                failing = next(each for each in server.sockets if each.get_protocol()._exchange is first)
                also.write(Raw(server.port).request("GET", path="/stream"))
                await read_head(two)
                second = await handler.streams.get()
                failing._socket = Broken(failing._socket)
                for stream in (first, second):
                    stream.write(b"data: 1\n\n")
                assert await two.readuntil(b"\n\n") == b"9\r\ndata: 1\n\n"
                assert await one.read() == b""
                assert (first.gone, second.gone) == (True, False)
            assert server.faults.total == 1

    run(scenario())


class Broken:
    """A transport that fails at what is asked of it most."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def write(self, data: bytes) -> None:
        raise RuntimeError("the handler is closed")

    def get_extra_info(self, *_: Any) -> None:
        raise RuntimeError("the handler is closed")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def test_a_websocket_that_cannot_be_written_to_costs_the_others_nothing(run: Run) -> None:
    async def scenario() -> None:
        links: list[WebSocketTransport] = []

        async def serve(transport: WebSocketTransport) -> None:
            links.append(transport)
            await Inbox(transport).take()

        async with websocket_server(serve, options=ServerOptions(initialize_first=False)) as server:
            clients = [await connect_websocket(f"ws://127.0.0.1:{server.port}/acp") for _ in range(3)]
            await until(lambda: len(links) == 3)
            bad: Any = links[1]._transport
            bad._socket = Broken(bad._socket)
            framing = links[0].framing
            assert framing is not None
            for link in links:
                link.send_framed(framing([b'{"n":1}']))
            for client in (clients[0], clients[2]):
                assert await Inbox(client).take() == [b'{"n":1}']
            await until(lambda: links[1].end_reason)
            assert server.faults.total == 1
            for client in clients:
                await client.aclose()

    run(scenario())
