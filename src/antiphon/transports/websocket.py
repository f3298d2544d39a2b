"""WebSocket as a transport: the sans-I/O core of `websockets` in an asyncio shell of our own.

The shell is ours because frames of one tick must leave in one write, and because a hub hands prepared
bytes to many clients; the core stays theirs. A client opens the WebSocket here; a server gets it when the
handshake is over (`websocket_server`). One JSON-RPC frame is one text frame; binary frames are
ignored (WS-02). Nothing is compressed unless asked: deflate costs more than loopback and LAN give back.
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

from antiphon.errors import LinkLost, LinkRefused
from antiphon.jsonrpc.lines import DEFAULT_BOUND, Received
from antiphon.jsonrpc.oversized import HEAD, Overlong, overlong
from antiphon.transports.base import OUTBOX_HIGH, OUTBOX_LOW, Framing, set_reading
from antiphon.transports.guarded_socket import GuardedSocket, SocketBounds, SocketEnded, SocketFaults
from antiphon.transports.http.held_bytes import HeldBytes
from antiphon.transports.joined import JoinedTransport
from antiphon.transports.paced import LARGE, PacedWriter
from antiphon.transports.websocket_gate import BoundedDeflate, FrameGate, TooLargeFrame

CONNECT_DEADLINE = 15.0
CLOSE_DEADLINE = 2.0
PING_INTERVAL = 20.0
PING_DEADLINE = 60.0
TRY_LATER = 1013
CLIENT = SocketBounds(server=False)

REFUSALS = (401, 403)


def text_frames(frames: Sequence[bytes]) -> bytes:
    """As a server writes them: whole and unmasked, so that they are the same for every client."""
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


class Closing(Exception):
    """Raised by a filter to close the WebSocket with a code and a reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class FrameFilter(Protocol):
    """Sees each frame of a server's WebSocket, in both directions."""

    def receive(self, frames: list[Received]) -> tuple[list[Received], list[bytes]]:
        """Return the received frames to pass on, and answers to send at once. Raises `Closing`."""

    def answered(self, frame: bytes) -> None:
        """See a frame that is sent."""


