"""WebSocket transport: the sans-I/O core of `websockets` in Antiphon's asyncio shell.

The shell sends the frames of one tick in one write, and lets a hub send the same prepared bytes to many
clients. `connect_websocket` opens a client's WebSocket; `websocket_server` makes the transport after the
handshake. One JSON-RPC frame is one text frame; binary frames are ignored (WS-02). Compression is off by
default: on loopback and LAN, deflate takes more time than it saves.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

from websockets import ClientProtocol, ServerProtocol
from websockets.exceptions import InvalidStatus, InvalidURI, WebSocketException
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory, PerMessageDeflate
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN
from websockets.uri import parse_uri

from antiphon.errors import LinkLost, LinkRefused, one_line
from antiphon.jsonrpc.lines import DEFAULT_BOUND, Received
from antiphon.jsonrpc.oversized import HEAD, OversizedFrame, describe_oversized
from antiphon.transports.base import AUTH_REFUSALS, OUTBOX_HIGH, OUTBOX_LOW, Framing, set_reading
from antiphon.transports.buffered import BufferedTransport
from antiphon.transports.guarded_socket import GuardedSocket, SocketBounds, SocketEnded, SocketFaults
from antiphon.transports.http.incomplete_input import IncompleteInput
from antiphon.transports.sliced_writer import LARGE, SlicedWriter
from antiphon.transports.websocket_gate import BoundedDeflate, FrameGate, TooLargeFrame

CONNECT_DEADLINE = 15.0
CLOSE_DEADLINE = 2.0
PING_INTERVAL = 20.0
PING_DEADLINE = 60.0
TRY_LATER = 1013
CLIENT = SocketBounds(server=False)


def text_frames(frames: Sequence[bytes]) -> bytes:
    """Encode frames as a server does: unfragmented and unmasked, so that all clients get the same bytes."""
    pieces = []
    for frame in frames:
        size = len(frame)
        if size < 126:
            pieces.append(b"\x81%c" % size)
        elif size < 65536:
            pieces.append(b"\x81\x7e" + size.to_bytes(2))
        else:
            pieces.append(b"\x81\x7f" + size.to_bytes(8))
        pieces.append(frame)
    return b"".join(pieces)


class CloseWebSocket(Exception):
    """Raised by a filter to close the WebSocket with a code and a reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class FrameFilter(Protocol):
    """Sees each frame of a server's WebSocket, in both directions."""

    def receive(self, frames: list[Received]) -> tuple[list[Received], list[bytes]]:
        """Return the received frames to pass on, and responses to send at once. Raises `CloseWebSocket`."""

    def answered(self, frame: bytes) -> None:
        """Process a frame that is sent."""


