"""HttpTransport: an HTTP connection of ACP as a transport, on the server's side.

Frames come by POST, and go out by streams. A stream that is cut does not end the connection; that nobody
reads from it for long does.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from antiphon.remote.frames import Outline, agreed_version, outline
from antiphon.remote.stream_router import Bounds, Outgoing
from antiphon.transports.http.event_stream import Position, Stream
from antiphon.transports.http.exchange import Exchange
from antiphon.transports.joined import JoinedTransport

CLOSE_DEADLINE = 2.0


class Patience:
    """Calls `over`, with the reason, when it has been waited for so long."""

    def __init__(self, seconds: float, over: Callable[[str], None]) -> None:
        self._seconds = seconds
        self._over = over
        self._timer: asyncio.TimerHandle | None = None

    def wait(self) -> None:
        """Something was read, or nobody is there any more: it is waited from here on."""
        self.stop()
        why = f"nobody has read from it for {self._seconds:g} s"
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._over, why)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class HttpTransport(JoinedTransport):
    def __init__(self, bounds: Bounds, *, on_end: Callable[[HttpTransport], None]) -> None:
        super().__init__()
        self.id = secrets.token_urlsafe(16)
        self.close_code = 1000  # of a WebSocket; over HTTP nobody is told
        self.who: Any = None
        """Whose connection it is: nobody else's requests belong to it."""
        self.peer = ""
        """The address it was opened from."""
        self.reading = 0
        """How many streams are read from."""
        self._bounds = bounds
        self._on_end = on_end
        self._open = asyncio.Event()
        self._outgoing = Outgoing(
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
        self._patience = Patience(bounds.stall, self.end)
        self._keeping = self._loop.call_later(bounds.keep_alive, self._keep_alive)
        self._patience.wait()

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
                    for session, stream in self._outgoing.streams.items()
                ):
                    self._moved.clear()
                    await self._moved.wait()
        self._delivery.drop()
        self.end("closed by this side")

    def end(self, reason: str) -> None:
        """The client has left, or is not heard of any more. Its sessions go on (HTTP-15, WS-04)."""
        if self._end_reason:
            return
        self._end_reason = reason
        self._outbox.close()
        self._patience.stop()
        self._keeping.cancel()
        for stream in self._outgoing.streams.values():
            stream.end()
        if self._initial is not None:
            self._initial[1].cancel()
        self._on_end(self)
        self._flow()
        self._moved.set()
        self._delivery.end()

    def _end_soon(self, reason: str) -> None:
        """Nothing more goes out; whoever sends just now is not disturbed."""
        self._ending = True
        self._loop.call_soon(self.end, reason)

    # --- what comes --------------------------------------------------------------------------------

    async def room(self) -> None:
        """Wait until another frame is taken, or none is any more."""
        await self._open.wait()

    def initialize(self, frame: bytes, id: Any) -> asyncio.Future[bytes]:
        """The first frame; its answer goes back with it (HTTP-04)."""
        answered: asyncio.Future[bytes] = self._loop.create_future()
        self._initial = id, answered
        self._delivery.put([frame])
        return answered

    def receive(self, frame: bytes, about: Outline, session: str | None) -> None:
        self._outgoing.heard(about, session)
        if not self.reading:
            self._patience.wait()
        self._delivery.put([frame])

    def asked_in(self, id: Any) -> str | None:
        """The session in which the client was asked what has this id (HTTP-09)."""
        return self._outgoing.asked_in(id)

    # --- what goes out -----------------------------------------------------------------------------

    def _write(self, frames: Sequence[bytes]) -> None:
        if self._ending:
            return
        touched: dict[int, Stream] = {}
        for frame in frames:
            about = outline(frame)
            if self._initial is not None and about.is_response and about.id == self._initial[0]:
                self._initialized(frame)
            elif (stream := self._outgoing.route(frame, about)) is not None:
                touched[id(stream)] = stream
        for stream in touched.values():
            stream.flush()
        self._weigh()

    def _initialized(self, frame: bytes) -> None:
        assert self._initial is not None
        answered, self._initial = self._initial[1], None
        self._outgoing.turn_complete = (agreed_version(frame) or 1) < 2
        if not answered.done():
            answered.set_result(frame)

    # --- who reads ---------------------------------------------------------------------------------

    def open_stream(self, session: str | None, exchange: Exchange, position: Position | None) -> bool:
        """Send a stream to whoever asks for it, if it can be had."""
        self._outbox.flush()  # an event that became several updates is there whole, or not at all
        stream = self._outgoing.ready(session, position)
        if stream is None:
            return False
        exchange.on_gone = partial(self._left, stream, exchange)
        stream.attach(exchange)
        self._count_readers()
        self._weigh()
        return True

    def _left(self, stream: Stream, exchange: Exchange) -> None:
        if stream.receiver is exchange:
            stream.receiver = None
            self._count_readers()

    def _count_readers(self) -> None:
        self.reading = sum(stream.receiver is not None for stream in self._outgoing.streams.values())
        if not self._end_reason and not self._full:
            self._patience.stop() if self.reading else self._patience.wait()

    # --- patience ----------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Bytes that nobody has read yet."""
        return self._outgoing.waiting

    def _stream_moved(self) -> None:
        self._moved.set()
        if self._full:
            self._patience.wait()
        self._weigh()

    def _weigh(self) -> None:
        if self._end_reason or self._ending:
            return
        waiting = self.waiting
        if waiting > self._bounds.most:
            self._end_soon(f"over {self._bounds.most} bytes that nobody reads")
        elif waiting >= self._bounds.waiting and not self._full:
            self._full = True
            self._outbox.pause()
            self._patience.wait()
        elif waiting < self._bounds.waiting // 2 and self._full:
            self._full = False
            self._outbox.resume()
            self._count_readers()

    def _keep_alive(self) -> None:
        for stream in self._outgoing.streams.values():
            stream.keep_alive()
        self._keeping = self._loop.call_later(self._bounds.keep_alive, self._keep_alive)
