"""HTTP/1.1: h11 in a shell of asyncio, one request after another over one socket.

A request for a WebSocket is handed on as it came, socket and all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import cast

import h11

from antiphon.transports.base import OUTBOX_HIGH, OUTBOX_LOW
from antiphon.transports.http_body import SKIPPED, Body
from antiphon.transports.http_exchange import (
    Begin,
    Exchange,
    Handler,
    Head,
    Headers,
    Limits,
    Reply,
    peer_of,
    plain,
)
from antiphon.transports.http_tally import Tally

LAST_BYTES = 2.0
"""Seconds that somebody who was refused gets to notice it: a socket that is closed over what it still sends
would take the answer with it."""


class Http1Protocol(asyncio.Protocol):
    def __init__(
        self,
        handler: Handler,
        begin: Begin,
        limits: Limits,
        tally: Tally,
        upgrade: Callable[[Head], asyncio.Protocol] | None = None,
    ) -> None:
        """`upgrade` makes what takes over the socket of a WebSocket; it gets the head of the request."""
        self._handler = handler
        self._begin = begin
        self._limits = limits
        self._tally = tally
        self._upgrade = upgrade
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.head)
        self._raw = bytearray()
        """The head that is being read, as it came."""
        self._exchange: Http1Exchange | None = None
        self._body = Body(limits.body)
        self._ahead = 0
        """Bytes that came while a request is being answered."""
        self._method = ""
        """Of the request that is answered; empty where that is not known yet."""
        self._closing = False
        self._admitted = True
        """Whether the handler does not know of a refusal by itself."""
        self._timer: asyncio.TimerHandle | None = None
        self.released: Callable[[], None] = lambda: None
        """Called when the socket is no concern of this any more."""
        self.paused = False
        self.transport: asyncio.Transport
        self._peer = ""

    # --- the socket --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._peer = peer_of(transport)
        self.transport.set_write_buffer_limits(high=OUTBOX_HIGH, low=OUTBOX_LOW)
        self._expect(self._limits.head_seconds)

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        if self._exchange is not None and self._exchange.answering:
            self._ahead += len(data)
            if self._ahead > self._limits.head:  # nobody sends so much before it is answered
                self.transport.abort()
                return
        elif self._exchange is None:
            if not self._raw:
                self._expect(self._limits.head_seconds)
            self._raw += data
        self._h11.receive_data(data)
        self._advance()

    def eof_received(self) -> bool:
        if self._exchange is not None:
            self._exchange.lose()
        return False  # who does not wait for the answer does not get one

    def connection_lost(self, error: Exception | None) -> None:
        self._expect(None)
        self._closing = True
        self.released()
        if self._exchange is not None:
            self._exchange.lose()

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        if self._exchange is not None:
            self._exchange.on_room()

    def close(self) -> None:
        """No more requests; what is under way ends."""
        if self._exchange is not None:
            self._exchange.lose()
        self.transport.close()

    # --- a request ---------------------------------------------------------------------------------

    def _advance(self) -> None:
        try:
            while not self._closing:
                event = self._h11.next_event()
                if event in (h11.NEED_DATA, h11.PAUSED):
                    if self._h11.they_are_waiting_for_100_continue:
                        self._send(h11.InformationalResponse(status_code=100, headers=[]))
                    return
                if isinstance(event, h11.Request):
                    self._take_head(event)
                elif isinstance(event, h11.Data):
                    self._take_body(bytes(event.data))
                elif isinstance(event, h11.EndOfMessage):
                    self._expect(None)
                    assert self._exchange is not None
                    self._exchange.answering = True
                    if self._body.over:
                        self._handler.refused(self._exchange.head, 413)
                        self._exchange.reply(self._body.refusal())
                    else:
                        self._begin(self._exchange, self._body.whole())
                elif isinstance(event, h11.ConnectionClosed):
                    self.transport.close()
                    return
        except h11.RemoteProtocolError as error:
            self._refuse(plain(error.error_status_hint))

    def _take_head(self, request: h11.Request) -> None:
        raw, self._raw = bytes(self._raw), bytearray()
        target = request.target.decode("ascii", "replace")
        headers = Headers((name.decode("ascii"), _text(value)) for name, value in request.headers)
        head = Head(request.method.decode("ascii"), target.partition("?")[0], headers, peer=self._peer)
        self._method = head.method
        refused = self._handler.admit(head)
        self._admitted = refused is None
        if refused is not None:
            self._refuse(refused)
        elif self._upgrade is not None and wants_websocket(head):
            self._hand_over(self._upgrade(head), raw)
        else:
            self._exchange = Http1Exchange(head, self)
            self._body, self._ahead = Body(self._limits.body_of(head)), 0
            length = int(headers.get("Content-Length", "0"))
            asks = self._h11.they_are_waiting_for_100_continue
            if length > self._most_read or (asks and length > self._body.bound):
                self._refuse(self._body.refusal(length))
            else:
                self._expect(self._limits.body_seconds)

    @property
    def _most_read(self) -> int:
        """Bytes of a body that are read, if only to be thrown away; nothing is of whoever comes."""
        known = self._exchange is None or self._exchange.head.most is None
        return self._body.bound * (SKIPPED if known else 1)

    def _hand_over(self, protocol: asyncio.Protocol, raw: bytes) -> None:
        self._expect(None)
        self._closing = True
        self.released()
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        protocol.data_received(raw)

    def _take_body(self, data: bytes) -> None:
        goes_on = self._body.take(data)
        if self._body.size > self._most_read:
            self._refuse(self._body.refusal())
        elif goes_on:
            self._expect(self._limits.body_seconds)

    def _refuse(self, reply: Reply) -> None:
        """Answer without having read everything, and be done with this socket."""
        self._closing = True
        self._body = Body(0)
        if self._admitted:
            head = Head(peer=self._peer) if self._exchange is None else self._exchange.head
            self._handler.refused(head, reply.status)
        if self._h11.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._answer(reply, close=True)
        if self._exchange is not None:
            self._exchange.lose()
        if self.transport.is_closing():
            return
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self._expect(LAST_BYTES)
        else:
            self.transport.close()

    # --- an answer ---------------------------------------------------------------------------------

    def reply(self, reply: Reply) -> None:
        self._answer(reply, close=False)
        self.next()

    def _answer(self, reply: Reply, *, close: bool) -> None:
        headers = reply.measured
        if close:
            headers["Connection"] = "close"
        self._send(
            h11.Response(status_code=reply.status, headers=list(headers.items())),
            h11.Data(data=b"" if self._method == "HEAD" else reply.body),
            h11.EndOfMessage(),
        )
        self._tally.add(self._method, reply.status)

    def begin(self, headers: Mapping[str, str]) -> None:
        self._send(h11.Response(status_code=200, headers=list(headers.items())))
        self._tally.add(self._method, 200)

    def write(self, data: bytes) -> None:
        self._send(h11.Data(data=data))

    def end(self) -> None:
        self._send(h11.EndOfMessage())
        self.next()

    def _send(self, *events: h11.Event) -> None:
        self.transport.write(b"".join([self._h11.send(event) or b"" for event in events]))

    def next(self) -> None:
        """The next request, if there is to be one."""
        self._exchange, self._method = None, ""
        if self._h11.our_state is not h11.DONE or self._h11.their_state is not h11.DONE:
            self.transport.close()
            return
        self._h11.start_next_cycle()
        self._raw = bytearray(self._h11.trailing_data[0])
        self._expect(self._limits.head_seconds if self._raw else self._limits.idle_seconds)
        self._advance()

    # --- patience ----------------------------------------------------------------------------------

    def _expect(self, seconds: float | None) -> None:
        """What comes next comes so soon, or the socket is closed."""
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = None if seconds is None else loop.call_later(seconds, self.too_late)

    def too_late(self) -> None:
        if self._closing or (self._exchange is None and not self._raw):
            self.transport.abort() if self._closing else self.transport.close()
        else:
            self._refuse(self._body.refusal() if self._body.over else plain(408))


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def wants_websocket(head: Head) -> bool:
    return head.method == "GET" and head.headers.get("Upgrade", "").lower() == "websocket"


class Http1Exchange(Exchange):
    def __init__(self, head: Head, protocol: Http1Protocol) -> None:
        super().__init__(head)
        self._protocol = protocol
        self.answering = False

    def reply(self, reply: Reply) -> None:
        if not self.gone:
            self._protocol.reply(reply)

    def begin(self, headers: Mapping[str, str]) -> None:
        if not self.gone:
            self._protocol.begin(headers)

    def write(self, data: bytes) -> None:
        if not self.gone:
            self._protocol.write(data)

    def end(self) -> None:
        if not self.gone:
            self._protocol.end()

    def abort(self) -> None:
        self._protocol.transport.abort()

    @property
    def congested(self) -> bool:
        return self._protocol.paused
