"""HttpTransport: an ACP connection over HTTP as a transport of the server.

The client sends frames with POST, and reads frames from streams. A lost stream does not end the connection; a
client that reads no stream for long does.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from antiphon.remote.frames import Outline, agreed_version, outline
from antiphon.remote.stream_router import StreamBounds, StreamRouter
from antiphon.transports.buffered import BufferedTransport
from antiphon.transports.http.event_stream import EventStream, Position
from antiphon.transports.http.exchange import Exchange

CLOSE_DEADLINE = 2.0


class HttpTransport(BufferedTransport):
    def __init__(self, bounds: StreamBounds, *, on_end: Callable[[HttpTransport], None]) -> None:
        super().__init__()
        self.id = secrets.token_urlsafe(16)
        self.close_code = 1000  # as a WebSocket has; HTTP does not send it
        self.who: Any = None
        """The identity of the client. Requests of other clients do not belong to the connection."""
        self.peer = ""
        """The address of the client."""
        self.reading = 0
        """Streams that the client reads."""
        self._bounds = bounds
        self._on_end = on_end
        self._open = asyncio.Event()
        self.router = StreamRouter(
            bounds,
            moved=self._stream_moved,
            ask=lambda request: self._delivery.put([request]),
            fail=self._end_soon,
        )
        self._initial: tuple[Any, asyncio.Future[bytes]] | None = None
        self._full = False
        self._ending = False
        self._moved = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._keeping: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None

    # --- the transport -----------------------------------------------------------------------------

    def _overflow(self, reason: str) -> None:
        self.end(reason)

    def _flow(self) -> None:
        self._open.set() if self._delivery.open or self._end_reason else self._open.clear()

    async def aclose(self) -> None:
        self._outbox.flush()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_DEADLINE):
                while not self._end_reason and any(
                    stream.waiting_size and (stream.receiver or session is None)
                    for session, stream in self.router.streams.items()
                ):
                    self._moved.clear()
                    await self._moved.wait()
        self._delivery.drop()
        self.end("closed by this side")

    def end(self, reason: str) -> None:
        """End the connection. Its sessions continue (HTTP-15, WS-04)."""
        if self._end_reason:
            return
        self._end_reason = reason
        self._outbox.close()
        self._stop_deadline()
        if self._keeping is not None:
            self._keeping.cancel()
        for stream in self.router.streams.values():
            stream.end()
        if self._initial is not None:
            self._initial[1].cancel()
        self._on_end(self)
        self._flow()
        self._moved.set()
        self._delivery.end()

    def _end_soon(self, reason: str) -> None:
        """Send no more frames, and end after the current call."""
        self._ending = True
        self._loop.call_soon(self.end, reason)

    # --- receiving ---------------------------------------------------------------------------------

    async def room(self) -> None:
        """Wait until the connection accepts another frame, or has ended."""
        while not self._open.is_set():  # a frame that waited before this one may have closed it again
            await self._open.wait()

    def initialize(self, frame: bytes, id: Any) -> asyncio.Future[bytes]:
        """Receive the first frame, and start the timers. Return the future of its response (HTTP-04)."""
        self._keep_alive()
        self._restart_deadline()
        answered: asyncio.Future[bytes] = self._loop.create_future()
        self._initial = id, answered
        self._delivery.put([frame])
        return answered

    def receive(self, frame: bytes, about: Outline, session: str | None) -> None:
        self.router.received(about, session)
        if not self.reading:
            self._restart_deadline()
        self._delivery.put([frame])

    # --- sending -----------------------------------------------------------------------------------

    def _write(self, frames: Sequence[bytes]) -> None:
        if self._ending:
            return
        touched: dict[int, EventStream] = {}
        for frame in frames:
            about = outline(frame)
            if self._initial is not None and about.is_response and about.id == self._initial[0]:
                self._initialized(frame)
            elif (stream := self.router.route(frame, about)) is not None:
                touched[id(stream)] = stream
        for stream in touched.values():
            stream.flush()
        self._check_waiting()

    def _initialized(self, frame: bytes) -> None:
        assert self._initial is not None
        answered, self._initial = self._initial[1], None
        self.router.turn_complete = (agreed_version(frame) or 1) < 2
        if not answered.done():
            answered.set_result(frame)

    # --- streams -----------------------------------------------------------------------------------

    def open_stream(self, session: str | None, exchange: Exchange, position: Position | None) -> bool:
        """Send a stream to a client. Return whether that is possible."""
        self._outbox.flush()  # all updates of an event are in the stream, or none
        stream = self.router.ready(session, position)
        if stream is None:
            return False
        exchange.on_gone = partial(self._left, stream, exchange)
        stream.attach(exchange)
        self._count_readers()
        self._check_waiting()
        return True

    def _left(self, stream: EventStream, exchange: Exchange) -> None:
        if stream.receiver is exchange:
            stream.receiver = None
            self._count_readers()

    def _count_readers(self) -> None:
        self.reading = sum(stream.receiver is not None for stream in self.router.streams.values())
        if not self._end_reason and not self._full:
            self._stop_deadline() if self.reading else self._restart_deadline()

    # --- bounds ------------------------------------------------------------------------------------

    def _restart_deadline(self) -> None:
        """Start the time again: the client has read something, or has closed its last stream."""
        self._stop_deadline()
        why = f"the client has read nothing for {self._bounds.stall:g} s"
        self._deadline = self._loop.call_later(self._bounds.stall, self.end, why)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def _stream_moved(self) -> None:
        self._moved.set()
        if self._full:
            self._restart_deadline()
        self._check_waiting()

    def _check_waiting(self) -> None:
        if self._end_reason or self._ending:
            return
        waiting = self.router.waiting
        if waiting > self._bounds.most:
            self._end_soon(f"the client has not read over {self._bounds.most} bytes")
        elif waiting >= self._bounds.waiting and not self._full:
            self._full = True
            self._outbox.pause()
            self._restart_deadline()
        elif waiting < self._bounds.waiting // 2 and self._full:
            self._full = False
            self._outbox.resume()
            self._count_readers()

    def _keep_alive(self) -> None:
        for stream in self.router.streams.values():
            stream.keep_alive()
        self._keeping = self._loop.call_later(self._bounds.keep_alive, self._keep_alive)
