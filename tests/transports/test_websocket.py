"""WebSocket: what is special about it, beside the contract."""

from __future__ import annotations

import asyncio
import contextlib
import re

import pytest
import websockets
import websockets.utils
from tests.requirements.marks import requirement
from websockets.asyncio.client import connect as foreign_connect

from antiphon.errors import LinkLost
from antiphon.remote.websocket_server import ServerOptions, websocket_server
from antiphon.testing.transports import take
from antiphon.transports.base import Inbox
from antiphon.transports.websocket import WebSocketTransport, connect_websocket

DEADLINE = 20.0


async def echo(transport: WebSocketTransport) -> None:
    inbox = Inbox(transport)
    while frames := await inbox.take():
        for frame in frames:
            assert isinstance(frame, bytes)
            transport.send(frame)
        await transport.drain()


@requirement("WS-01", "WS-02")
async def test_a_foreign_client_is_served_text_frames_and_told_its_connection_id() -> None:
    async with (
        websocket_server(echo, options=ServerOptions(initialize_first=False)) as server,
        foreign_connect(f"ws://127.0.0.1:{server.port}/acp") as other,
    ):
        assert other.response is not None
        assert other.response.headers["Acp-Connection-Id"]
        assert "Sec-WebSocket-Extensions" not in other.response.headers
        await other.send(b"binary frames are ignored")
        await other.send('{"a":1}')
        await other.send(["frag", "ment", "ed"])
        assert await other.recv() == '{"a":1}'
        assert await other.recv() == "fragmented"


async def test_frames_of_one_tick_leave_in_one_write() -> None:
    writes: list[int] = []

    async def burst(transport: WebSocketTransport) -> None:
        write = transport._transport.write
        transport._transport.write = lambda data: (writes.append(len(data)), write(data))  # type: ignore[method-assign]
        for n in range(64):
            transport.send(b'{"n":%d}' % n)
        await Inbox(transport).take()

    async with websocket_server(burst, options=ServerOptions(initialize_first=False)) as server:
        client = await connect_websocket(f"ws://127.0.0.1:{server.port}/acp")
        await take(client, 64)
        assert len(writes) == 1
        await client.aclose()


async def test_a_caller_who_gives_up_as_the_handshake_succeeds_leaves_no_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = asyncio.Event()

    async def until_the_end(transport: WebSocketTransport) -> None:
        assert await Inbox(transport).take() == []
        ended.set()

    async with (
        websocket_server(until_the_end, options=ServerOptions(initialize_first=False)) as server,
        asyncio.timeout(DEADLINE),
    ):
        connecting = asyncio.create_task(connect_websocket(f"ws://127.0.0.1:{server.port}/acp"))
        accept = WebSocketTransport._open

        def accept_and_cancel(transport: WebSocketTransport) -> None:
            accept(transport)
            if not transport._serves:
                connecting.cancel()

        monkeypatch.setattr(WebSocketTransport, "_open", accept_and_cancel)
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await ended.wait()


async def test_another_path_is_not_found_and_plain_http_is_told_to_upgrade() -> None:
    async with websocket_server(echo, options=ServerOptions(initialize_first=False)) as server:
        with pytest.raises(LinkLost, match="404"):
            await connect_websocket(f"ws://127.0.0.1:{server.port}/elsewhere")
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /acp HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"426" in await reader.readline()
        writer.close()
        await writer.wait_closed()


async def test_nobody_listening_and_no_address_are_clear_errors() -> None:
    with pytest.raises(LinkLost, match="cannot reach"):
        await connect_websocket("ws://127.0.0.1:1/acp")
    with pytest.raises(LinkLost, match="expected a WebSocket address"):
        await connect_websocket("http://127.0.0.1/acp")


async def test_a_server_that_ends_tells_its_clients_with_1001_and_leaves_no_task() -> None:
    async with websocket_server(echo, options=ServerOptions(initialize_first=False)) as server:
        client = await connect_websocket(f"ws://127.0.0.1:{server.port}/acp")
    async with asyncio.timeout(DEADLINE):
        assert await Inbox(client).take() == []
    assert "1001" in client.end_reason
    assert len(asyncio.all_tasks()) == 1


async def test_a_ping_keeps_a_quiet_link_and_its_missing_answer_ends_a_dead_one() -> None:
    async def silent(transport: WebSocketTransport) -> None:
        await Inbox(transport).take()

    async with websocket_server(silent) as server:
        client = await connect_websocket(
            f"ws://127.0.0.1:{server.port}/acp", ping_interval=0.02, ping_deadline=0.2
        )
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await Inbox(client).take()  # answered pings keep it alive well past the deadline
        await client.aclose()

    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        protocol = websockets.ServerProtocol()
        protocol.receive_data(request)
        [event] = protocol.events_received()
        protocol.send_response(protocol.accept(event))  # type: ignore[arg-type]
        writer.write(b"".join(protocol.data_to_send()))
        await reader.read()
        writer.close()

    server = await asyncio.start_server(deaf, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = await connect_websocket(f"ws://127.0.0.1:{port}/acp", ping_interval=0.02, ping_deadline=0.1)
    async with asyncio.timeout(DEADLINE):
        assert await Inbox(client).take() == []
    assert "no pong" in client.end_reason
    server.close()
    await server.wait_closed()


async def test_a_close_that_is_cancelled_leaves_no_socket_open() -> None:
    ended = asyncio.Event()

    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Completes the handshake and answers no closing frame."""
        request = await reader.readuntil(b"\r\n\r\n")
        key = re.search(rb"Sec-WebSocket-Key: (\S+)", request)
        assert key is not None
        accept = websockets.utils.accept_key(key[1].decode())
        head = ("HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade")
        writer.write("\r\n".join((*head, f"Sec-WebSocket-Accept: {accept}", "", "")).encode())
        with contextlib.suppress(ConnectionResetError):
            await reader.read()
        ended.set()
        writer.close()

    async with asyncio.timeout(DEADLINE), await asyncio.start_server(deaf, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        client = await connect_websocket(f"ws://127.0.0.1:{port}/acp")
        client.start(lambda frames: None, lambda: None)
        closing = asyncio.create_task(client.aclose())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await ended.wait()
