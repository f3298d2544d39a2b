"""Servers and clients for the tests of the rules that every socket keeps, on asyncio and on uvloop."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from websockets.frames import Frame, Opcode

from antiphon.remote.http_server import http_server
from antiphon.remote.websocket_server import ServerOptions
from antiphon.transports.base import Inbox
from antiphon.transports.http.exchange import Exchange, Head, Reply, plain
from antiphon.transports.http.routes import Check, Site
from antiphon.transports.websocket import WebSocketTransport
from tests.http.raw import Raw, read_head

UPGRADE = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
KEY = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}

Run = Callable[[Coroutine[Any, Any, None]], None]


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


async def inert(transport: Any) -> None:
    await Inbox(transport).take()


@asynccontextmanager
async def handling(
    check: Check | None = None, *, port: int = 0, tls: ssl.SSLContext | None = None, **options: Any
) -> AsyncIterator[tuple[Any, Handling]]:
    handler = Handling()
    paths = dict.fromkeys(("/", "/big", "/fail", "/stream"), handler)
    async with http_server(
        inert, port=port, tls=tls, site=Site(routes=paths, check=check), options=ServerOptions(**options)
    ) as server:
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
