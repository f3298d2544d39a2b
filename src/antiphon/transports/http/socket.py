"""HttpSocket: one socket that speaks HTTP/1.1, read and written by aiohttp.

aiohttp parses requests, keeps connections alive and writes responses. This module adds the deadline of a
request head, the refusal of malformed requests, and the `Exchange` through which a handler responds.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import resource
from collections.abc import Callable
from typing import Any, Protocol, cast

from aiohttp.http import HttpVersion10, HttpVersion11
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from aiohttp.web_server import Server

from antiphon.transports.guarded_socket import GuardedSocket, SocketFaults
from antiphon.transports.http.body import SKIPPED, BodyRefused, read_body
from antiphon.transports.http.exchange import (
    Exchange,
    Handler,
    Head,
    Headers,
    Limits,
    Reply,
    plain,
    wants_websocket,
)
from antiphon.transports.http.incomplete_input import IncompleteInput
from antiphon.transports.http.request_counts import RequestCounts

FIELD = 16 * 1024
"""Bytes of the request line, and of each header."""
FIELDS = 100
READ_SIZE = 64 * 1024
LAST_SECONDS = 2.0
"""Seconds for which the server reads the rest of a refused body, so that the client reads the refusal."""
SERVER = {"Server": "antiphon"}
RESERVE = 64
"""File descriptors that clients cannot use: the process needs them for files and child processes."""

Upgrade = Callable[[Head, BaseRequest], Reply | None]
"""Opens the WebSocket that a request asks for, or returns the refusal."""


class ServerHandler(Handler, Protocol):
    def refused(self, head: Head, status: int) -> None:
        """Note that the server refused a request itself: it was malformed, too large or too slow."""


class HttpSocket(RequestHandler):
    def __init__(self, requests: HttpRequests) -> None:
        limits = requests.limits
        super().__init__(
            requests.server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=limits.idle_seconds + limits.head_seconds,  # the deadlines below are shorter
            access_log=None,  # type: ignore[arg-type]  # aiohttp accepts None
            max_line_size=min(FIELD, limits.head),
            max_field_size=min(FIELD, limits.head),
            max_headers=FIELDS,
            lingering_time=LAST_SECONDS,
            read_bufsize=READ_SIZE,
            auto_decompress=False,  # the bound is for the body as sent
        )
        self._requests = requests
        self._exchange: Exchange | None = None
        self._answered = 0
        """Answered requests, of those that aiohttp has read."""
        self._head_size = 0
        """Bytes of an incomplete head; 0 if there is none."""
        self._ahead = 0
        """Bytes that came behind the request that is being answered."""
        self._timer: asyncio.TimerHandle | None = None
        self.peer = ""
        """The address at the other end of the socket."""

    # --- the socket --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        guarded = cast(GuardedSocket, transport)
        self.peer = guarded.peer
        if not self._requests.has_descriptors(guarded.get_extra_info("socket"), guarded.peer):
            guarded.abort()
            return
        self._expect(self._requests.limits.head_seconds)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        heads, current = self._request_count, self._current_request
        if current is not None and current.content.is_eof():
            self._ahead += len(data)
            if self._ahead > self._requests.limits.head and not self._buffer_paused:
                self._pause_reading_for_buffer()  # aiohttp continues with the next request
        if data and self._idle:
            if not self._head_size:
                self._expect(self._requests.limits.head_seconds)
            self._head_size += len(data)
        super().data_received(data)
        if self._request_count > heads:
            self._head_size = 0
            self._expect(None)
        elif self._head_size > self._requests.limits.head:
            self.refuse_head(431)

    def eof_received(self) -> None:
        if self._exchange is not None:
            self._exchange.lose()  # a client that closes its side gets no response

    def connection_lost(self, exc: BaseException | None) -> None:
        self._expect(None)
        exchange, self._exchange = self._exchange, None
        super().connection_lost(exc)
        if exchange is not None:
            exchange.lose()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._exchange is not None:
            self._exchange.on_room()

    @property
    def upgrading(self) -> bool:
        """Whether aiohttp stopped reading after the request, because it asks for another protocol."""
        return self._upgraded

    def hand_over(self, protocol: asyncio.Protocol) -> None:
        """Give the socket to another protocol, with the input after the request."""
        transport, unread = cast(GuardedSocket, self.transport), self._message_tail
        self.transport = None
        self.connection_lost(None)  # aiohttp releases the socket
        transport.set_protocol(protocol, unread)

    # --- the deadline of a head --------------------------------------------------------------------

    @property
    def _idle(self) -> bool:
        """Whether the next input is a head, and not the body of an earlier request."""
        return self._answered == self._request_count and not (self._close or self._force_close)

    def _expect(self, seconds: float | None) -> None:
        """Set the deadline of the next head; `None` removes it."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self._loop.call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        if self._head_size:
            self.refuse_head(408)
        elif self.transport is not None and self.transport.get_write_buffer_size():
            self._expect(self._requests.limits.idle_seconds)  # the client is still reading the response
        else:
            self.force_close()  # no request was sent

    def refuse_head(self, status: int) -> None:
        """Refuse a head that is incomplete, and close the socket."""
        self._requests.refused(Head(peer=self.peer), status)
        reply, transport = plain(status), self.transport
        self._expect(None)
        self.close()
        if transport is not None:
            lines = [f"HTTP/1.1 {status} {reply.phrase}", "Connection: close"]
            lines += [f"{name}: {value}" for name, value in {**SERVER, **reply.measured}.items()]
            transport.write("\r\n".join([*lines, "", ""]).encode() + reply.body)
            transport.close()

    # --- one request after another -----------------------------------------------------------------

    @contextlib.contextmanager
    def answering(self, exchange: Exchange) -> Any:
        self._expect(None)
        self._exchange, self._ahead = exchange, 0
        try:
            yield
        finally:
            self._exchange = None
            self._answered += 1
            if self.transport is not None and self._answered == self._request_count:
                self._expect(self._requests.limits.idle_seconds)

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> StreamResponse:
        """Respond to a malformed request (400), or to an exception of a handler."""
        if status == 400 and isinstance(exc, LineTooLong):
            status = 431
        if status < 500:
            self._requests.refused(Head(peer=self.peer), status)
        elif exc is not None and not isinstance(exc, ConnectionError):
            self._requests.faults.note(exc, f"request of {self.peer}")
        if request.writer.output_size > 0:
            raise ConnectionError("the response was partly sent; closing the socket")
        response = as_response(plain(status))
        response.force_close()
        return response

    def log_exception(self, *args: Any, **kw: Any) -> None:
        error = kw.get("exc_info")
        if isinstance(error, BaseException):
            self._requests.faults.note(error, f"peer {self.peer}")


