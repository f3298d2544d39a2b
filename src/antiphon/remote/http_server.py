"""A server for HTTP/1.1 and WebSockets at one port.

HTTP/2 and public TLS are the job of a reverse proxy in front of it.
"""

from __future__ import annotations

import contextlib
import ssl
from collections import ChainMap
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Mapping
from typing import cast

from antiphon.jsonrpc.lines import DEFAULT_BOUND
from antiphon.remote.endpoint import AcpEndpoint
from antiphon.remote.stream_router import Bounds
from antiphon.remote.websocket_server import WebSockets, owned_tasks
from antiphon.transports.base import Transport
from antiphon.transports.guarded_socket import SocketBounds, SocketFaults
from antiphon.transports.http.exchange import Handler, Limits
from antiphon.transports.http.held_bytes import HeldBytes
from antiphon.transports.http.listener import HttpListener, listening
from antiphon.transports.http.routes import Check, Refused, Routes
from antiphon.transports.http.socket import HttpRequests
from antiphon.transports.http.tally import Tally
from antiphon.transports.websocket import PING_DEADLINE, PING_INTERVAL


class HttpServer:
    """A listening server; `port` is the one it got."""

    def __init__(self, listener: HttpListener, endpoint: AcpEndpoint, tally: Tally) -> None:
        self.port = listener.port
        self.sockets = listener.sockets
        """Those that are open, whatever they are used for."""
        self.faults = listener.faults
        """Exceptions that ended sockets."""
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


@contextlib.asynccontextmanager
async def http_server(
    serve: Callable[[Transport], Awaitable[None]],
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    or_any_port: bool = False,
    path: str = "/acp",
    check: Check | None = None,
    routes: Mapping[str, Handler] | None = None,
    open: Container[str] = (),
    refused: Refused | None = None,
    tls: ssl.SSLContext | None = None,
    limits: Limits | None = None,
    bounds: Bounds | None = None,
    socket_bounds: SocketBounds | None = None,
    bound: int = DEFAULT_BOUND,
    ping_interval: float | None = PING_INTERVAL,
    ping_deadline: float = PING_DEADLINE,
) -> AsyncIterator[HttpServer]:
    """Listen, and run `serve` for every connection that is opened at `path`, over HTTP or a WebSocket.

    `check` looks at the head of every request before anything else, but at paths that are `open`: it refuses
    it, or says whose it is, which the transport then has as `who`. `routes` are what else there is, by its
    path. `refused` hears of everybody else who was refused. `or_any_port`: if the port is in use, listen on
    any free one.
    """
    limits, tally, faults = limits or Limits(), Tally(), SocketFaults()
    held = HeldBytes(limits.held)
    async with owned_tasks() as start:
        endpoint = AcpEndpoint(serve, start, bounds)
        # Not a copy: what else there is may change.
        paths = ChainMap[str, Handler]({path: endpoint}, cast(dict[str, Handler], routes or {}))
        handler = Routes(paths, check=check, open=open, refused=refused)
        endpoint.on_refused = handler.refused
        websockets = WebSockets(
            serve,
            start,
            path=path,
            bound=bound,
            held=held,
            ping_interval=ping_interval,
            ping_deadline=ping_deadline,
        )
        requests = HttpRequests(handler, limits, tally, faults, held, websockets.upgrade)
        async with listening(
            requests, faults, host, port, or_any_port=or_any_port, tls=tls, bounds=socket_bounds
        ) as listener:
            try:
                yield HttpServer(listener, endpoint, tally)
            finally:
                listener.stop()
                await endpoint.aclose()
                await websockets.aclose()
