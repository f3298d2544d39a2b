"""Exchange: one HTTP request and its response.

`HttpSocket` reads requests within limits and knows no paths. A `Handler` responds and knows no sockets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field

from antiphon.jsonrpc.lines import DEFAULT_BOUND

if TYPE_CHECKING:  # a client uses this module without a server
    from aiohttp.web_protocol import RequestHandler

HEAD_BOUND = 64 * 1024
EVENTS = "text/event-stream"
DEFAULT_INCOMPLETE = 2 * DEFAULT_BOUND


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds of the requests of a client."""

    head: int = HEAD_BOUND
    """Bytes of a request line and its headers."""
    body: int = DEFAULT_BOUND
    incomplete: int = DEFAULT_INCOMPLETE
    """Bytes of bodies that no handler has taken yet, and of incomplete WebSocket messages, of one token."""
    head_seconds: float = 10.0
    """Seconds until a head is complete."""
    body_seconds: float = 30.0
    """Seconds until a body, or the next part of a large body, is complete."""
    idle_seconds: float = 75.0
    """Seconds that a socket may be open without a request."""

    def body_of(self, head: Head) -> int:
        return self.body if head.most is None else min(head.most, self.body)


class Headers(Mapping[str, str]):
    """Headers by their case-insensitive names. Values of repeated headers are joined with commas."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._values: dict[str, str] = {}
        for name, value in pairs:
            key = name.lower()
            before = self._values.get(key)
            between = "; " if key == "cookie" else ", "
            self._values[key] = value if before is None else f"{before}{between}{value}"

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Head(Struct):
    """The head of a request. Fields that were not read before a refusal have their defaults."""

    method: str = ""
    path: str = ""
    """The path without the query."""
    headers: Headers = field(default_factory=lambda: Headers(()))
    who: Any = None
    """The identity of the client, once it was checked."""
    peer: str = ""
    """The address of the client."""
    most: int | None = None
    """Bytes of the largest body, where that is less than `Limits.body`."""


class Reply(Struct, frozen=True):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}

    @property
    def phrase(self) -> str:
        return HTTPStatus(self.status).phrase

    @property
    def measured(self) -> dict[str, str]:
        """The headers with `Content-Length`, except for a status that has no body."""
        length = {} if self.status in (204, 304) else {"Content-Length": str(len(self.body))}
        return {**self.headers, **length}


def plain(status: int, text: str = "", **headers: str) -> Reply:
    """Make a response of a status and a line of text."""
    said = text or HTTPStatus(status).phrase
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    return Reply(status, f"{said}\n".encode(), {"Content-Type": "text/plain; charset=utf-8", **named})


def json(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(status, body, {"Content-Type": "application/json", **(headers or {})})


class Exchange:
    """One request and its response. A handler calls `reply`, or `begin`, any number of `write`, and `end`."""

    def __init__(self, head: Head, socket: RequestHandler, *, chunked: bool) -> None:
        """`chunked`: whether the pieces of a body are sent as HTTP/1.1 chunks."""
        self.head = head
        self.gone = False
        """Whether the client has closed the socket."""
        self.on_gone: Callable[[], None] = lambda: None
        self.on_room: Callable[[], None] = lambda: None
        """Called when `congested` becomes false."""
        self._socket = socket
        self._chunked = chunked
        loop = asyncio.get_running_loop()
        self.begun: asyncio.Future[Reply | Mapping[str, str]] = loop.create_future()
        """The whole response, or the headers of a response whose body follows in pieces."""
        self.ended: asyncio.Future[None] = loop.create_future()
        self._early: list[bytes] | None = []
        """Pieces of the body that were written before the headers; `None` after that."""

    def reply(self, reply: Reply) -> None:
        self.begin(reply)

    def begin(self, response: Reply | Mapping[str, str]) -> None:
        """Respond. Headers alone have status 200, and a body that follows."""
        if not self.begun.done():
            self.begun.set_result(response)

    def write(self, data: bytes) -> None:
        if self._early is not None:
            self._early.append(data)
        elif data and not self.gone and self._socket.transport is not None:
            self._socket.transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def flush(self) -> None:
        """Write the early pieces of the body. The headers have been written."""
        early, self._early = self._early, None
        self.write(b"".join(early or ()))
        if not self.congested:
            self.on_room()

    def end(self) -> None:
        """End the body."""
        if not self.ended.done():
            self.ended.set_result(None)

    def abort(self) -> None:
        """Close the socket, so that the client sees an incomplete response."""
        if self._socket.transport is not None:
            self._socket.transport.abort()

    @property
    def congested(self) -> bool:
        """Whether the client reads more slowly than the handler writes."""
        return bool(self._early) or self._socket.writing_paused

    def lose(self) -> None:
        """Note that the client has closed the socket."""
        if not self.gone:
            self.gone = True
            self.on_gone()
        self.begin(Reply(500))  # ends the wait for `begun`; no client reads it
        self.end()


class Handler(Protocol):
    def admit(self, head: Head) -> Reply | None:
        """Return a response that needs only the head, before the body is read; `None` to continue."""

    async def answer(self, exchange: Exchange, body: bytes) -> None: ...


def wants_websocket(head: Head) -> bool:
    return head.method == "GET" and head.headers.get("Upgrade", "").strip().lower() == "websocket"
