"""Input that is begun and not complete is bounded for each token."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from contextlib import AsyncExitStack
from typing import Any

import pytest
from websockets.frames import Opcode

from antiphon.remote.http_server import http_server
from antiphon.remote.websocket_server import ServerOptions, websocket_server
from antiphon.transports.base import Inbox
from antiphon.transports.guarded_socket import SocketBounds
from antiphon.transports.http.exchange import Exchange, Head, Limits
from antiphon.transports.http.routes import Site
from antiphon.transports.websocket import WebSocketTransport, connect_websocket
from tests.http.raw import Raw, read_head
from tests.http.sockets import (
    Handling,
    Run,
    flood,
    handling,
    inert,
    opened,
    until,
    written,
)


def test_bodies_that_are_never_complete_are_bounded_for_each_token(run: Run) -> None:
    def check(head: Head) -> Any:
        return head.headers.get("Authorization", "nobody")

    async def scenario() -> None:
        limits = Limits(body=60_000, incomplete=100_000)
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

        limits = Limits(incomplete=100_000)
        async with websocket_server(
            serve, options=ServerOptions(initialize_first=False, limits=limits)
        ) as server:
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


@pytest.mark.parametrize("opcode", [Opcode.TEXT, Opcode.PING, Opcode.CLOSE])
def test_no_frame_hides_what_is_held(run: Run, opcode: Opcode) -> None:
    """A message inside of another is not counted in its place, and a control frame of any length not kept."""

    async def scenario() -> None:
        ended: list[str] = []

        async def serve(transport: WebSocketTransport) -> None:
            while await Inbox(transport).take():
                pass
            ended.append(transport.end_reason)

        async with websocket_server(
            serve,
            options=ServerOptions(initialize_first=False, bound=60_000, limits=Limits(incomplete=100_000)),
        ) as server:
            _, writer = await opened(server.port)
            writer.write(written(b"x" * 50_000, fin=False))
            endless = bytes([0x80 | opcode, 0xFF]) + (1 << 40).to_bytes(8) + bytes(4)
            writer.write(endless)
            flooding = asyncio.create_task(flood(writer, b"x" * 10_000))
            await until(lambda: ended)
            assert "1002" in ended[0]
            await flooding

    run(scenario())


def test_a_peer_that_goes_on_sending_after_the_close_does_not_keep_its_link(run: Run) -> None:
    async def scenario() -> None:
        ended: list[str] = []

        async def serve(transport: WebSocketTransport) -> None:
            while await Inbox(transport).take():
                pass
            ended.append(transport.end_reason)

        bounds = SocketBounds(last=0.1)
        async with websocket_server(
            serve, options=ServerOptions(initialize_first=False, socket_bounds=bounds)
        ) as server:
            for last in (written(b"\x03\xe8", Opcode.CLOSE), b"\x83\x80\0\0\0\0"):
                _, writer = await opened(server.port)
                writer.write(last)
                flooding = asyncio.create_task(flood(writer, written(b"x" * 100, Opcode.PING)))
                await until(lambda: not server.sockets)
                await flooding
            assert "1000" in ended[0]
            assert "1002" in ended[1]

    run(scenario())


class Waiting(Handling):
    """Read the body of a request when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.came: asyncio.Queue[Exchange] = asyncio.Queue()

    async def answer(self, exchange: Exchange, body: bytes) -> None:
        self.came.put_nowait(exchange)
        await self.go.wait()
        await super().answer(exchange, body)


def test_bodies_that_wait_for_the_handler_are_bounded_for_each_token(run: Run) -> None:
    async def scenario() -> None:
        handler, limits = Waiting(), Limits(body=60_000, incomplete=100_000)
        async with http_server(
            inert, site=Site(routes={"/": handler}), options=ServerOptions(limits=limits)
        ) as server:
            raw = Raw(server.port)
            asked = [asyncio.ensure_future(raw.ask("POST", b" " * 50_000, path="/")) for _ in range(2)]
            for _ in asked:
                await handler.came.get()
            assert (await raw.ask("POST", b" " * 50_000, path="/")).status == 429
            handler.go.set()
            assert [answer.status for answer in await asyncio.gather(*asked)] == [200, 200]
            assert (await raw.ask("POST", b" " * 50_000, path="/")).status == 200

    run(scenario())


def test_an_open_stream_does_not_keep_the_body_of_its_request(run: Run) -> None:
    async def scenario() -> None:
        size, count = 4_000_000, 6
        async with handling() as (server, handler), AsyncExitStack() as open_sockets:
            raw = Raw(server.port)
            request = raw.request("GET", b" " * size, path="/stream")
            tracemalloc.start()
            open_sockets.callback(tracemalloc.stop)
            for _ in range(count):
                _, writer = await open_sockets.enter_async_context(raw.socket())
                writer.write(request)
                await handler.streams.get()
            assert len(server.sockets) == count
            assert tracemalloc.get_traced_memory()[0] < 2 * size

    run(scenario())


def test_an_idle_websocket_does_not_keep_its_last_message(run: Run) -> None:
    async def scenario() -> None:
        size, count = 4_000_000, 6
        taken: asyncio.Queue[int] = asyncio.Queue()

        async def serve(transport: WebSocketTransport) -> None:
            inbox = Inbox(transport)
            while frames := await inbox.take():
                taken.put_nowait(len(frames))
                del frames

        async with (
            websocket_server(serve, options=ServerOptions(initialize_first=False)) as server,
            AsyncExitStack() as open_sockets,
        ):
            message, links = written(b"x" * size), []
            tracemalloc.start()
            open_sockets.callback(tracemalloc.stop)
            for _ in range(count):
                links.append(await opened(server.port))
                open_sockets.callback(links[-1][1].transport.abort)
                links[-1][1].write(message)
                await taken.get()
            assert len(server.sockets) == count
            assert tracemalloc.get_traced_memory()[0] < 2 * size

    run(scenario())