class HttpRequests:
    """Answers the requests of all sockets of a server."""

    def __init__(
        self, handler: ServerHandler, limits: Limits, incomplete: IncompleteInput, upgrade: Upgrade
    ) -> None:
        self._handler = handler
        self.limits = limits
        self.counts = RequestCounts()
        self.faults = SocketFaults()
        self._incomplete = incomplete
        self._upgrade = upgrade
        self.server = Server(self._handle)
        """aiohttp's registry of open sockets."""

    def refused(self, head: Head, status: int) -> None:
        """Count a refusal that the handler has not seen, and report it to the handler."""
        self.counts.add(head.method, status)
        self._handler.refused(head, status)

    def has_descriptors(self, handle: Any, peer: str) -> bool:
        """Return whether a new socket leaves `RESERVE` file descriptors. The kernel assigns the lowest free
        number, so a high number means that nearly all are in use."""
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if (
            most == resource.RLIM_INFINITY
            or handle is None
            or handle.fileno() < most - min(RESERVE, most // 4)
        ):
            return True
        error = OSError(errno.EMFILE, f"fewer than {RESERVE} of {most} file descriptors are left")
        self.faults.note(error, f"socket of {peer} closed")
        return False

    async def _handle(self, request: BaseRequest) -> StreamResponse:
        socket = cast(HttpSocket, request.protocol)
        if request.version < HttpVersion10:  # aiohttp would answer `HTTP/0.9`
            socket.refuse_head(400)
            return Response()
        head = read_head(request, socket.peer)
        exchange = Exchange(head, socket, chunked=request.version >= HttpVersion11)
        with socket.answering(exchange):
            refusal = self._check_head(request)
            if refusal is not None:
                self._handler.refused(head, refusal.status)
            else:
                refusal = self._handler.admit(head)
            if refusal is not None:
                return self._respond(head, refusal, close=True)
            if wants_websocket(head):
                return self._open_websocket(head, request)
            try:
                await self._hand_over(exchange, request)
            except BodyRefused as refused:
                self._handler.refused(head, refused.reply.status)
                return self._respond(head, refused.reply, close=not refused.complete)
            return await self._answer(exchange, request)

    def _check_head(self, request: BaseRequest) -> Reply | None:
        """Return the refusal of a head that no handler may see, else `None`."""
        size = len(request.raw_path) + sum(len(name) + len(value) + 4 for name, value in request.raw_headers)
        if size > self.limits.head:
            return plain(431)
        try:
            request.raw_path.encode()
            for value in request.headers.values():
                value.encode()
        except UnicodeEncodeError:
            return plain(400, "A header is not UTF-8.")
        if not request.raw_path.startswith("/"):
            return plain(400, "The target of a request is a path.")
        return None

    def _open_websocket(self, head: Head, request: BaseRequest) -> StreamResponse:
        refused = plain(400) if request.can_read_body else self._upgrade(head, request)
        if refused is not None:
            self._handler.refused(head, refused.status)
            return self._respond(head, refused, close=True)
        self.counts.add(head.method, 101)
        return Response()  # aiohttp does not write it: it has no socket any more

    async def _hand_over(self, exchange: Exchange, request: BaseRequest) -> None:
        """Read the body, count it until the handler is done with it, and keep it no longer than that."""
        head, body = exchange.head, b""
        bound = self.limits.body_of(head)
        most = bound * (SKIPPED if head.most is None else 1)
        with self._incomplete.counting(head.who) as resize:
            if request.can_read_body:
                seconds = self.limits.body_seconds
                body = await read_body(request, bound=bound, most=most, seconds=seconds, resize=resize)
            try:
                await self._handler.answer(exchange, body)
            except Exception as error:
                self.faults.note(error, f"{head.method} {head.path}: handler failed")
                exchange.abort()
                raise ConnectionError(f"the handler of {head.method} {head.path} failed") from error

    async def _answer(self, exchange: Exchange, request: BaseRequest) -> StreamResponse:
        head = exchange.head
        begun = await exchange.begun
        if isinstance(begun, Reply):
            return self._respond(head, begun)
        self.counts.add(head.method, 200)
        response = StreamResponse(headers={**begun, **SERVER})
        await response.prepare(request)
        exchange.flush()
        await exchange.ended
        await response.write_eof()
        return response

    def _respond(self, head: Head, reply: Reply, *, close: bool = False) -> Response:
        self.counts.add(head.method, reply.status)
        response = as_response(reply)
        if close:
            response.force_close()
        return response


def as_response(reply: Reply) -> Response:
    return Response(status=reply.status, body=reply.body or None, headers={**reply.headers, **SERVER})


def read_head(request: BaseRequest, peer: str) -> Head:
    """Return the head of a request from the address `peer`."""
    headers = Headers((name, _as_utf8(value)) for name, value in request.headers.items())
    return Head(request.method, _as_utf8(request.raw_path).partition("?")[0], headers, peer=peer)


def _as_utf8(text: str) -> str:
    """Replace bytes that aiohttp could not decode, so that the text can be encoded again."""
    return text.encode(errors="surrogateescape").decode(errors="replace")
