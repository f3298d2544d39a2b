"""A server's WebSockets: which upgrades are accepted, and what serves each WebSocket that is opened."""

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
from websockets.protocol import State
from websockets.typing import Subprotocol

from antiphon.errors import ErrorObject, InvalidRequest
from antiphon.jsonrpc.frames import UNREADABLE, encode_failure
from antiphon.jsonrpc.lines import DEFAULT_BOUND, Received
from antiphon.remote.frames import ID_LENGTH, outline
from antiphon.transports.base import group_without_wrapping
from antiphon.transports.guarded_socket import SocketBounds, SocketFaults
from antiphon.transports.http.exchange import Exchange, Head, Limits, Reply, plain, wants_websocket
from antiphon.transports.http.held_bytes import HeldBytes
from antiphon.transports.http.listener import HttpListener, listening
from antiphon.transports.http.socket import HttpRequests, HttpSocket
from antiphon.transports.http.tally import Tally
from antiphon.transports.websocket import PING_DEADLINE, PING_INTERVAL, Closing, WebSocketTransport

logger = logging.getLogger("antiphon.transports")

PROTOCOL_ERROR = 1002
POLICY_VIOLATION = 1008
INITIALIZE = "initialize"
_AGAIN = ErrorObject(InvalidRequest.code, "this connection is already initialized")
GOING_AWAY = 1001
FAILED = 1011
SUBPROTOCOLS = ("acp.v2", "acp.v1")

Check = Callable[[Mapping[str, str]], tuple[int, str] | None]
"""Looks at the headers of an upgrade; an HTTP status and a line of text refuse it."""
Serve = Callable[[WebSocketTransport], Awaitable[None]]
Start = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
"""Runs a coroutine in a task that somebody owns."""


class Opening(StrEnum):
    NEW = "new"
    ASKED = "asked"
    """`initialize` is being answered."""
    OPEN = "open"


class _First(Struct):
    id: str | int | float | UnsetType | None = UNSET
    method: str | None = None
    error: Raw | UnsetType = UNSET


_first = msgspec.json.Decoder(_First)


def _read(frame: bytes) -> _First:
    try:
        return _first.decode(frame)
    except UNREADABLE:
        return _First()


class OpeningFilter:
    """Requires `initialize` first, and once (WS-03), and bounds the length of ids."""

    def __init__(self) -> None:
        self._state = Opening.NEW
        self._id: Any = None

    def receive(self, frames: list[Received]) -> tuple[list[Received], list[bytes]]:
        """Of what came, what goes on, and what is answered at once. Raises `Closing`."""
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
        if self._state is Opening.OPEN and b'"initialize"' not in frame:
            return None
        first = _read(frame)
        if first.method is None:
            return None
        if self._state is Opening.OPEN and first.method == INITIALIZE and first.id is not UNSET:
            return encode_failure(first.id, _AGAIN)
        if self._state is Opening.NEW:
            self._begin(first)
        return None

    def _begin(self, first: _First) -> None:
        if first.method != INITIALIZE:
            raise Closing(PROTOCOL_ERROR, "The first message is `initialize`")
        if first.id is UNSET or first.id is None:
            raise Closing(PROTOCOL_ERROR, "`initialize` needs an id")
        self._state, self._id = Opening.ASKED, first.id

    def answered(self, frame: bytes) -> None:
        """Something was answered: what failed may be tried again (INIT-26)."""
        if self._state is Opening.ASKED:
            first = _read(frame)
            if first.method is None and first.id == self._id:
                self._state = Opening.OPEN if first.error is UNSET else Opening.NEW


def _check_ids(frame: bytes) -> None:
    about = outline(frame)
    for name, id in (("The request's id", about.id), ("The session's id", about.session)):
        if isinstance(id, str) and len(id) > ID_LENGTH:
            raise Closing(POLICY_VIOLATION, f"{name} is over {ID_LENGTH} characters")