class WebSocketTransport(JoinedTransport, asyncio.Protocol):
    """One WebSocket, either side of it."""

    def __init__(
        self,
        protocol: ClientProtocol | ServerProtocol,
        *,
        bound: int,
        ping_interval: float | None,
        ping_deadline: float,
        frame_filter: FrameFilter | None = None,
        held: HeldBytes | None = None,
    ) -> None:
        """`bound`: bytes of the largest message that is accepted.
        `frame_filter`: what a server lets through before and after `initialize`.
        `held`: counts the bytes of messages that are not complete, on the server's side.
        """
        super().__init__()
        self._protocol = protocol
        self._serves = isinstance(protocol, ServerProtocol)
        self._filter = frame_filter
        self._held = held
        self._held_size = 0
        self._transport: asyncio.Transport
        self._paced = PacedWriter(lambda data: self._transport.write(data))
        self._ends = False
        """Whether this side's output ends once everything is written."""
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._lost = asyncio.Event()
        self._partial: bytearray | None = None
        self._bound = bound
        self._gate = FrameGate(bound=bound, masked=True) if self._serves else None
        """Lets messages through within the bound, once the handshake is over."""
        self._handshake = b""
        """The last bytes that were read of the handshake."""
        self._deflate: BoundedDeflate | None = None
        self._cut = False
        """Whether the message that is being read is thrown away: it is too large."""
        self._ping_interval = ping_interval
        self._ping_deadline = ping_deadline
        self._ping_timer: asyncio.TimerHandle | None = None
        self._pinged_at: float | None = None
        self.greeting = b""
        """What a server writes first: its answer to the handshake."""
        self.close_code = 1000
        """What the other side is told when this one closes it."""
        self.on_oversized: Callable[[Overlong], None] = lambda _: None
        """Called with each message that is over the bound."""
        self.who: Any = None
        """Whose link it is, on the server's side."""
        self.peer = ""
        """The address it came from."""
        self.connection_id = ""
        """What the server side names this link in `Acp-Connection-Id` (WS-01)."""

    # --- the transport -----------------------------------------------------------------------------

    def send_now(self, frame: bytes) -> None:
        if self._filter is not None:
            self._filter.answered(frame)
        self._outbox.send_now(frame)

    @property
    def framing(self) -> Framing | None:
        return text_frames if self._plain else None

    def send_framed(self, data: bytes) -> None:
        if self._outbox.clear_way() and self._protocol.state is OPEN:
            self._paced.write(data)

    async def aclose(self, code: int | None = None) -> None:
        code = code or self.close_code
        self._end_reason = self._end_reason or "closed by this side"
        self._outbox.flush()
        self._outbox.close()
        self._delivery.drop()
        # The other side's closing frame stands behind what we did not read.
        set_reading(self._transport, on=True)
        if self._protocol.state is OPEN:
            self._protocol.send_close(code)
            self._send_protocol_data()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_DEADLINE):
                    await self._lost.wait()
        finally:
            if not self._lost.is_set():  # in time, or when the caller is cancelled
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
            self._transport.write(self.greeting)
            self._open()

    def data_received(self, data: bytes) -> None:
        if self._pinged_at is not None:
            self._pinged_at = self._loop.time()  # a pong cannot come within a large message
        if self._gate is None:
            data = self._read_handshake(data)
        if self._gate is None:
            return
        frames: list[Received] = []
        for item in self._gate.feed(data):
            if isinstance(item, Overlong):
                frames.append(item)
            elif isinstance(item, bytes):
                self._protocol.receive_data(item)
                self._take_events(frames)
            else:
                self._cut = True
                if self._deflate is not None:
                    self._deflate.cut()
        self._hand_over(frames)
        if self._held is not None and not self._hold(self._gate.under_way):
            self._refuse(Closing(TRY_LATER, "too much is being sent with this token"))
            self._hold(0)
            self._transport.close()  # what still comes is not read

    def _hold(self, size: int) -> bool:
        """Count what there is of a message that is not complete; whether that is not too much."""
        before, self._held_size = self._held_size, size
        return self._held is None or self._held.change(self.who, before, size)

    def _read_handshake(self, data: bytes) -> bytes:
        """Let the core read the server's answer to the handshake; what is behind it."""
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
        elif data:  # the text of a refusal
            self._protocol.receive_data(data)
            self._take_events([])
        return data

    def eof_received(self) -> None:
        self._protocol.receive_eof()
        self._hand_over(self._take_events([]))

    def connection_lost(self, error: Exception | None) -> None:
        if self._ping_timer is not None:
            self._ping_timer.cancel()
        self._hold(0)
        if not self._opened.done():
            self._opened.set_exception(_not_opened(self._protocol.handshake_exc or error))
            self._opened.exception()  # whoever waits gets it; one that was cancelled does not
        ended = str(error) if isinstance(error, SocketEnded) else ""
        self._end_reason = self._end_reason or ended or self._why()
        self._paced.drop()
        self._outbox.close()
        self._delivery.end()
        self._lost.set()

    def pause_writing(self) -> None:
        self._paced.pause()
        self._outbox.pause()

    def resume_writing(self) -> None:
        if self._paced.resume():
            if self._ends:
                self._transport.close()
            self._outbox.resume()

    def _why(self) -> str:
        if self._protocol.close_code not in (None, 1006):
            said = f" {self._protocol.close_reason}" if self._protocol.close_reason else ""
            return f"the WebSocket was closed with {self._protocol.close_code}{said}"
        broken = self._protocol.close_sent
        if broken is not None:  # what came was against the rules, or too large
            return f"the WebSocket was closed by this side with {broken.code} {broken.reason}".rstrip()
        return "the WebSocket was cut"

    def _take_events(self, frames: list[Received]) -> list[Received]:
        """Add the messages that the core has read."""
        for event in self._protocol.events_received():
            if isinstance(event, Frame):
                self._take_frame(event, frames)
            elif self._protocol.handshake_exc is None:
                self._open()
        self._send_protocol_data()
        return frames

    def _hand_over(self, frames: list[Received]) -> None:
        for frame in frames:
            if isinstance(frame, Overlong):
                self.on_oversized(frame)
        if frames and not self._end_reason:
            self._deliver(frames)

    def _deliver(self, frames: list[Received]) -> None:
        if self._filter is not None:
            try:
                frames, answers = self._filter.receive(frames)
            except Closing as closing:
                self._refuse(closing)
                return
            for answer in answers:
                self._outbox.send_now(answer)
        if frames:
            self._delivery.put(frames)

    def _refuse(self, closing: Closing) -> None:
        """Close the socket; whoever serves it is told, and sees to its end."""
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

    def _inflated_too_large(self, head: bytes) -> Overlong:
        """A message that is too large once it is inflated; its size is not known."""
        known = bytes((self._partial or b"")[:HEAD]) or head
        return overlong(known, b"", size=self._bound + 1, bound=self._bound)

    def _open(self) -> None:
        self._flow()  # what comes together with the upgrade is held; the rest waits outside
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
        # While we ourselves do not read, a missing pong says nothing about the other side.
        if (
            self._pinged_at is not None
            and self._delivery.open
            and now - self._pinged_at > self._ping_deadline
        ):
            self._end_reason = f"no answer to a ping within {self._ping_deadline:g} s"
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
        """Whether frames go out neither masked nor compressed."""
        return self._serves and not self._protocol.extensions

    def _write(self, frames: Sequence[bytes]) -> None:
        if self._protocol.state is not OPEN:
            return
        if self._plain and sum(map(len, frames)) < LARGE:
            self._paced.write(text_frames(frames))
        elif self._plain:
            for frame in frames:  # each by itself: links with the same large frame share it
                self._paced.write(text_frames((frame,)))
        else:
            for frame in frames:
                self._protocol.send_text(frame)
            self._send_protocol_data()

    def _send_protocol_data(self) -> None:
        pieces = self._protocol.data_to_send()
        if self._lost.is_set():
            return  # there is nobody left to write to
        data = b"".join(pieces)
        if data:
            self._paced.write(data)
        if b"" in pieces:  # the core's word for the end of the stream
            self._ends = True
            if not self._paced.size:
                self._transport.close()  # a peer that goes on sending does not keep the socket open


def _not_opened(error: Exception | None) -> LinkLost:
    said = f"no WebSocket was opened: {error or 'it closed the link'}"
    if isinstance(error, InvalidStatus) and error.response.status_code in REFUSALS:
        return LinkRefused(said, status=error.response.status_code)
    return LinkLost(said)


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
    """Open a WebSocket to `ws://` or `wss://`. Raises `LinkLost` where that fails, `LinkRefused` where the
    other side does not let us in."""
    try:
        address = parse_uri(uri)
    except InvalidURI as error:
        raise LinkLost(f"not a WebSocket address: {error}") from error
    if address.secure and tls is None:
        tls = ssl.create_default_context()
    if address.secure and tls is not None:
        # A context that was used for `https://` offers HTTP/2, and a proxy would take that.
        tls.set_alpn_protocols(["http/1.1"])
    protocol = ClientProtocol(
        address,
        max_size=None,  # the gate before it sees to that
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
        if connected:  # also where the handshake succeeds in the moment in which the caller gives up
            made._transport.abort()
        if isinstance(error, OSError | WebSocketException):
            raise LinkLost(f"cannot reach {uri}: {error or 'no answer in time'}") from error
        raise
    return made
