"""HttpListener: a listening socket for HTTP/1.1 and WebSockets, and the sockets that it has accepted."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Set
from typing import Any

from antiphon.transports.guarded_socket import GuardedSocket, SocketBounds, SocketFaults
from antiphon.transports.http.socket import HttpRequests, HttpSocket
from antiphon.transports.http.tls_handshakes import TlsHandshakes

CLOSE_SECONDS = 2.0
"""Seconds for unfinished responses when the listener ends."""
IN_USE = frozenset({errno.EADDRINUSE, errno.EACCES})
"""Another program has the port, or the system reserves it."""
NO_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class HttpListener:
    """A listening socket. `port` is the port that it got."""

    def __init__(self, server: asyncio.Server, sockets: Set[GuardedSocket], requests: HttpRequests) -> None:
        self._server = server
        self.sockets = sockets
        """The open sockets, HTTP and WebSocket."""
        self.faults = requests.faults
        """Counts exceptions that ended sockets."""
        self.counts = requests.counts
        """Counts answered requests."""
        self.port: int = server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Accept no more sockets."""
        self._server.close()


@contextlib.asynccontextmanager
async def listening(
    requests: HttpRequests,
    host: str,
    port: int,
    *,
    or_any_port: bool = False,
    tls: ssl.SSLContext | None,
    bounds: SocketBounds,
) -> AsyncIterator[HttpListener]:
    """Accept sockets inside the block, and close the remaining ones at its end. `or_any_port`: if the port is
    in use, listen on any free one."""
    sockets: set[GuardedSocket] = set()

    def guard(protocol: asyncio.Protocol) -> GuardedSocket:
        return GuardedSocket(protocol, requests.faults, bounds=bounds, sockets=sockets)

    def serve() -> GuardedSocket:
        return guard(HttpSocket(requests))

    handshakes = None if tls is None else TlsHandshakes(tls, requests, serve)
    accept = serve if handshakes is None else lambda: guard(handshakes)
    loop = asyncio.get_running_loop()
    try:
        server = await _start_server(accept, host, port)
    except OSError as error:
        if not or_any_port or error.errno not in IN_USE:
            raise
        server = await _start_server(accept, host, 0)
    listener = HttpListener(server, sockets, requests)
    try:
        with _count_accept_failures(loop, requests.faults):
            yield listener
    finally:
        listener.stop()
        if handshakes is not None:
            await handshakes.aclose()
        requests.server.pre_shutdown()
        await requests.server.shutdown(CLOSE_SECONDS)
        await asyncio.gather(*[socket.aclose(CLOSE_SECONDS) for socket in tuple(sockets)])
        requests.faults.close()


async def _start_server(accept: Callable[[], GuardedSocket], host: str, port: int) -> asyncio.Server:
    server = await asyncio.get_running_loop().create_server(accept, host, port, start_serving=False)
    try:
        # Several sockets can be bound to one port while none of them listens. The second to listen fails.
        await server.start_serving()
        if None in server.sockets:  # uvloop closes such a socket and raises nothing
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
    except OSError:
        server.close()
        raise
    return server


@contextlib.contextmanager
def _count_accept_failures(loop: asyncio.AbstractEventLoop, faults: SocketFaults) -> Iterator[None]:
    """Count sockets that cannot be accepted because file descriptors or memory ran out.

    asyncio retries after a second and logs each attempt: a hundred lines a second. uvloop accepts such
    sockets with a spare descriptor, closes them, and reports nothing.
    """
    before = loop.get_exception_handler()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if "socket" in context and isinstance(error, OSError) and error.errno in NO_RESOURCES:
            faults.note(error, "client not accepted")
        elif before is not None:
            before(loop, context)
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)
    try:
        yield
    finally:
        if loop.get_exception_handler() is handle:
            loop.set_exception_handler(before)
