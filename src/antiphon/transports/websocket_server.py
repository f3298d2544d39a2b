"""A server's WebSockets: which upgrades are let in, and who serves what is opened."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import cast

from websockets import ServerProtocol
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from antiphon.jsonrpc.lines import DEFAULT_BOUND
from antiphon.transports.base import group_without_wrapping
from antiphon.transports.http_exchange import Head
from antiphon.transports.websocket import PING_DEADLINE, PING_INTERVAL, WebSocketTransport
from antiphon.transports.websocket_opening import WebSocketOpening

logger = logging.getLogger("antiphon.transports")

GOING_AWAY = 1001
FAILED = 1011
SUBPROTOCOLS = ("acp.v2", "acp.v1")

Check = Callable[[Mapping[str, str]], tuple[int, str] | None]
"""Looks at the headers of an upgrade; an HTTP status and a line of text refuse it."""


def _chosen(_: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """Of what a page offers, a name of the protocol; what else stands there is a secret, and not echoed."""
    return next((name for name in offered if name in SUBPROTOCOLS), None)


class WebSocketServer:
    """A listening WebSocket server; `port` is the one it got."""

    def __init__(self, server: asyncio.Server) -> None:
        self._server = server
        self.port: int = server.sockets[0].getsockname()[1]


Serve = Callable[[WebSocketTransport], Awaitable[None]]


@contextlib.asynccontextmanager
async def serving_websockets(
    serve: Serve,
    *,
    path: str = "/acp",
    check: Check | None = None,
    bound: int = DEFAULT_BOUND,
    compression: bool = False,
    opens: bool = True,
    answered: Callable[[int], None] = lambda _: None,
    ping_interval: float | None = PING_INTERVAL,
    ping_deadline: float = PING_DEADLINE,
) -> AsyncIterator[Callable[..., WebSocketTransport]]:
    """Gives what takes a socket of whoever wants a WebSocket, and runs `serve` for each that is opened; it is
    closed when `serve` returns, and at the end of the block.

    `check` looks at the headers of an upgrade before anything else, and may refuse it with a status and a
    line of text. With `opens`, a client has to begin with `initialize` (WS-03). `answered` hears the status
    that an upgrade got.
    """
    open_transports: set[WebSocketTransport] = set()
    serving: set[asyncio.Task[None]] = set()

    def admit(transport: WebSocketTransport, request: Request) -> Response:
        response = answer(transport, request)
        answered(response.status_code)
        return response

    def answer(transport: WebSocketTransport, request: Request) -> Response:
        protocol = cast(ServerProtocol, transport._protocol)
        refused = None if check is None else check(request.headers)
        if refused is not None:
            return protocol.reject(refused[0], f"{refused[1]}\n")
        if request.path.partition("?")[0] != path:
            return protocol.reject(404, "There is nothing here.\n")
        response = protocol.accept(request)
        if response.status_code == 101:
            transport.connection_id = secrets.token_urlsafe(16)
            response.headers["Acp-Connection-Id"] = transport.connection_id
            task = group.create_task(run(transport))
            serving.add(task)
            task.add_done_callback(serving.discard)
        return response

    async def run(transport: WebSocketTransport) -> None:
        open_transports.add(transport)
        try:
            await serve(transport)
        except Exception:
            logger.exception("serving a WebSocket failed")  # the others go on
            transport.close_code = FAILED
        finally:
            open_transports.discard(transport)
            await transport.aclose()

    def make(head: Head | None = None) -> WebSocketTransport:
        protocol = ServerProtocol(
            max_size=None,  # the gate before it sees to that
            select_subprotocol=_chosen,
            extensions=[ServerPerMessageDeflateFactory(client_no_context_takeover=True)]
            if compression
            else None,
        )
        transport = WebSocketTransport(
            protocol,
            bound=bound,
            ping_interval=ping_interval,
            ping_deadline=ping_deadline,
            admit=admit,
            opening=WebSocketOpening() if opens else None,
        )
        if head is not None:
            transport.who, transport.peer = head.who, head.peer
        return transport

    group = asyncio.TaskGroup()
    async with group_without_wrapping(group):
        try:
            yield make
        finally:
            await asyncio.gather(*[transport.aclose(GOING_AWAY) for transport in open_transports])
            for task in serving:
                task.cancel()


@contextlib.asynccontextmanager
async def websocket_server(
    serve: Serve,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    path: str = "/acp",
    check: Check | None = None,
    tls: ssl.SSLContext | None = None,
    bound: int = DEFAULT_BOUND,
    compression: bool = False,
    opens: bool = True,
    ping_interval: float | None = PING_INTERVAL,
    ping_deadline: float = PING_DEADLINE,
) -> AsyncIterator[WebSocketServer]:
    """Listen, and serve every WebSocket that is opened (`serving_websockets`)."""
    websockets = serving_websockets(
        serve,
        path=path,
        check=check,
        bound=bound,
        compression=compression,
        opens=opens,
        ping_interval=ping_interval,
        ping_deadline=ping_deadline,
    )
    async with websockets as make:
        server = await asyncio.get_running_loop().create_server(make, host, port, ssl=tls)
        try:
            yield WebSocketServer(server)
        finally:
            server.close()