def _chosen(_: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """Of what a page offers, a name of the protocol; what else stands there is a secret, and not echoed."""
    return next((name for name in offered if name in SUBPROTOCOLS), None)


class WebSockets:
    """The open WebSockets of a server. Each is closed when `serve` returns."""

    def __init__(
        self,
        serve: Serve,
        start: Start,
        *,
        path: str,
        bound: int = DEFAULT_BOUND,
        held: HeldBytes | None = None,
        compression: bool = False,
        opens: bool = True,
        ping_interval: float | None = PING_INTERVAL,
        ping_deadline: float = PING_DEADLINE,
    ) -> None:
        """`bound`: bytes of the largest message.
        `held`: counts messages that are not complete, by whose they are.
        `compression`: whether permessage-deflate is accepted.
        `opens`: whether a client has to begin with `initialize` (WS-03).
        """
        self._serve = serve
        self._start = start
        self._path = path
        self._bound = bound
        self._held = held
        self._compression = compression
        self._opens = opens
        self._ping_interval = ping_interval
        self._ping_deadline = ping_deadline
        self._open: set[WebSocketTransport] = set()

    def upgrade(self, head: Head, request: BaseRequest) -> Reply | None:
        """Open the WebSocket that a request asks for, over its socket; or say why not."""
        socket = cast(HttpSocket, request.protocol)
        if head.path != self._path:
            return plain(404, "There is no WebSocket here.")
        handshake = ServerProtocol(
            select_subprotocol=_chosen,
            extensions=[ServerPerMessageDeflateFactory(client_no_context_takeover=True)]
            if self._compression
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
        frames = ServerProtocol(state=State.OPEN, max_size=None)  # the gate before it bounds messages
        frames.extensions = handshake.extensions
        transport = WebSocketTransport(
            frames,
            bound=self._bound,
            ping_interval=self._ping_interval,
            ping_deadline=self._ping_deadline,
            frame_filter=OpeningFilter() if self._opens else None,
            held=self._held,
        )
        transport.who, transport.peer = head.who, head.peer
        transport.connection_id = secrets.token_urlsafe(16)
        response.headers["Acp-Connection-Id"] = transport.connection_id
        transport.greeting = response.serialize()
        socket.hand_over(transport)
        self._open.add(transport)
        self._start(self._run(transport))
        return None

    async def _run(self, transport: WebSocketTransport) -> None:
        try:
            await self._serve(transport)
        except Exception:
            logger.exception("serving a WebSocket failed")  # the others go on
            transport.close_code = FAILED
        finally:
            self._open.discard(transport)
            await transport.aclose()

    async def aclose(self) -> None:
        await asyncio.gather(*[transport.aclose(GOING_AWAY) for transport in tuple(self._open)])


_WRITTEN = frozenset({"Connection", "Content-Length", "Date"})
"""Headers that are written with every response."""


class OnlyWebSockets:
    """The handler of a server that has WebSockets at one path, and nothing else."""

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
    bound: int = DEFAULT_BOUND,
    compression: bool = False,
    opens: bool = True,
    ping_interval: float | None = PING_INTERVAL,
    ping_deadline: float = PING_DEADLINE,
    limits: Limits | None = None,
    socket_bounds: SocketBounds | None = None,
) -> AsyncIterator[HttpListener]:
    """Listen, and run `serve` for every WebSocket that is opened at `path`.

    `check` looks at the headers of an upgrade before anything else, and may refuse it with a status and a
    line of text.
    """
    limits, faults = limits or Limits(), SocketFaults()
    held = HeldBytes(limits.held)
    async with owned_tasks() as start:
        websockets = WebSockets(
            serve,
            start,
            path=path,
            bound=bound,
            held=held,
            compression=compression,
            opens=opens,
            ping_interval=ping_interval,
            ping_deadline=ping_deadline,
        )
        handler = OnlyWebSockets(path, check)
        requests = HttpRequests(handler, limits, Tally(), faults, held, websockets.upgrade)
        async with listening(requests, faults, host, port, tls=tls, bounds=socket_bounds) as listener:
            try:
                yield listener
            finally:
                listener.stop()
                await websockets.aclose()


@contextlib.asynccontextmanager
async def owned_tasks() -> AsyncIterator[Start]:
    """Gives what starts tasks; those that are left at the end of the block are cancelled."""
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
