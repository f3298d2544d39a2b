"""Four rules for every socket, and attempts to break each of them: over WebSocket, over HTTP, on a stream.

Each attempt runs on asyncio's event loop and on uvloop.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from websockets.frames import Frame, Opcode

from antiphon.remote.http_server import http_server
from antiphon.remote.websocket_server import websocket_server
from antiphon.transports.base import Inbox
from antiphon.transports.guarded_socket import GuardedSocket, SocketBounds, SocketFaults
from antiphon.transports.http.exchange import Exchange, Head, Limits, Reply, plain
from antiphon.transports.websocket import WebSocketTransport, connect_websocket
from tests.http.raw import DEADLINE, Raw, read_head

UPGRADE = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
KEY = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    factory = None if request.param == "asyncio" else pytest.importorskip("uvloop").new_event_loop

    def run(scenario: Coroutine[Any, Any, None]) -> None:
        async def within() -> None:
            async with asyncio.timeout(DEADLINE):
                await scenario

        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(within())

    return run


class Handling:
    """`/big`: a long answer. `/fail`: an exception. `/stream`: an answer without end. Else: a short one."""

    def __init__(self) -> None:
        self.streams: asyncio.Queue[Exchange] = asyncio.Queue()

    def admit(self, head: Head) -> Reply | None:
        return None

    async def answer(self, exchange: Exchange, body: bytes) -> None:
        if exchange.head.path == "/fail":
            raise RuntimeError("a mistake of ours")
        if exchange.head.path == "/stream":
            exchange.begin({"Content-Type": "text/event-stream"})
            self.streams.put_nowait(exchange)
        elif exchange.head.path == "/big":
            exchange.reply(Reply(200, b"x" * 300_000))
        else:
            exchange.reply(plain(200, str(len(body))))

    def refused(self, head: Head, status: int) -> None: ...


@asynccontextmanager
async def handling(**options: Any) -> AsyncIterator[tuple[Any, Handling]]:
    async def serve(transport: Any) -> None:
        await Inbox(transport).take()

    handler = Handling()
    paths = dict.fromkeys(("/", "/big", "/fail", "/stream"), handler)
    async with http_server(serve, routes=paths, **options) as server:
        yield server, handler


async def echo(transport: WebSocketTransport) -> None:
    inbox = Inbox(transport)
    while frames := await inbox.take():
        for frame in frames:
            assert isinstance(frame, bytes)
            transport.send_now(frame)


async def narrow(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A socket of a client with little room for what it does not read."""
    handle = socket.socket()
    handle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    handle.setblocking(False)
    await asyncio.get_running_loop().sock_connect(handle, ("127.0.0.1", port))
    return await asyncio.open_connection(sock=handle, limit=4096)