class WebSocketTransport(BufferedTransport, asyncio.Protocol):
    """One WebSocket, as client or server."""

    def __init__(
        self,
        protocol: ClientProtocol | ServerProtocol,
        *,
        bound: int,
        ping_interval: float | None,
        ping_deadline: float,
        frame_filter: FrameFilter | None = None,
        incomplete: IncompleteInput | None = None,
    ) -> None:
        """`bound`: bytes of the largest message that is accepted.
        `frame_filter`: filters the frames of a server's WebSocket.
        `incomplete`: counts the bytes of incomplete messages of a server's clients.
        """
        super().__init__()
        self._protocol = protocol
        self._serves = isinstance(protocol, ServerProtocol)
        self._filter = frame_filter
        self._incomplete = incomplete
        self._incomplete_size = 0
        self._transport: asyncio.Transport
        self._writer = SlicedWriter(lambda data: self._transport.write(data))
        self._ends = False
        """Whether to close the socket once everything is written."""
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._lost = asyncio.Event()
        self._partial: bytearray | None = None
        self._bound = bound
        self._gate = FrameGate(bound=bound, masked=True) if self._serves else None
        """Removes messages over the bound; `None` during the handshake."""
        self._handshake = b""
        """The last bytes of the handshake so far."""
        self._deflate: BoundedDeflate | None = None
        self._cut = False
        """Whether the current message is too large and is discarded."""
        self._ping_interval = ping_interval
        self._ping_deadline = ping_deadline
        self._ping_timer: asyncio.TimerHandle | None = None
        self._pinged_at: float | None = None
        self.handshake_response = b""
        """The response to the handshake, which a server writes first."""
        self.close_code = 1000
        """The code that `aclose` sends."""
        self.on_oversized: Callable[[OversizedFrame], None] = lambda _: None
        """Called with each message that is over the bound."""
        self.who: Any = None
        """The identity of the client, on a server."""
        self.peer = ""
        """The address of the client, on a server."""
        self.connection_id = ""
        """The server's `Acp-Connection-Id` of this WebSocket (WS-01)."""

    # --- the transport -----------------------------------------------------------------------------

    def send_now(self, frame: bytes) -> None:
        if self._filter is not None:
            self._filter.answered(frame)
        self._outbox.send_now(frame)

    @property
    def framing(self) -> Framing | None:
        return text_frames if self._plain else None

    def send_framed(self, data: bytes) -> None:
        if self._outbox.flush_before_write() and self._protocol.state is OPEN:
            self._writer.write(data)

    async def aclose(self, code: int | None = None) -> None:
        code = code or self.close_code
        self._end_reason = self._end_reason or "closed by this side"
        self._outbox.flush()
        self._outbox.close()
        self._delivery.drop()
        # The peer's close frame comes after the input that was not read.
        set_reading(self._transport, on=True)
        if self._protocol.state is OPEN:
            self._protocol.send_close(code)
            self._send_protocol_data()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_DEADLINE):
                    await self._lost.wait()
        finally:
            if not self._lost.is_set():  # after the deadline, or if the caller is cancelled
                self._transport.abort()
        await self._lost.wait()

    def _overflow(self, reason: str) -> None:
        self._end_reason = self._end_reason or reason
        self._transport.abort()

    def _flow(self) -> None:
        set_reading(self._transport, on=self._delivery.open)

    # --- the asyncio side --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=OUTBOX_HIGH, low=OUTBOX_LOW)
        if self._serves:
            self._transport.write(self.handshake_response)
            self._open()

    def data_received(self, data: bytes) -> None:
        if self._pinged_at is not None:
            self._pinged_at = self._loop.time()  # a pong waits behind a large message
        if self._gate is None:
            data = self._read_handshake(data)
        if self._gate is None:
            return
        frames: list[Received] = []
        for item in self._gate.feed(data):
            if isinstance(item, OversizedFrame):
                frames.append(item)
            elif isinstance(item, bytes):
                self._protocol.receive_data(item)
                self._take_events(frames)
            else:
                self._cut = True
                if self._deflate is not None:
                    self._deflate.cut()
        self._hand_over(frames)
        if self._incomplete is not None and not self._count_incomplete(self._gate.incomplete_size):
            self._refuse(CloseWebSocket(TRY_LATER, "too much is being sent with this token"))
            self._count_incomplete(0)
            self._transport.close()  # discards later input

    def _count_incomplete(self, size: int) -> bool:
        """Count the bytes of an incomplete message. Return whether the client is within its bound."""
        before, self._incomplete_size = self._incomplete_size, size
        return self._incomplete is None or self._incomplete.change(self.who, before, size)

    def _read_handshake(self, data: bytes) -> bytes:
        """Pass the server's handshake response to the core. Return the input after it."""
        known = len(self._handshake)
        seen = self._handshake + data
        end = seen.find(b"\r\n\r\n")
        if end < 0:
            self._handshake = seen[-3:]
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_data(data[: end + 4 - known])
            data = data[end + 4 - known :]
        self._hand_over(self._take_events([]))
        if end < 0:
            return b""
        if self._protocol.state is OPEN:
            self._gate = FrameGate(bound=self._bound, masked=False)
        elif data:  # the body of a refusal
            self._protocol.receive_data(data)
            self._take_events([])
        return data

    def eof_received(self) -> None:
        self._protocol.receive_eof()
        self._hand_over(self._take_events([]))

    def connection_lost(self, error: Exception | None) -> None:
        if self._ping_timer is not None:
            self._ping_timer.cancel()
        self._count_incomplete(0)
        if not self._opened.done():
            self._opened.set_exception(_open_failed(self._protocol.handshake_exc or error))
            self._opened.exception()  # asyncio would warn if the waiting caller was cancelled
        ended = str(error) if isinstance(error, SocketEnded) else ""
        self._end_reason = self._end_reason or ended or self._close_reason()
        self._writer.drop()
        self._outbox.close()
        self._delivery.end()
        self._lost.set()

    def pause_writing(self) -> None:
        self._writer.pause()
        self._outbox.pause()

    def resume_writing(self) -> None:
        if self._writer.resume():
            if self._ends:
                self._transport.close()
            self._outbox.resume()

    def _close_reason(self) -> str:
        if self._protocol.close_code not in (None, 1006):
            given = one_line(self._protocol.close_reason) if self._protocol.close_reason else ""
            return f"the WebSocket was closed with {self._protocol.close_code} {given}".rstrip()
        sent = self._protocol.close_sent
        if sent is not None:  # the peer broke the protocol, or sent too much
            return f"the WebSocket was closed by this side with {sent.code} {sent.reason}".rstrip()
        return "the WebSocket was lost without a close frame"

    def _take_events(self, frames: list[Received]) -> list[Received]:
        """Append the messages that the core has read to `frames`."""
        for event in self._protocol.events_received():
            if isinstance(event, Frame):
                self._take_frame(event, frames)
                event.data = b""  # the core keeps the last frame until the next one comes
            elif self._protocol.handshake_exc is None:
                self._open()
        self._send_protocol_data()
        return frames

    def _hand_over(self, frames: list[Received]) -> None:
        for frame in frames:
            if isinstance(frame, OversizedFrame):
                self.on_oversized(frame)
        if frames and not self._end_reason:
            self._deliver(frames)

    def _deliver(self, frames: list[Received]) -> None:
        if self._filter is not None:
            try:
                frames, answers = self._filter.receive(frames)
            except CloseWebSocket as closing:
                self._refuse(closing)
                return
            for answer in answers:
                self._outbox.send_now(answer)
        if frames:
            self._delivery.put(frames)

    def _refuse(self, closing: CloseWebSocket) -> None:
        """Send a close frame and end the delivery. The handler then calls `aclose`."""
        self._end_reason = f"the WebSocket was closed by this side with {closing.code} {closing.reason}"
        self._outbox.flush()
        self._outbox.close()
        if self._protocol.state is OPEN:
            self._protocol.send_close(closing.code, closing.reason)
            self._send_protocol_data()
        self._delivery.drop()

    def _take_frame(self, frame: Frame, frames: list[Received]) -> None:
        if isinstance(frame, TooLargeFrame):
            frames.append(self._inflated_too_large(bytes(frame.data)))
            self._partial = None
        elif self._cut and frame.fin and frame.opcode is Opcode.CONT:
            self._cut, self._partial = False, None
        elif frame.opcode is Opcode.TEXT and frame.fin:
            frames.append(bytes(frame.data))
        elif frame.opcode is Opcode.TEXT:
            self._partial = bytearray(frame.data)
        elif frame.opcode is Opcode.CONT and self._partial is not None:
            self._partial += frame.data
            if frame.fin:
                frames.append(bytes(self._partial))
                self._partial = None
        elif frame.opcode is Opcode.PONG:
            self._pinged_at = None

    def _inflated_too_large(self, head: bytes) -> OversizedFrame:
        """Describe a message that is too large once it is inflated. Its size is unknown."""
        known = bytes((self._partial or b"")[:HEAD]) or head
        return describe_oversized(known, b"", size=self._bound + 1, bound=self._bound)

    def _open(self) -> None:
        self._flow()  # input that came with the upgrade waits in the delivery, the rest in the socket
        for at, extension in enumerate(self._protocol.extensions):
            if isinstance(extension, PerMessageDeflate):
                self._deflate = BoundedDeflate(extension, bound=self._bound)
                self._protocol.extensions[at] = self._deflate
        if not self._opened.done():
            self._opened.set_result(None)
        if self._ping_interval is not None:
            self._ping_timer = self._loop.call_later(self._ping_interval, self._ping)

    def _ping(self) -> None:
        assert self._ping_interval is not None
        now = self._loop.time()
        # While this side does not read, a missing pong says nothing about the peer.
        if (
            self._pinged_at is not None
            and self._delivery.open
            and now - self._pinged_at > self._ping_deadline
        ):
            self._end_reason = f"no pong within {self._ping_deadline:g} s"
            self._transport.abort()
            return
        if self._pinged_at is None and self._protocol.state is OPEN:
            self._pinged_at = now
            self._protocol.send_ping(b"")
            self._send_protocol_data()
        self._ping_timer = self._loop.call_later(self._ping_interval, self._ping)

    # --- bytes out ---------------------------------------------------------------------------------

    @property
    def _plain(self) -> bool:
        """Whether this side sends frames unmasked and uncompressed."""
        return self._serves and not self._protocol.extensions

    def _write(self, frames: Sequence[bytes]) -> None:
        if self._protocol.state is not OPEN:
            return
        if self._plain and sum(map(len, frames)) < LARGE:
            self._writer.write(text_frames(frames))
        elif self._plain:
            for frame in frames:  # one write each: links with the same large frame share its bytes
                self._writer.write(text_frames((frame,)))
        else:
            for frame in frames:
                self._protocol.send_text(frame)
            self._send_protocol_data()

    def _send_protocol_data(self) -> None:
        pieces = self._protocol.data_to_send()
        if self._lost.is_set():
            return
        data = b"".join(pieces)
        if data:
            self._writer.write(data)
        if b"" in pieces:  # the core asks for the end of the stream
            self._ends = True
            if not self._writer.size:
                self._transport.close()  # even if the peer continues to send


