"""HttpSocket: one socket that speaks HTTP/1.1, read and written by aiohttp.

aiohttp parses requests, keeps connections alive and writes responses. Here are the deadline of a head, the
refusal of what is no request, and the way from a request of aiohttp's to an `Exchange` and its handler.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import resource
from collections.abc import Callable, Mapping
from typing import Any, cast

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
from antiphon.transports.http.held_bytes import HeldBytes
from antiphon.transports.http.tally import Tally

FIELD = 16 * 1024
"""Bytes of the request line, and of one header."""
FIELDS = 100
READ_SIZE = 64 * 1024
LAST_SECONDS = 2.0
"""Seconds for which the rest of a refused body is read, so that the client reads the refusal."""
SERVER = {"Server": "antiphon"}
RESERVE = 64
"""File descriptors that clients cannot take: the process needs them for files and child processes."""

Upgrade = Callable[[Head, BaseRequest], Reply | None]
"""Opens the WebSocket that a request asks for, or answers why not."""


class HttpSocket(RequestHandler):
    def __init__(self, requests: HttpRequests) -> None:
        limits = requests.limits
        super().__init__(
            requests.server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=limits.idle_seconds + limits.head_seconds,  # the deadlines here come first
            access_log=None,  # type: ignore[arg-type]  # aiohttp's word for none
            max_line_size=min(FIELD, limits.head),
            max_field_size=min(FIELD, limits.head),
            max_headers=FIELDS,
            lingering_time=LAST_SECONDS,
            read_bufsize=READ_SIZE,
            auto_decompress=False,  # a body is bounded as it was sent
        )
        self._requests = requests
        self._exchange: HttpExchange | None = None
        self._answered = 0
        """Requests that were answered, of those that aiohttp has read."""
        self._head_size = 0
        """Bytes of the head that has begun; 0 where none has."""
        self._timer: asyncio.TimerHandle | None = None
        self.peer = ""
        """The address at the other end of the socket."""

    # --- the socket --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        guarded = cast(GuardedSocket, transport)
        self.peer = guarded.peer
        if not self._requests.has_descriptors(guarded):
            guarded.abort()
            return
        self._expect(self._requests.limits.head_seconds)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        heads = self._request_count
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
            self._exchange.lose()  # a client that does not wait for the response does not get one

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
        """Whether aiohttp reads nothing behind the request, because it asks for another protocol."""
        return self._upgraded

    def hand_over(self, protocol: asyncio.Protocol) -> None:
        """Let a protocol that is not HTTP go on with the socket, from behind the request."""
        transport, unread = cast(GuardedSocket, self.transport), self._message_tail
        self.transport = None
        self.connection_lost(None)  # for aiohttp
        transport.set_protocol(protocol, unread)

    # --- the deadline of a head --------------------------------------------------------------------

    @property
    def _idle(self) -> bool:
        """Whether what comes next is a head, and not the body of a request that was read."""
        return self._answered == self._request_count and not (self._close or self._force_close)

    def _expect(self, seconds: float | None) -> None:
        """Set the time until which the next head has to be there."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self._loop.call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        if self._head_size:
            self.refuse_head(408)
        elif self.transport is not None and self.transport.get_write_buffer_size():
            self._expect(self._requests.limits.idle_seconds)  # the client still reads the response
        else:
            self.force_close()  # nothing was asked

    def refuse_head(self, status: int) -> None:
        """Answer a head that is not complete."""
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
    def answering(self, exchange: HttpExchange) -> Any:
        self._expect(None)
        self._exchange = exchange
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
        """Answer what is no request (400), and what a handler raised."""
        if status == 400 and isinstance(exc, LineTooLong):
            status = 431
        if status < 500:
            self._requests.refused(Head(peer=self.peer), status)
        elif exc is not None and not isinstance(exc, ConnectionError):
            self._requests.faults.note(exc, f"request of {self.peer}")
        if request.writer.output_size > 0:
            raise ConnectionError("the response has begun")
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
        self,
        handler: Handler,
        limits: Limits,
        tally: Tally,
        faults: SocketFaults,
        held: HeldBytes,
        upgrade: Upgrade | None = None,
    ) -> None:
        self._handler = handler
        self.limits = limits
        self._tally = tally
        self.faults = faults
        self._held = held
        self._upgrade = upgrade
        self.server = Server(self._handle)
        """Where aiohttp knows its sockets."""

    def refused(self, head: Head, status: int) -> None:
        """Note a refusal that the handler does not know of."""
        self._tally.add(head.method, status)
        self._handler.refused(head, status)

    def has_descriptors(self, transport: GuardedSocket) -> bool:
        """Return whether a new socket leaves `RESERVE` file descriptors. The kernel gives out the lowest free
        number, so a high one shows that nearly all are in use."""
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        handle = transport.get_extra_info("socket")
        if (
            most == resource.RLIM_INFINITY
            or handle is None
            or handle.fileno() < most - min(RESERVE, most // 4)
        ):
            return True
        error = OSError(errno.EMFILE, f"fewer than {RESERVE} of {most} file descriptors are left")
        self.faults.note(error, f"socket of {transport.peer} closed")
        return False

    async def _handle(self, request: BaseRequest) -> StreamResponse:
        socket = cast(HttpSocket, request.protocol)
        if request.version < HttpVersion10:  # aiohttp would answer `HTTP/0.9`
            socket.refuse_head(400)
            return Response()
        head = read_head(request, socket.peer)
        exchange = HttpExchange(head, request, socket)
        with socket.answering(exchange):
            refusal = self._misfit(request)
            if refusal is not None:
                self._handler.refused(head, refusal.status)
            else:
                refusal = self._handler.admit(head)
            if refusal is not None:
                return self._respond(head, refusal, close=True)
            if self._upgrade is not None and wants_websocket(head):
                return self._open_websocket(head, request, self._upgrade)
            try:
                body = await self._body(head, request)
            except BodyRefused as refused:
                self._handler.refused(head, refused.reply.status)
                return self._respond(head, refused.reply, close=not refused.complete)
            return await self._answer(exchange, request, body)

    def _misfit(self, request: BaseRequest) -> Reply | None:
        """How a request is refused, by its head, that no handler shall see."""
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

    def _open_websocket(self, head: Head, request: BaseRequest, upgrade: Upgrade) -> StreamResponse:
        refused = plain(400) if request.can_read_body else upgrade(head, request)
        if refused is not None:
            self._handler.refused(head, refused.status)
            return self._respond(head, refused, close=True)
        self._tally.add(head.method, 101)
        return Response()  # aiohttp has no socket any more that it could write it to

    async def _body(self, head: Head, request: BaseRequest) -> bytes:
        if not request.can_read_body:
            return b""
        bound = self.limits.body_of(head)
        return await read_body(
            request,
            bound=bound,
            most=bound * (SKIPPED if head.most is None else 1),
            seconds=self.limits.body_seconds,
            who=head.who,
            held=self._held,
        )

    async def _answer(self, exchange: HttpExchange, request: BaseRequest, body: bytes) -> StreamResponse:
        head = exchange.head
        try:
            await self._handler.answer(exchange, body)
        except Exception as error:
            self.faults.note(error, f"{head.method} {head.path} could not be answered")
            exchange.abort()
            raise ConnectionError("the request could not be answered") from error
        begun = await exchange.begun
        if isinstance(begun, Reply):
            return self._respond(head, begun)
        self._tally.add(head.method, 200)
        response = StreamResponse(headers={**begun, **SERVER})
        await response.prepare(request)
        exchange.flush()
        await exchange.ended
        await response.write_eof()
        return response

    def _respond(self, head: Head, reply: Reply, *, close: bool = False) -> Response:
        self._tally.add(head.method, reply.status)
        response = as_response(reply)
        if close:
            response.force_close()
        return response


def as_response(reply: Reply) -> Response:
    return Response(status=reply.status, body=reply.body or None, headers={**reply.headers, **SERVER})


def read_head(request: BaseRequest, peer: str) -> Head:
    """The head of a request. This is where its peer is named."""
    headers = Headers((name, _valid(value)) for name, value in request.headers.items())
    return Head(request.method, _valid(request.raw_path).partition("?")[0], headers, peer=peer)


def _valid(text: str) -> str:
    """Text that can be written down, whatever bytes aiohttp found."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


class HttpExchange(Exchange):
    def __init__(self, head: Head, request: BaseRequest, socket: HttpSocket) -> None:
        super().__init__(head)
        self._socket = socket
        self._chunked = request.version >= HttpVersion11
        loop = asyncio.get_running_loop()
        self.begun: asyncio.Future[Reply | Mapping[str, str]] = loop.create_future()
        """The whole response, or the headers of one whose body is written bit by bit."""
        self.ended: asyncio.Future[None] = loop.create_future()
        self._early: list[bytes] | None = []
        """Parts of the body that came before the headers were written."""

    def reply(self, reply: Reply) -> None:
        self._begin(reply)

    def begin(self, headers: Mapping[str, str]) -> None:
        self._begin(headers)

    def _begin(self, response: Reply | Mapping[str, str]) -> None:
        if not self.begun.done():
            self.begun.set_result(response)

    def write(self, data: bytes) -> None:
        if self._early is not None:
            self._early.append(data)
        elif data and not self.gone and self._socket.transport is not None:
            self._socket.transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def flush(self) -> None:
        """The headers are written: from now on, `write` writes."""
        early, self._early = self._early, None
        self.write(b"".join(early or ()))
        if not self.congested:
            self.on_room()

    def end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def abort(self) -> None:
        if self._socket.transport is not None:
            self._socket.transport.abort()

    @property
    def congested(self) -> bool:
        return bool(self._early) or self._socket.writing_paused

    def lose(self) -> None:
        super().lose()
        self._begin(Reply(500))  # whoever waits for it goes on; nobody reads it
        self.end()