async def opened(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A WebSocket over such a socket."""
    reader, writer = await narrow(port)
    writer.write(Raw(port).request("GET", headers={**UPGRADE, **KEY, "Accept": None}))
    assert (await read_head(reader))[0] == 101
    return reader, writer


def written(payload: bytes, opcode: Opcode = Opcode.TEXT, *, fin: bool = True) -> bytes:
    return Frame(opcode, payload, fin).serialize(mask=True)


async def flood(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Send for ever, as far as the other side reads it; the end of the link is none of an error."""
    try:
        while True:
            writer.write(data)
            await writer.drain()
    except OSError:
        pass


async def until(what: Callable[[], Any]) -> None:
    while not what():  # noqa: ASYNC110  # a state of another part of the process
        await asyncio.sleep(0.005)


async def never_over(what: Callable[[], int], most: int, seconds: float) -> int:
    """Look at a number for some time; the largest that it was."""
    loop, seen = asyncio.get_running_loop(), 0
    until = loop.time() + seconds
    while loop.time() < until:
        seen = max(seen, what())
        assert seen <= most
        await asyncio.sleep(0.005)
    return seen


# --- 1: an exception that belongs to one socket never leaves it --------------------------------------------


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

        async with websocket_server(serve, opens=False) as server:
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


# --- 2: while what we owe a peer is above its mark, we do not read from it ----------------------------------

SMALL = SocketBounds(mark=20_000, low=5_000, most=100_000, stall=60.0)
ROOM = 20_000 + 300_000 + 1_000
"""The mark, and one answer that is written when there is room."""


def test_pings_of_a_client_that_reads_no_pongs(run: Run) -> None:
    async def scenario() -> None:
        async with websocket_server(echo, opens=False, socket_bounds=SMALL) as server:
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
        async with websocket_server(echo, opens=False, socket_bounds=SMALL) as server:
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


@pytest.mark.parametrize("kind", ["websocket", "stream"])
def test_beyond_the_hard_bound_the_link_ends(run: Run, kind: str) -> None:
    """Somebody writes on and on, whether there is room or not."""

    async def websocket() -> None:
        served: asyncio.Queue[WebSocketTransport] = asyncio.Queue()

        async def serve(transport: WebSocketTransport) -> None:
            served.put_nowait(transport)
            await Inbox(transport).take()

        async with websocket_server(serve, opens=False, socket_bounds=SMALL) as server:
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
        async with websocket_server(echo, opens=False, socket_bounds=SMALL) as server:
            client = await connect_websocket(f"ws://127.0.0.1:{server.port}/acp")
            client.send(b"x" * 5_000_000)
            client.send(b"y")
            inbox, got = Inbox(client), list[Any]()
            while len(got) < 2:
                got += await inbox.take()
            assert [len(frame) for frame in got] == [5_000_000, 1]
            await client.aclose()

    run(scenario())


# --- 3: one turn of the loop handles a bounded amount of one peer's input -------------------------------


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
        async with websocket_server(echo, opens=False, socket_bounds=PATIENT) as server:
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
        async with websocket_server(serve, opens=False) as server:
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

        async with websocket_server(serve, opens=False) as server:
            _, writer = await opened(server.port)
            writer.write(written(b"{}") * 20_000)
            writer.write_eof()
            assert len(await taken) == 20_000
            writer.transport.abort()

    run(scenario())


# --- 4: a socket that makes no progress in either direction ends by a deadline ------------------------------

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

        async with websocket_server(serve, opens=False, socket_bounds=SHORT) as server:
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
        options: Any = {"opens": False, "socket_bounds": SHORT}
        async with (
            websocket_server(echo, ping_interval=None, **options) as silent,
            websocket_server(echo, ping_interval=0.05, **options) as pinging,
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


# --- input that is begun and not complete is bounded for each token -------------------------------------


def test_bodies_that_are_never_complete_are_bounded_for_each_token(run: Run) -> None:
    def check(head: Head) -> Any:
        return head.headers.get("Authorization", "nobody")

    async def scenario() -> None:
        limits = Limits(body=60_000, held=100_000)
        async with handling(check=check, limits=limits) as (server, _):
            raws = [Raw(server.port, "one") for _ in range(5)]
            statuses: list[int] = []
            half = raws[0].request("POST", b" " * 50_000, path="/")[:-10_000]
            sockets = [await asyncio.open_connection("127.0.0.1", server.port) for _ in raws]
            for _, writer in sockets:
                writer.write(half)
            answers = [asyncio.ensure_future(read_head(reader)) for reader, _ in sockets]
            for answer in asyncio.as_completed(answers):
                statuses.append((await answer)[0])
                if len(statuses) == 3:
                    break
            assert statuses == [429, 429, 429]
            whole = await Raw(server.port, "other").ask("POST", b" " * 50_000, path="/")
            assert whole.status == 200, "another token has its own"
            for answer, (_, writer) in zip(answers, sockets, strict=True):
                answer.cancel()
                writer.transport.abort()
            await asyncio.gather(*answers, return_exceptions=True)
            await until(lambda: not server.sockets)
            assert (await raws[0].ask("POST", b" " * 50_000, path="/")).status == 200

    run(scenario())


def test_messages_that_are_never_complete_are_bounded_for_each_token(run: Run) -> None:
    async def scenario() -> None:
        ended: list[str] = []

        async def serve(transport: WebSocketTransport) -> None:
            while await Inbox(transport).take():
                pass
            ended.append(transport.end_reason)

        limits = Limits(held=100_000)
        async with websocket_server(serve, opens=False, limits=limits) as server:
            links = [await opened(server.port) for _ in range(5)]
            for number, (_, writer) in enumerate(links):
                if number % 2:
                    writer.write(written(b"x" * 50_000)[:-10_000])
                else:
                    for _ in range(40):
                        writer.write(written(b"x" * 1000, Opcode.CONT if _ else Opcode.TEXT, fin=False))
            await until(lambda: len(ended) == 3)
            assert all("1013 too much is being sent with this token" in why for why in ended)
            for _, writer in links:
                writer.transport.abort()
            await until(lambda: not server.sockets)
            client = await connect_websocket(f"ws://127.0.0.1:{server.port}/acp")
            client.send(json.dumps("x" * 90_000).encode())
            await client.aclose()

    run(scenario())