def _open_failed(error: Exception | None) -> LinkLost:
    reason = f"no WebSocket was opened: {error or 'the server closed the socket'}"
    if isinstance(error, InvalidStatus) and error.response.status_code in AUTH_REFUSALS:
        return LinkRefused(reason, status=error.response.status_code)
    return LinkLost(reason)


async def connect_websocket(
    uri: str,
    *,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    bound: int = DEFAULT_BOUND,
    compression: bool = False,
    ping_interval: float | None = PING_INTERVAL,
    ping_deadline: float = PING_DEADLINE,
    deadline: float = CONNECT_DEADLINE,
) -> WebSocketTransport:
    """Open a WebSocket to `ws://` or `wss://`. Raises `LinkLost`, or `LinkRefused` if the server requires
    other credentials."""
    try:
        address = parse_uri(uri)
    except InvalidURI as error:
        raise LinkLost(
            f"expected a WebSocket address such as ws://host/path, got {uri!r}: {error}"
        ) from error
    if address.secure and tls is None:
        tls = ssl.create_default_context()
    if address.secure and tls is not None:
        # A context that was used for `https://` offers HTTP/2, and a proxy would choose it.
        tls.set_alpn_protocols(["http/1.1"])
    protocol = ClientProtocol(
        address,
        max_size=None,  # `FrameGate` bounds messages
        extensions=[ClientPerMessageDeflateFactory(server_no_context_takeover=True)] if compression else None,
    )
    request = protocol.connect()
    request.headers.update(headers or {})
    loop = asyncio.get_running_loop()
    made = WebSocketTransport(protocol, bound=bound, ping_interval=ping_interval, ping_deadline=ping_deadline)
    connected = False
    try:
        async with asyncio.timeout(deadline):
            await loop.create_connection(
                lambda: GuardedSocket(made, SocketFaults(), bounds=CLIENT),
                address.host,
                address.port,
                ssl=tls if address.secure else None,
            )
            connected = True
            protocol.send_request(request)
            made._send_protocol_data()
            await made._opened
    except BaseException as error:
        if connected:  # also if the handshake succeeds just when the caller is cancelled
            made._transport.abort()
        if isinstance(error, OSError | WebSocketException):
            raise LinkLost(f"cannot reach {uri}: {error or 'no answer in time'}") from error
        raise
    return made
