"""GuardedSocket: four rules for every socket of a server, whichever protocol handles it.

1. An exception that one socket causes ends that socket only. `SocketFaults` counts it and logs a summary.
2. While more than `mark` bytes wait to be written, nothing is read. Beyond a hard bound the socket ends.
3. One turn of the event loop hands over a bounded amount of input; the rest waits for later turns.
4. A socket that makes no progress ends by a deadline.

A client's sockets keep only the first and third rule: a client and a server that both stop reading while they
write would wait for each other.

A `GuardedSocket` is the protocol of the asyncio transport, and the transport of the protocol that it guards.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any, cast

from msgspec import Struct

from antiphon.transports.base import OUTBOX_HIGH, OUTBOX_LOW, set_reading

logger = logging.getLogger("antiphon.transports")


class SocketBounds(Struct, frozen=True, kw_only=True):
    server: bool = True
    """Whether it is a server's socket, which also keeps the second and fourth rule."""
    mark: int = OUTBOX_HIGH
    """Bytes waiting to be written above which nothing is read."""
    low: int = OUTBOX_LOW
    """Bytes waiting to be written below which reading continues."""
    most: int = 8 * 1024 * 1024
    """Bytes that may be written in addition to those that waited when the mark was exceeded."""
    slice: int = 4096
    """Bytes handed over at a time."""
    turn: float = 0.002
    """Seconds after which no further slice is handed over in the same turn of the event loop."""
    stall: float = 60.0
    """Seconds in which the peer reads nothing while bytes wait for it."""
    silence: float = 150.0
    """Seconds without a byte in either direction; more than between two pings or keep-alives."""
    last: float = 2.0
    """Seconds that a closed socket waits for the peer: unread input would discard the last reply."""


class SocketEnded(ConnectionError):
    """The server ended the socket; the message says why."""


