"""HttpListener: a listening socket for HTTP/1.1 and WebSockets, and all the sockets it has accepted."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Set

from antiphon.transports.guarded_socket import GuardedSocket, SocketBounds, SocketFaults
from antiphon.transports.http.socket import HttpRequests, HttpSocket

ALPN = ["http/1.1"]
TLS_SECONDS = 10.0
"""Seconds for a TLS handshake."""
CLOSE_SECONDS = 2.0
"""Seconds for responses that are under way when the listener ends."""


class HttpListener:
    """`port` is the one it got, `sockets` are those that are open."""

    def __init__(self, server: asyncio.Server, sockets: Set[GuardedSocket], faults: SocketFaults) -> None:
        self._server = server
        self.sockets = sockets
        self.faults = faults
        """Exceptions that ended sockets."""
        self.port: int = server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Accept no more sockets."""
        self._server.close()


@contextlib.asynccontextmanager
async def listening(
    requests: HttpRequests,
    faults: SocketFaults,
    host: str,
    port: int,
    *,
    tls: ssl.SSLContext | None,
    bounds: SocketBounds | None = None,
) -> AsyncIterator[HttpListener]:
    """Accept sockets until the end of the block; those that are left then are ended."""
    sockets: set[GuardedSocket] = set()

    def accept() -> GuardedSocket:
        return GuardedSocket(HttpSocket(requests), faults, bounds=bounds, sockets=sockets)

    if tls is not None:
        tls.set_alpn_protocols(ALPN)
    seconds = None if tls is None else TLS_SECONDS
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        accept, host, port, ssl=tls, ssl_handshake_timeout=seconds, ssl_shutdown_timeout=seconds
    )
    listener = HttpListener(server, sockets, faults)
    try:
        yield listener
    finally:
        listener.stop()
        requests.server.pre_shutdown()
        await requests.server.shutdown(CLOSE_SECONDS)
        await asyncio.gather(*[socket.aclose(CLOSE_SECONDS) for socket in tuple(sockets)])
        faults.close()
