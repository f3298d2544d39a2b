"""HttpTransport: an HTTP connection of ACP as a transport, on the server's side (HTTP-11).

Frames come by POST. Those that go out are put on the stream they belong to: that of their session, or the
connection's own. A stream that is cut does not end the connection; that nobody reads from it for long does.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Struct

from antiphon.errors import LocalError
from antiphon.jsonrpc.frames import encode_request
from antiphon.transports.base import Delivery, Framing, Outbox, Receive
from antiphon.transports.http_exchange import Exchange
from antiphon.transports.http_frames import (
    LOAD,
    OPENS,
    Outline,
    agreed_version,
    key_of,
    opened_session,
    outline,
)
from antiphon.transports.http_streams import Mark, Position, Stream

CLOSE_DEADLINE = 2.0
CANCEL = "$/cancel_request"
UPDATE = "session/update"
ATTACH = "_antiphon/attach"


class Bounds(Struct, frozen=True, kw_only=True):
    """What one connection may hold (HTTP-23)."""

    waiting: int = 8 * 1024 * 1024
    """Bytes that nobody has read yet; above that, whoever sends waits."""
    window: int = 2 * 1024 * 1024
    """Bytes of each stream that stay after they were sent."""
    streams: int = 1024
    """Streams of sessions that nobody reads from."""
    id_length: int = 1024
    stall: float = 60.0
    """Seconds without anything read while something waits, or without any stream."""
    keep_alive: float = 15.0
    initialize: float = 60.0


class _Asked(NamedTuple):
    method: str
    session: str | None


class _Resuming(Struct):
    """A stream that is being filled from the journal."""

    id: str
    """Of the request that asks for it on behalf of the client."""
    since: Mark
    upto: int
    """The last event that was ever sent over it."""
    behind: list[bytes]
    begun: bool = False


class HttpTransport:
    def __init__(self, bounds: Bounds, *, on_end: Callable[[HttpTransport], None]) -> None:
        self.id = secrets.token_urlsafe(16)
        self.close_code = 1000  # of a WebSocket; over HTTP nobody is told
        self.who: Any = None
        """Whose connection it is: nobody else's requests belong to it."""
        self.version = 1
        """Of the protocol, once it is agreed on."""
        self.reading = 0
        """How many streams are read from."""
        self._bounds = bounds
        self._on_end = on_end
        self._delivery = Delivery()
        self._open = asyncio.Event()
        self._outbox = Outbox(self._route_all)
        self._streams: dict[str | None, Stream] = {}
        self._known: set[str] = set()
        """Sessions that the client has heard of."""
        self._asked: dict[tuple[str, Any], _Asked] = {}
        """What the client asked and is not answered yet."""
        self._asks: dict[tuple[str, Any], str] = {}
        """Sessions in which the client is asked something, by the ids of the requests."""
        self._resuming: dict[str, _Resuming] = {}
        self._initial: tuple[Any, asyncio.Future[bytes]] | None = None
        self._end_reason = ""
        self._full = False
        self._moved = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._patience: asyncio.TimerHandle | None = None
        self._keeping = self._loop.call_later(bounds.keep_alive, self._keep_alive)
        self._stream(None)
        self._wait_for_reader()

    # --- the transport -----------------------------------------------------------------------------

    def start(self, receive: Receive, ended: Callable[[], None]) -> None:
        self._delivery.start(receive, ended)
        self._tell_open()

    def pause(self) -> None:
        self._delivery.pause()
        self._tell_open()

    def resume(self) -> None:
        self._delivery.resume()
        self._tell_open()

    def _tell_open(self) -> None:
        self._open.set() if self._delivery.open or self._end_reason else self._open.clear()

    def send(self, frame: bytes) -> None:
        self._outbox.send(frame)

    def send_now(self, frame: bytes) -> None:
        self._outbox.send_now(frame)

    @property
    def framing(self) -> Framing | None:
        return None  # each event has a number of its own

    def send_framed(self, data: bytes) -> None:
        raise LocalError("this transport frames nothing")

    @property
    def congested(self) -> bool:
        return self._outbox.congested

    async def drain(self) -> None:
        await self._outbox.drain()

    async def aclose(self) -> None:
        self._outbox.flush()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_DEADLINE):
                while not self._end_reason and any(
                    stream.waiting_size and (stream.receiver or session is None)
                    for session, stream in self._streams.items()
                ):
                    self._moved.clear()
                    await self._moved.wait()
        self._delivery.drop()
        self.end("closed by this side")

    @property
    def end_reason(self) -> str:
        return self._end_reason

    @property
    def stderr(self) -> Sequence[str]:
        return ()

    def end(self, reason: str) -> None:
        """The client has left, or is not heard of any more. Its sessions go on (HTTP-15, WS-04)."""
        if self._end_reason:
            return
        self._end_reason = reason
        self._outbox.close()
        self._expect(None)
        self._keeping.cancel()
        for stream in self._streams.values():
            stream.end()
        if self._initial is not None:
            self._initial[1].cancel()
        self._on_end(self)
        self._tell_open()
        self._moved.set()
        self._delivery.end()

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
        if about.method is not None and about.id is not UNSET:
            self._asked[key_of(about.id)] = _Asked(about.method, session)
        elif about.is_response:
            self._asks.pop(key_of(about.id), None)
        if session is not None:
            self._known.add(session)
        if not self.reading:
            self._wait_for_reader()
        self._delivery.put([frame])

    def asked_in(self, id: Any) -> str | None:
        """The session in which the client was asked what has this id (HTTP-09)."""
        return self._asks.get(key_of(id))

    # --- what goes out -----------------------------------------------------------------------------

    def _route_all(self, frames: Sequence[bytes]) -> None:
        touched = {id(stream): stream for frame in frames if (stream := self._route(frame)) is not None}
        for stream in touched.values():
            stream.flush()
        if not self._end_reason:
            self._weigh()

    def _route(self, frame: bytes) -> Stream | None:
        about = outline(frame)
        if about.is_response:
            return self._route_answer(frame, about)
        session = about.session
        if about.method == CANCEL and about.params is not None:
            session = session or self._asks.pop(key_of(about.params.request_id), None)
        if session is None:
            stream = self._stream(None)
            stream.put(frame)
            return stream
        if about.id is not UNSET:
            self._asks[key_of(about.id)] = session
        return self._put(session, frame, about)

    def _route_answer(self, frame: bytes, about: Outline) -> Stream | None:
        if self._initial is not None and about.id == self._initial[0]:
            answered = self._initial[1]
            self._initial = None
            self.version = agreed_version(frame) or 1
            if not answered.done():
                answered.set_result(frame)
            return None
        asked = self._asked.pop(key_of(about.id), None)
        session = None if asked is None else asked.session
        for named, resuming in self._resuming.items():
            if about.id == resuming.id:
                return self._resumed(named, about)
        if asked is not None and asked.method in OPENS:
            opened = opened_session(frame)
            if opened is not None:
                self._known.add(opened)
        if session is not None and asked is not None and asked.method != LOAD:
            return self._put(session, frame, about)
        stream = self._stream(None)
        if session is not None and (last := self._stream(session).last.number):
            # Who reads both streams knows what of the session was sent before its load was answered.
            stream.put(frame, fields={"after": f"{last} {quote(session, safe='')}"})
        else:
            stream.put(frame)
        return stream

    def _put(self, session: str, frame: bytes, about: Outline) -> Stream | None:
        stream = self._stream(session)
        resuming = self._resuming.get(session)
        if about.is_response:
            if resuming is not None:
                resuming.behind.append(frame)
            else:
                stream.put(frame, again="behind")
        elif about.method == UPDATE:
            mark = Mark.of(about.ours)
            if resuming is not None and not _wanted(resuming, mark):
                return None
            stream.put(frame, mark=mark, again="journal")
        else:
            stream.put(frame)
        return stream

    def _stream(self, session: str | None) -> Stream:
        stream = self._streams.get(session)
        if stream is None:
            stream = self._streams[session] = Stream(window=self._bounds.window, moved=self._stream_moved)
            unread = sum(not each.receiver for key, each in self._streams.items() if key is not None)
            if unread > self._bounds.streams:
                self._loop.call_soon(self.end, f"over {self._bounds.streams} sessions that nobody reads from")
            if session is not None and session not in self._known:
                own = self._stream(None)
                own.put(None, fields={"session": quote(session, safe="")})
                own.flush()
        return stream

    # --- who reads ---------------------------------------------------------------------------------

    def open_stream(self, session: str | None, exchange: Exchange, position: Position | None) -> bool:
        """Send a stream to whoever asks for it; not where somebody else has it (HTTP-10), nor where it cannot
        go on from a position. With one its own client comes back, perhaps before we know that it was cut."""
        if session is not None:
            self._known.add(session)
        stream = self._stream(session)
        if position is None:
            if stream.receiver is not None:
                return False
        elif stream.can_continue(position):
            stream.rewind(position)
        elif session is None or not self._resume(session, stream, position):
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
        self.reading = sum(stream.receiver is not None for stream in self._streams.values())
        if not self._end_reason and not self._full:
            self._expect(None) if self.reading else self._wait_for_reader()

    def _resume(self, session: str, stream: Stream, position: Position) -> bool:
        """Let the journal give what is not here any more (HTTP-20). The client's attachment is moved to where
        it stood; what it was asked it is asked again."""
        newest = stream.last.mark
        mark = position.mark
        if self.version < 2 or mark is None or newest is None or not mark.seq < newest.seq:
            return False
        if session in self._resuming or position.number > stream.last.number:
            return False
        id = f"antiphon-http-{secrets.token_hex(8)}"
        self._resuming[session] = _Resuming(id, mark, newest.seq, stream.restart(mark))
        params = {"sessionId": session, "historyPolicy": "after", "after": mark.event}
        self._delivery.put([encode_request(id, ATTACH, msgspec.json.encode(params))])
        return True

    def _resumed(self, session: str, about: Outline) -> Stream | None:
        resuming = self._resuming.pop(session)
        if about.error is not UNSET:
            self._loop.call_soon(self.end, "a stream could not be gone on with")
            return None
        stream = self._stream(session)
        for answer in resuming.behind:
            stream.put(answer, again="behind")
        return stream

    # --- patience ----------------------------------------------------------------------------------

    def _stream_moved(self) -> None:
        self._moved.set()
        if self._full:
            self._expect(self._bounds.stall)
        self._weigh()

    def _weigh(self) -> None:
        waiting = sum([stream.waiting_size for stream in self._streams.values()])
        if waiting >= self._bounds.waiting and not self._full:
            self._full = True
            self._outbox.pause()
            self._expect(self._bounds.stall)
        elif waiting < self._bounds.waiting // 2 and self._full:
            self._full = False
            self._outbox.resume()
            self._count_readers()

    def _wait_for_reader(self) -> None:
        self._expect(self._bounds.stall)

    def _expect(self, seconds: float | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._patience = None
        if seconds is not None and not self._end_reason:
            why = f"nobody has read from it for {seconds:g} s"
            self._patience = self._loop.call_later(seconds, self.end, why)

    def _keep_alive(self) -> None:
        for stream in self._streams.values():
            stream.keep_alive()
        self._keeping = self._loop.call_later(self._bounds.keep_alive, self._keep_alive)


def _wanted(resuming: _Resuming, mark: Mark | None) -> bool:
    """Whether an update is what the journal gives again: neither the last of the attachment that is about to
    be moved, nor what the client has."""
    if mark is None:
        return resuming.begun
    resuming.begun = resuming.begun or mark.seq <= resuming.upto
    return resuming.begun and mark > resuming.since
