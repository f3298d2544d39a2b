"""A server for HTTP/1.1 and WebSockets at one port.

HTTP/2 and public TLS are the job of a reverse proxy in front of it.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator

from antiphon.remote.endpoint import AcpEndpoint
from antiphon.remote.websocket_server import Serve, ServerOptions, listen, owned_tasks
from antiphon.transports.http.listener import HttpListener
from antiphon.transports.http.routes import Routes, Site


class HttpServer:
    """A listening server. `port` is the port that it got."""

    def __init__(self, listener: HttpListener, endpoint: AcpEndpoint) -> None:
        self.port = listener.port
        self.sockets = listener.sockets
        """The open sockets, HTTP and WebSocket."""
        self.faults = listener.faults
        """Counts exceptions that ended sockets."""
        self.counts = listener.counts
        """Counts answered requests."""
        self._endpoint = endpoint

    @property
    def connections(self) -> int:
        """Open ACP connections over HTTP."""
        return len(self._endpoint.connections)

    @property
    def streams(self) -> int:
        """Streams of these connections that a client reads."""
        return sum(connection.reading for connection in self._endpoint.connections.values())


@contextlib.asynccontextmanager
async def http_server(
    serve: Serve,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    path: str = "/acp",
    site: Site = Site(),
    tls: ssl.SSLContext | None = None,
    options: ServerOptions = ServerOptions(),
) -> AsyncIterator[HttpServer]:
    """Listen, and run `serve` for every connection that a client opens at `path`, over HTTP or a WebSocket.

    The transport has the identity that `site.check` returned as `who`.
    """
    async with owned_tasks() as start:
        endpoint = AcpEndpoint(serve, start, options.bounds, refused=site.refused)
        handler = Routes(path, endpoint, site)
        async with listen(
            handler, serve, start, (host, port), path=path, tls=tls, options=options
        ) as listener:
            try:
                yield HttpServer(listener, endpoint)
            finally:
                listener.stop()
                await endpoint.aclose()