class SocketFaults:
    """Counts exceptions of sockets, and logs at most one line a minute."""

    def __init__(self, *, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._logged_at: float | None = None
        self._unlogged = 0
        self.total = 0

    def note(self, error: BaseException, about: str) -> None:
        """Count an exception. Log it unless another one was logged within the last minute."""
        self.total += 1
        now = self._clock()
        if self._logged_at is not None and now - self._logged_at < self._seconds:
            self._unlogged += 1
            return
        self._logged_at = now
        unlogged, self._unlogged = self._unlogged, 0
        also = f" ({unlogged} more since the last such line)" if unlogged else ""
        logger.warning("socket failed: %s: %s: %s%s", about, type(error).__name__, error, also)
        logger.debug("socket failed: traceback of the first one", exc_info=error)

    def close(self) -> None:
        """Log the number of exceptions that were not logged."""
        if self._unlogged:
            logger.warning("socket failed: %d more since the last such line", self._unlogged)
            self._unlogged = 0


class GuardedSocket(asyncio.Protocol, asyncio.Transport):
    def __init__(
        self,
        protocol: asyncio.Protocol,
        faults: SocketFaults,
        *,
        bounds: SocketBounds | None = None,
        sockets: set[GuardedSocket] | None = None,
    ) -> None:
        """The socket is in `sockets` while it is open."""
        super().__init__()
        self._protocol: asyncio.Protocol = protocol
        self._faults = faults
        self._bounds = bounds or SocketBounds()
        self._sockets = sockets if sockets is not None else set()
        self._loop = asyncio.get_running_loop()
        self._socket: asyncio.Transport
        self.peer = ""
        """The address of the peer without its port; empty if there is none."""
        self._pending = b""
        """Input that was read and not handed over."""
        self._at = 0
        """Bytes of `_pending` that were handed over."""
        self._scheduled = False
        self._over = False
        """Whether the end of the input was read."""
        self._lost: tuple[Exception | None] | None = None
        self._lost_reported = False
        """Whether `connection_lost` of the protocol was called."""
        self._gone: asyncio.Event | None = None
        self._paused = False
        """Whether the protocol called `pause_reading`."""
        self._full = False
        """Whether more than the mark waits to be written."""
        self._ceiling = 0
        self._reading = True
        self._closing = False
        self._eof_written = False
        self._why: SocketEnded | None = None
        self._read_bytes = self._written_bytes = 0
        self._look_timer: asyncio.TimerHandle | None = None
        self._close_timer: asyncio.TimerHandle | None = None
        self._seen = (0, 0)
        self._moved_at = self._taken_at = 0.0

    # --- the protocol of the real transport --------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast(asyncio.Transport, transport)
        self._sockets.add(self)
        self._socket.set_write_buffer_limits(high=self._bounds.mark, low=self._bounds.low)
        name = self.get_extra_info("peername")
        self.peer = str(name[0]) if isinstance(name, tuple) and name else ""
        if self._bounds.server:
            _end_when_unacknowledged(self.get_extra_info("socket"), self._bounds.stall)
            self._moved_at = self._taken_at = self._loop.time()
            self._look_later()
        self._call(self._protocol.connection_made, self)

    def data_received(self, data: bytes) -> None:
        self._read_bytes += len(data)
        if self._closing:
            return
        if not self._pending and self._takes_input and len(data) <= self._bounds.slice:
            self._call(self._protocol.data_received, data)
            return
        self._keep(data)
        if not self._scheduled:
            self._hand_on()

    def eof_received(self) -> bool:
        self._over = True
        if self._pending:
            return not self._secured  # a TLS transport closes in any case, and warns about True
        return self._report_end()

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = (error,)
        for timer in (self._look_timer, self._close_timer):
            if timer is not None:
                timer.cancel()
        if not self._pending or self._closing or not self._takes_input:
            self._report_lost()

    def pause_writing(self) -> None:
        self._full = self._bounds.server
        self._ceiling = self.get_write_buffer_size() + self._bounds.most
        self._flow()
        self._call(self._protocol.pause_writing)

    def resume_writing(self) -> None:
        self._full = False
        self._call(self._protocol.resume_writing)
        self._go_on()

    # --- input, a slice at a time ------------------------------------------------------------------

    @property
    def _takes_input(self) -> bool:
        return not (self._paused or self._full or self._lost_reported)

    def _keep(self, data: bytes) -> None:
        """Append input to `_pending`."""
        self._pending = self._pending[self._at :] + data
        self._at = 0

    def _go_on(self) -> None:
        if self._pending and self._takes_input and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._hand_on)
        self._flow()

    def _hand_on(self) -> None:
        self._scheduled = False
        until = time.perf_counter() + self._bounds.turn
        while self._pending and self._takes_input and not self._closing:
            end = self._at + self._bounds.slice
            part, self._at = self._pending[self._at : end], end
            if end >= len(self._pending):
                self._pending, self._at = b"", 0
            self._call(self._protocol.data_received, part)
            if time.perf_counter() >= until:
                break
        if self._closing:
            self._pending, self._at = b"", 0
        if not self._pending and not self._lost_reported:
            if self._lost is not None:
                self._report_lost()
            elif self._over and not self._report_end():
                self._socket.close()
        self._go_on()

    def _report_end(self) -> bool:
        """Report the end of the input to the protocol. Return whether it wants to write."""
        if self._closing:
            return False
        return bool(self._call(self._protocol.eof_received))

    def _report_lost(self) -> None:
        assert self._lost is not None
        self._lost_reported = self._closing = True
        self._pending, self._at = b"", 0
        self._call(self._protocol.connection_lost, self._why or self._lost[0])
        self._sockets.discard(self)
        if self._gone is not None:
            self._gone.set()

    def _flow(self) -> None:
        wanted = (self._takes_input and not self._pending) or self._closing
        if wanted != self._reading:
            self._reading = wanted
            set_reading(self._socket, on=wanted)

    # --- faults ------------------------------------------------------------------------------------

    def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        except Exception as error:
            self._fail(error)
            return None

    def _fail(self, error: Exception) -> None:
        self._faults.note(error, f"peer {self.peer or 'unknown'}")
        self.end("an exception ended the socket")

    def end(self, why: str) -> None:
        """Abort the socket; the protocol gets `why` as a `SocketEnded`."""
        if self._why is None:
            self._why = SocketEnded(why)
        self.abort()

    # --- deadlines ---------------------------------------------------------------------------------

    def _look_later(self) -> None:
        bounds = self._bounds
        self._look_timer = self._loop.call_later(min(bounds.stall, bounds.silence) / 4, self._look)

    def _look(self) -> None:
        now, waiting = self._loop.time(), self.get_write_buffer_size()
        taken = self._written_bytes - waiting
        read, before = self._seen
        if taken != before or not waiting:
            self._taken_at = now
        if taken != before or self._read_bytes != read or self._paused:
            self._moved_at = now  # while the protocol does not read, the peer cannot make progress
        self._seen = self._read_bytes, taken
        if now - self._taken_at >= self._bounds.stall:
            self.end(f"the peer read nothing of {waiting} bytes for {self._bounds.stall:g} s")
        elif now - self._moved_at >= self._bounds.silence:
            self.end(f"no bytes in either direction for {self._bounds.silence:g} s")
        else:
            self._look_later()

    # --- the transport of the protocol -------------------------------------------------------------

    def set_protocol(self, protocol: asyncio.BaseProtocol, unread: bytes = b"") -> None:
        """Give the socket to another protocol. It gets `unread` first: input that the previous protocol got
        and did not use."""
        self._protocol = cast(asyncio.Protocol, protocol)
        self._paused = False
        self._pending, self._at = unread + self._pending[self._at :], 0
        self._call(protocol.connection_made, self)
        if self._full:
            self._call(protocol.pause_writing)
        self._go_on()

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self._closing or self._eof_written:
            return
        if self._full and self.get_write_buffer_size() > self._ceiling:
            self.end(f"over {self._bounds.most} bytes were written to a peer that does not read")
            return
        self._written_bytes += len(data)
        try:
            self._socket.write(data)
        except Exception as error:
            self._fail(error)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        self._eof_written = True
        try:
            self._socket.write_eof()
        except OSError:
            self.abort()  # the peer closed first
        except Exception as error:
            self._fail(error)

    def close(self) -> None:
        """Write the waiting bytes, and end. Input that comes meanwhile is discarded."""
        if self._closing:
            return
        self._closing = True
        self._flow()
        if self._secured or self._over or self._socket.is_closing():
            self._call(self._socket.close)
        else:
            self.write_eof()
        if self._lost is None:
            self._close_later(self.get_write_buffer_size())

    def _close_later(self, waiting: int) -> None:
        self._close_timer = self._loop.call_later(self._bounds.last, self._close_anyway, waiting)

    def _close_anyway(self, waiting: int) -> None:
        left = self.get_write_buffer_size()
        if left or waiting:  # a slow peer may still read; `stall` ends one that does not
            self._close_later(left)
        else:
            self.abort()

    def abort(self) -> None:
        self._closing = True
        with contextlib.suppress(Exception):
            self._socket.abort()

    async def aclose(self, seconds: float) -> None:
        """End the socket. Waiting bytes get so many seconds to be written."""
        if self._lost_reported:
            return
        self._gone = asyncio.Event()
        self.close() if self.get_write_buffer_size() else self.abort()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._gone.wait()
        self.abort()
        await self._gone.wait()

    def is_closing(self) -> bool:
        return self._closing or self._socket.is_closing()

    def pause_reading(self) -> None:
        self._paused = True
        self._flow()

    def resume_reading(self) -> None:
        self._paused = False
        self._go_on()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Ignored: `SocketBounds` has the limits."""

    def get_write_buffer_size(self) -> int:
        try:
            return self._socket.get_write_buffer_size()
        except Exception:
            return 0  # a closed transport may raise

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        try:
            return self._socket.get_extra_info(name, default)
        except Exception:
            return default

    @property
    def _secured(self) -> bool:
        return self.get_extra_info("ssl_object") is not None


def _end_when_unacknowledged(handle: Any, seconds: float) -> None:
    """Let the kernel end a socket whose peer acknowledges nothing, where it can (Linux)."""
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is not None and handle is not None:
        with contextlib.suppress(OSError, AttributeError):
            handle.setsockopt(socket.IPPROTO_TCP, option, int(seconds * 1000))
