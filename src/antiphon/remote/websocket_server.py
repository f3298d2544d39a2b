"""A server's WebSockets: which upgrades it accepts, and the task that serves each open WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from enum import StrEnum
from typing import Any, cast

import msgspec
from aiohttp.web_request import BaseRequest
from msgspec import UNSET, Raw, Struct, UnsetType
from websockets import ServerProtocol
from websockets.datastructures import Headers
from websockets.exceptions import InvalidHeader
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.http11 import Request
from websockets.protocol import State as WebSocketState
from websockets.typing import Subprotocol

from antiphon.errors import ErrorObject, InvalidRequest
from antiphon.jsonrpc.frames import UNREADABLE, encode_failure
from antiphon.jsonrpc.lines import DEFAULT_BOUND, Received
from antiphon.remote.frames import ID_LENGTH, outline
from antiphon.remote.stream_router import StreamBounds
from antiphon.transports.base import Transport, group_without_wrapping
from antiphon.transports.guarded_socket import SocketBounds
from antiphon.transports.http.exchange import Exchange, Head, Limits, Reply, plain, wants_websocket
from antiphon.transports.http.incomplete_input import IncompleteInput
from antiphon.transports.http.listener import HttpListener, listening
from antiphon.transports.http.socket import HttpRequests, HttpSocket, ServerHandler
from antiphon.transports.websocket import PING_DEADLINE, PING_INTERVAL, CloseWebSocket, WebSocketTransport

logger = logging.getLogger("antiphon.transports")

PROTOCOL_ERROR = 1002
POLICY_VIOLATION = 1008
INITIALIZE = "initialize"
_AGAIN = ErrorObject(InvalidRequest.code, "this connection is already initialized")
GOING_AWAY = 1001
FAILED = 1011
SUBPROTOCOLS = ("acp.v2", "acp.v1")

Check = Callable[[Mapping[str, str]], tuple[int, str] | None]
"""Checks the headers of an upgrade. Returns an HTTP status and a line of text to refuse it."""
Serve = Callable[[Transport], Awaitable[None]]
Start = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
"""Runs a coroutine in a task of the server."""


class ServerOptions(Struct, frozen=True, kw_only=True):
    """Limits and settings of a server for HTTP and WebSockets."""

    limits: Limits = Limits()
    """Bounds of requests."""
    bounds: StreamBounds = StreamBounds()
    """Bounds of an ACP connection over HTTP."""
    or_any_port: bool = False
    """Whether to listen on any free port if the given one is in use."""
    socket_bounds: SocketBounds = SocketBounds()
    bound: int = DEFAULT_BOUND
    """Bytes of the largest WebSocket message."""
    compression: bool = False
    """Whether WebSockets accept permessage-deflate."""
    initialize_first: bool = True
    """Whether the first message of a WebSocket must be `initialize` (WS-03)."""
    ping_interval: float | None = PING_INTERVAL
    ping_deadline: float = PING_DEADLINE


class State(StrEnum):
    NEW = "new"
    INITIALIZING = "initializing"
    """A request `initialize` has no response yet."""
    INITIALIZED = "initialized"


class _First(Struct):
    """The members of a frame that `InitializeFilter` needs. Params of any shape decode."""

    id: str | int | float | UnsetType | None = UNSET
    method: str | None = None
    error: Raw | UnsetType = UNSET


_first = msgspec.json.Decoder(_First)


def _read(frame: bytes) -> _First:
    try:
        return _first.decode(frame)
    except UNREADABLE:
        return _First()


class InitializeFilter:
    """Requires `initialize` first, and only once (WS-03), and bounds the length of ids."""

    def __init__(self) -> None:
        self._state = State.NEW
        self._id: Any = None

    def receive(self, frames: list[Received]) -> tuple[list[Received], list[bytes]]:
        """Return the frames to pass on, and the responses to send at once. Raises `CloseWebSocket`."""
        passed: list[Received] = []
        answers: list[bytes] = []
        for frame in frames:
            answer = self._receive(frame) if isinstance(frame, bytes) else None
            if answer is None:
                passed.append(frame)
            else:
                answers.append(answer)
        return passed, answers

    def _receive(self, frame: bytes) -> bytes | None:
        if len(frame) > ID_LENGTH:
            _check_ids(frame)
        if self._state is State.INITIALIZED and b'"initialize"' not in frame:
            return None
        first = _read(frame)
        if first.method is None:
            return None
        if self._state is State.INITIALIZED and first.method == INITIALIZE and first.id is not UNSET:
            return encode_failure(first.id, _AGAIN)
        if self._state is State.NEW:
            if first.method != INITIALIZE:
                raise CloseWebSocket(PROTOCOL_ERROR, "The first message is `initialize`")
            if first.id is UNSET or first.id is None:
                raise CloseWebSocket(PROTOCOL_ERROR, "`initialize` needs an id")
            self._state, self._id = State.INITIALIZING, first.id
        return None

    def answered(self, frame: bytes) -> None:
        """Read a response that is sent. A client may repeat an `initialize` that failed (INIT-26)."""
        if self._state is State.INITIALIZING:
            first = _read(frame)
            if first.method is None and first.id == self._id:
                self._state = State.INITIALIZED if first.error is UNSET else State.NEW


def _check_ids(frame: bytes) -> None:
    about = outline(frame)
    for name, id in (("The request's id", about.id), ("The session's id", about.session)):
        if isinstance(id, str) and len(id) > ID_LENGTH:
            raise CloseWebSocket(POLICY_VIOLATION, f"{name} is over {ID_LENGTH} characters")


def _select_subprotocol(_: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """Return the first offered name of ACP. A page also offers its token this way, which is not echoed."""
    return next((name for name in offered if name in SUBPROTOCOLS), None)


class WebSockets:
    """The open WebSockets of a server. Each is closed when `serve` returns."""

    def __init__(
        self, serve: Serve, start: Start, *, path: str, options: ServerOptions, incomplete: IncompleteInput
    ) -> None:
        self._serve = serve
        self._start = start
        self._path = path
        self._options = options
        self._incomplete = incomplete
        self._open: set[WebSocketTransport] = set()

    def upgrade(self, head: Head, request: BaseRequest) -> Reply | None:
        """Open the WebSocket that a request asks for, over its socket. Return the refusal, if any."""
        socket, options = cast(HttpSocket, request.protocol), self._options
        if head.path != self._path:
            return plain(404, "There is no WebSocket here.")
        handshake = ServerProtocol(
            select_subprotocol=_select_subprotocol,
            extensions=[ServerPerMessageDeflateFactory(client_no_context_takeover=True)]
            if options.compression
            else None,
        )
        try:
            headers = Headers(list(request.headers.items()))
        except InvalidHeader as error:  # `websockets` is stricter than aiohttp
            return plain(400, f"This header cannot be used in an upgrade: {error.name}")
        response = handshake.accept(Request(request.raw_path, headers))
        if response.status_code != 101:
            named = {name: value for name, value in response.headers.raw_items() if name not in _WRITTEN}
            return Reply(response.status_code, bytes(response.body), named)
        if not socket.upgrading:
            return plain(400)
        frames = ServerProtocol(state=WebSocketState.OPEN, max_size=None)  # `FrameGate` bounds messages
        frames.extensions = handshake.extensions
        transport = WebSocketTransport(
            frames,
            bound=options.bound,
            ping_interval=options.ping_interval,
            ping_deadline=options.ping_deadline,
            frame_filter=InitializeFilter() if options.initialize_first else None,
            incomplete=self._incomplete,
        )
        transport.who, transport.peer = head.who, head.peer
        transport.connection_id = secrets.token_urlsafe(16)
        response.headers["Acp-Connection-Id"] = transport.connection_id
        transport.handshake_response = response.serialize()
        socket.hand_over(transport)
        self._open.add(transport)
        self._start(self._run(transport))
        return None

    async def _run(self, transport: WebSocketTransport) -> None:
        try:
            await self._serve(transport)
        except Exception:  # the other connections continue
            logger.exception("WebSocket handler failed; closing the WebSocket of %s", transport.peer)
            transport.close_code = FAILED
        finally:
            self._open.discard(transport)
            await transport.aclose()

    async def aclose(self) -> None:
        await asyncio.gather(*[transport.aclose(GOING_AWAY) for transport in tuple(self._open)])


_WRITTEN = frozenset({"Connection", "Content-Length", "Date"})
"""Headers that the server writes with every response."""


class OnlyWebSockets:
    """The handler of a server that has only WebSockets, at one path."""

    def __init__(self, path: str, check: Check | None) -> None:
        self._path = path
        self._check = check

    def admit(self, head: Head) -> Reply | None:
        refused = None if self._check is None else self._check(head.headers)
        if refused is not None:
            return plain(*refused)
        if head.path != self._path:
            return plain(404, "There is nothing here.")
        return None if wants_websocket(head) else plain(426, upgrade="websocket")

    async def answer(self, exchange: Exchange, body: bytes) -> None:
        exchange.reply(plain(404))

    def refused(self, head: Head, status: int) -> None: ...


@contextlib.asynccontextmanager
async def websocket_server(
    serve: Serve,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    path: str = "/acp",
    check: Check | None = None,
    tls: ssl.SSLContext | None = None,
    options: ServerOptions = ServerOptions(),
) -> AsyncIterator[HttpListener]:
    """Listen, and run `serve` for every WebSocket that a client opens at `path`.

    `check` sees the headers of an upgrade before anything else, and may refuse it.
    """
    async with owned_tasks() as start:
        handler = OnlyWebSockets(path, check)
        async with listen(
            handler, serve, start, (host, port), path=path, tls=tls, options=options
        ) as listener:
            yield listener


@contextlib.asynccontextmanager
async def listen(
    handler: ServerHandler,
    serve: Serve,
    start: Start,
    address: tuple[str, int],
    *,
    path: str,
    tls: ssl.SSLContext | None,
    options: ServerOptions,
) -> AsyncIterator[HttpListener]:
    """Listen at an address. `handler` answers requests, and `serve` runs for every WebSocket at `path`."""
    incomplete = IncompleteInput(options.limits.incomplete)
    websockets = WebSockets(serve, start, path=path, options=options, incomplete=incomplete)
    requests = HttpRequests(handler, options.limits, incomplete, websockets.upgrade)
    async with listening(
        requests, *address, or_any_port=options.or_any_port, tls=tls, bounds=options.socket_bounds
    ) as listener:
        try:
            yield listener
        finally:
            listener.stop()
            await websockets.aclose()


@contextlib.asynccontextmanager
async def owned_tasks() -> AsyncIterator[Start]:
    """Yield a function that starts tasks. The tasks that are left at the end of the block are cancelled."""
    tasks: set[asyncio.Task[None]] = set()
    group = asyncio.TaskGroup()

    def start(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = group.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    async with group_without_wrapping(group):
        try:
            yield start
        finally:
            for task in tasks:
                task.cancel()
