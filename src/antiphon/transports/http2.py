"""HTTP/2: h2 in a shell of asyncio, many requests at a time over one socket (HTTP-03)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

from antiphon.transports.base import OUTBOX_HIGH, OUTBOX_LOW
from antiphon.transports.http2_exchange import Http2Exchange
from antiphon.transports.http_body import SKIPPED, Body
from antiphon.transports.http_exchange import (
    Begin,
    Handler,
    Head,
    Headers,
    Limits,
    Reply,
    peer_of,
)
from antiphon.transports.http_tally import Tally

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
WINDOW = 2**31 - 1
"""Bytes that a client may send before it waits for leave. What comes is read at once and bounded by the size
of a body, so a smaller window protects nothing; and some clients stall over a larger body."""
FIRST_WINDOW = 65535
"""The window of every connection to begin with."""
RESETS = 1000
"""Requests that may be taken back over one socket: who does nothing else wears us out."""


class Http2Protocol(asyncio.Protocol):
    def __init__(self, handler: Handler, begin: Begin, limits: Limits, tally: Tally) -> None:
        self._handler = handler
        self._begin = begin
        self._limits = limits
        self.tally = tally
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.h2.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: limits.streams,
                SettingCodes.MAX_HEADER_LIST_SIZE: limits.head,
                SettingCodes.ENABLE_CONNECT_PROTOCOL: 0,
                SettingCodes.INITIAL_WINDOW_SIZE: WINDOW,
            },
        )
        self._exchanges: dict[int, Http2Exchange] = {}
        self._resets = 0
        self._begun = False
        """Whether something came of which nothing can be made yet."""
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
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(WINDOW - FIRST_WINDOW)
        self.send()
        self._expect(self._limits.head_seconds)

    def data_received(self, data: bytes) -> None:
        try:
            events = self.h2.receive_data(data)
        except ProtocolError:
            self.send()  # what is wrong with it
            self.transport.close()
            return
        self._begun = not events
        for event in events:
            if self.transport.is_closing():
                return
            if isinstance(event, RequestReceived):
                self._take_head(event)
            elif isinstance(event, DataReceived):
                self._take_body(event)
            elif isinstance(event, StreamEnded):
                self._complete(event.stream_id)
            elif isinstance(event, StreamReset):
                self._reset(event.stream_id)
            elif isinstance(event, WindowUpdated | RemoteSettingsChanged):
                self._flush_all()
            elif isinstance(event, ConnectionTerminated):
                self.transport.close()
        self.send()

    def connection_lost(self, error: Exception | None) -> None:
        self._lose_all()
        self._expect(None)
        self.released()

    def _lose_all(self) -> None:
        for exchange in tuple(self._exchanges.values()):
            exchange.leave()
            exchange.lose()

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self._flush_all()

    def close(self) -> None:
        """No more requests; what is under way ends."""
        self._lose_all()
        if not self.transport.is_closing():
            self.h2.close_connection()
            self.send()
            self.transport.close()

    def send(self) -> None:
        data = self.h2.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def _flush_all(self) -> None:
        for exchange in tuple(self._exchanges.values()):
            exchange.flush()
            if not exchange.congested and not exchange.gone:
                exchange.on_room()
        self.send()

    # --- requests ----------------------------------------------------------------------------------

    def _take_head(self, event: RequestReceived) -> None:
        self._expect(None)
        pairs = cast(list[tuple[str, str]], event.headers or [])
        pseudo = {name: value for name, value in pairs if name.startswith(":")}
        headers = [(name, value) for name, value in pairs if not name.startswith(":")]
        if ":authority" in pseudo:
            headers = [("host", pseudo[":authority"]), *(pair for pair in headers if pair[0] != "host")]
        path = pseudo.get(":path", "").partition("?")[0]
        head = Head(pseudo.get(":method", ""), path, Headers(headers), peer=self._peer)
        exchange = self._exchanges[event.stream_id] = Http2Exchange(head, self, event.stream_id)
        refused = self._handler.admit(head)
        if refused is not None:
            exchange.reply(refused)
        else:
            exchange.received = Body(self._limits.body_of(head))
            length = _length(head.headers)
            if length > self._most_read(exchange):
                self.refuse(exchange, exchange.received.refusal(length))
            else:
                exchange.expect(self._limits.body_seconds)

    def _most_read(self, exchange: Http2Exchange) -> int:
        """Bytes of a body that are read, if only to be thrown away; nothing is of whoever comes."""
        return exchange.received.bound * (SKIPPED if exchange.head.most is None else 1)

    def _take_body(self, event: DataReceived) -> None:
        self.h2.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)
        exchange = self._exchanges.get(event.stream_id)
        if exchange is None:
            return
        body = exchange.received
        goes_on = body.take(event.data or b"")
        if body.size > self._most_read(exchange):
            self.refuse(exchange, body.refusal())
        elif goes_on:
            exchange.expect(self._limits.body_seconds)

    def refuse(self, exchange: Http2Exchange, reply: Reply) -> None:
        self._handler.refused(exchange.head, reply.status)
        exchange.reply(reply)

    def _complete(self, stream_id: int) -> None:
        exchange = self._exchanges.get(stream_id)
        if exchange is not None:
            exchange.expect(None)
            body = exchange.body()
            if exchange.received.over:
                self.refuse(exchange, exchange.received.refusal())
            else:
                self._begin(exchange, body)

    def _reset(self, stream_id: int) -> None:
        self._resets += 1
        if self._resets > RESETS:
            self.h2.close_connection(ErrorCodes.ENHANCE_YOUR_CALM)
            self.send()
            self.transport.close()
        exchange = self._exchanges.get(stream_id)
        if exchange is not None:
            exchange.leave()
            exchange.lose()

    def forget(self, stream_id: int) -> None:
        if self._exchanges.pop(stream_id, None) is not None and not self._exchanges:
            self._expect(self._limits.idle_seconds)

    def _expect(self, seconds: float | None) -> None:
        """Somebody asks for something so soon, or the socket is closed."""
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = None if seconds is None else loop.call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        if self._begun:  # a head, to which there is no answer before it is whole
            self._handler.refused(Head(peer=self._peer), 408)
            self.tally.add("", 408)
        self.close()


def _length(headers: Headers) -> int:
    given = headers.get("Content-Length", "0")
    return int(given) if given.isdecimal() else 0
