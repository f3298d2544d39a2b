"""A server for HTTP/1.1, HTTP/2 and WebSockets at one port: what a socket is for, its first bytes say."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections import ChainMap
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Mapping
from functools import partial
from typing import Any, cast

from antiphon.jsonrpc.lines import DEFAULT_BOUND
from antiphon.transports.base import Transport, group_without_wrapping
from antiphon.transports.http1 import Http1Protocol
from antiphon.transports.http2 import PREFACE, Http2Protocol
from antiphon.transports.http_endpoint import AcpEndpoint
from antiphon.transports.http_exchange import Exchange, Handler, Limits
from antiphon.transports.http_patience import Bounds
from antiphon.transports.http_routes import Check, Refused, Routes
from antiphon.transports.http_tally import Tally
from antiphon.transports.websocket import PING_DEADLINE, PING_INTERVAL
from antiphon.transports.websocket_server import serving_websockets

logger = logging.getLogger("antiphon.transports")

ALPN = ["h2", "http/1.1"]

Shell = Http1Protocol | Http2Protocol


class HttpServer:
    """A listening server; `port` is the one it got."""

    def __init__(self, server: asyncio.Server, endpoint: AcpEndpoint, tally: Tally) -> None:
        self.port: int = server.sockets[0].getsockname()[1]
        self.tally = tally
        """What was asked and how it was answered, since it listens."""
        self._endpoint = endpoint

    @property
    def connections(self) -> int:
        """How many there are over HTTP just now."""
        return len(self._endpoint.connections)

    @property
    def streams(self) -> int:
        """How many of their streams are read from."""
        return sum(connection.reading for connection in self._endpoint.connections.values())


class Door(asyncio.Protocol):
    """Takes a socket until it is known what is spoken over it."""

    def __init__(
        self,
        one: Callable[[], Http1Protocol],
        two: Callable[[], Http2Protocol],
        sockets: set[Shell | Door],
        seconds: float,
    ) -> None:
        self._one = one
        self._two = two
        self._sockets = sockets
        self._seconds = seconds
        self._first = b""
        self._timer: asyncio.TimerHandle
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._sockets.add(self)
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._too_late)
        secured = transport.get_extra_info("ssl_object")
        if secured is not None and secured.selected_alpn_protocol() == "h2":
            self._pass(self._two())

    def data_received(self, data: bytes) -> None:
        self._first += data
        if PREFACE.startswith(self._first[: len(PREFACE)]):
            if len(self._first) >= len(PREFACE):
                self._pass(self._two())
        else:
            self._pass(self._one())

    def connection_lost(self, error: Exception | None) -> None:
        self._timer.cancel()
        self._sockets.discard(self)

    def close(self) -> None:
        self._transport.abort()

    def _too_late(self) -> None:
        if not self._first:
            self._transport.abort()  # nothing was asked
            return
        shell = self._one()
        self._pass(shell)
        shell.too_late()

    def _pass(self, shell: Shell) -> None:
        self.connection_lost(None)
        self._sockets.add(shell)
        shell.released = partial(self._sockets.discard, shell)
        self._transport.set_protocol(shell)
        shell.connection_made(self._transport)
        if self._first:
            shell.data_received(self._first)


@contextlib.asynccontextmanager
async def http_server(
    serve: Callable[[Transport], Awaitable[None]],
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    path: str = "/acp",
    check: Check | None = None,
    routes: Mapping[str, Handler] | None = None,
    open: Container[str] = (),
    refused: Refused | None = None,
    tls: ssl.SSLContext | None = None,
    limits: Limits | None = None,
    bounds: Bounds | None = None,
    bound: int = DEFAULT_BOUND,
    ping_interval: float | None = PING_INTERVAL,
    ping_deadline: float = PING_DEADLINE,
) -> AsyncIterator[HttpServer]:
    """Listen, and run `serve` for every connection that is opened at `path`, over HTTP or a WebSocket.

    `check` looks at the head of every request before anything else, but at paths that are `open`: it refuses
    it, or says whose it is, which the transport then has as `who`. `routes` are what else there is, by its
    path. `refused` hears of everybody else who was refused.
    """
    limits, tally = limits or Limits(), Tally()
    sockets: set[Shell | Door] = set()
    tasks: set[asyncio.Task[None]] = set()

    def start(work: Any) -> asyncio.Task[None]:
        task = group.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    endpoint = AcpEndpoint(serve, start, bounds)
    # Not a copy: what else there is may change.
    paths = ChainMap[str, Handler]({path: endpoint}, cast(dict[str, Handler], routes or {}))
    handler = Routes(paths, check=check, open=open, refused=refused)
    endpoint.on_refused = handler.refused

    def begin(exchange: Exchange, body: bytes) -> None:
        start(_answer(handler, exchange, body))

    def two() -> Http2Protocol:
        return Http2Protocol(handler, begin, limits, tally)

    if tls is not None:
        tls.set_alpn_protocols(ALPN)
    websockets = serving_websockets(
        serve,
        path=path,
        bound=bound,
        answered=partial(tally.add, "GET"),
        ping_interval=ping_interval,
        ping_deadline=ping_deadline,
    )
    group = asyncio.TaskGroup()
    async with websockets as websocket, group_without_wrapping(group):

        def one() -> Http1Protocol:
            return Http1Protocol(handler, begin, limits, tally, websocket)

        def door() -> Door:
            return Door(one, two, sockets, limits.head_seconds)

        server = await asyncio.get_running_loop().create_server(door, host, port, ssl=tls)
        try:
            yield HttpServer(server, endpoint, tally)
        finally:
            server.close()
            await endpoint.aclose()
            for socket in tuple(sockets):
                socket.close()
            for task in tasks:
                task.cancel()


async def _answer(handler: Handler, exchange: Exchange, body: bytes) -> None:
    try:
        await handler.answer(exchange, body)
    except Exception:
        logger.exception("%s %s could not be answered", exchange.head.method, exchange.head.path)
        exchange.abort()
