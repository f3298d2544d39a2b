"""StreamRouter: puts each frame of an HTTP connection on the stream that it belongs to (HTTP-11)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from urllib.parse import quote

from msgspec import UNSET, Struct

from antiphon.remote.frames import (
    ATTACH,
    ID_LENGTH,
    LOAD,
    OPENS,
    REOPEN,
    TURN_COMPLETE,
    UPDATE,
    Outline,
    key_of,
    opened_session,
    result_meta,
)
from antiphon.remote.stream_resume import StreamResume
from antiphon.transports.http.event_stream import EventStream, Kind, Mark, Position, Put

JOINS = REOPEN | {ATTACH}
"""Methods whose response comes after a replay. Replayed updates have no numbers."""


class StreamBounds(Struct, frozen=True, kw_only=True):
    """Bounds of one connection."""

    waiting: int = 512 * 1024
    """Bytes that the client has not read, above which senders wait."""
    most: int = 72 * 1024 * 1024
    """Bytes that the client has not read, above which the connection ends. The largest frame is smaller."""
    window: int = 1024 * 1024
    """Bytes of sent events that each stream keeps."""
    kept: int = 1024 * 1024
    """Bytes of earlier events that each stream keeps and that are not in the journal."""
    all_kept: int = 32 * 1024 * 1024
    """Bytes of sent events that the streams of all sessions keep together."""
    requests: int = 8192
    """Requests of the client without a response. A malformed one gets none."""
    known: int = 8192
    """Sessions of the client to remember."""
    streams: int = 1024
    """Streams of sessions that the client does not read."""
    id_length: int = ID_LENGTH
    stall: float = 60.0
    """Seconds in which the client reads nothing while events wait, or has no stream."""
    keep_alive: float = 15.0
    initialize: float = 60.0


class _Asked(NamedTuple):
    method: str
    session: str | None


class StreamRouter:
    def __init__(
        self,
        bounds: StreamBounds,
        *,
        moved: Callable[[], None],
        ask: Callable[[bytes], None],
        fail: Callable[[str], None],
    ) -> None:
        """`moved` is called when events were sent; `ask` gets requests on behalf of the client; `fail` gets
        the reason why the connection must end."""
        self._bounds = bounds
        self._moved = moved
        self._ask = ask
        self._fail = fail
        self.turn_complete = False
        """Whether an update ends a turn, as in v1."""
        self.streams: dict[str | None, EventStream] = {}
        self._known: dict[str, None] = {}
        """Sessions that the client knows, the oldest first."""
        self._asked: dict[tuple[str, Any], _Asked] = {}
        """Requests of the client without a response."""
        self._asks: dict[tuple[str, Any], str] = {}
        """Sessions of requests to the client, by the ids of the requests."""
        self._resuming: dict[str, StreamResume] = {}
        self._resumes: dict[str, str] = {}
        """Sessions of requests on behalf of the client, by the ids of the requests."""
        self._stream(None)

    @property
    def waiting(self) -> int:
        """Bytes that the client has not read."""
        return sum([stream.waiting_size for stream in self.streams.values()])

    # --- receiving ---------------------------------------------------------------------------------

    def received(self, about: Outline, session: str | None) -> None:
        """Note a frame of the client that belongs to a session, or to none."""
        if about.method is not None and about.id is not UNSET:
            self._asked[key_of(about.id)] = _Asked(about.method, session)
            if len(self._asked) > self._bounds.requests:
                self._fail(f"over {self._bounds.requests} requests without a response")
        elif about.is_response:
            self._asks.pop(key_of(about.id), None)
        if session is not None:
            self._remember(session)

    def _remember(self, session: str) -> None:
        self._known[session] = None
        if len(self._known) > self._bounds.known:
            del self._known[next(iter(self._known))]  # its stream may be announced once more

    def asked_in(self, id: Any) -> str | None:
        """Return the session of a request to the client, by the id of the request (HTTP-09)."""
        return self._asks.get(key_of(id))

    # --- sending -----------------------------------------------------------------------------------

    def route(self, frame: bytes, about: Outline) -> EventStream | None:
        """Put a frame on its stream, and return the stream for `flush`."""
        if about.is_response:
            return self._route_answer(frame, about)
        session = about.session
        if about.cancels is not None:
            session = session or self._asks.pop(key_of(about.cancels), None)
        if session is None:
            return self._put_own(frame)
        if about.method == UPDATE:
            kind = Kind.ANSWER if self.turn_complete and TURN_COMPLETE in frame else Kind.JOURNAL
            return self._put(session, Put(frame, kind, Mark.of(about.ours)), about)
        if about.id is not UNSET:
            self._asks[key_of(about.id)] = session
        return self._put(session, Put(frame, Kind.ASKED), about)

    def _route_answer(self, frame: bytes, about: Outline) -> EventStream | None:
        if isinstance(about.id, str) and about.id in self._resumes:
            return self._resumed(about.id, failed=about.error is not UNSET)
        asked = self._asked.pop(key_of(about.id), None)
        session = None if asked is None else asked.session
        if asked is None or session is None:
            if asked is not None and asked.method in OPENS:
                self._joined(opened_session(frame), frame)
            return self._put_own(frame)
        if asked.method == LOAD:
            last = self._stream(session).last.number
            self._joined(session, frame)
            # A client that reads both streams can hand over the updates of the load before its response.
            return self._put_own(frame, **({"after": f"{last} {quote(session, safe='')}"} if last else {}))
        stream = self._put(session, Put(frame, Kind.ANSWER), about)
        if asked.method in JOINS:
            self._joined(session, frame)
        elif asked.method in OPENS:
            self._joined(opened_session(frame), frame)
        return stream

    def _joined(self, session: str | None, frame: bytes) -> None:
        """Note that the client follows a session, and its position in the journal if the result names it."""
        if session is not None:
            self._remember(session)
            mark = Mark.of(result_meta(frame))
            if mark is not None:
                self._stream(session).set_mark(mark)

    def _put_own(self, frame: bytes, **fields: str) -> EventStream:
        """Put a frame on the connection's stream."""
        stream = self._stream(None)
        stream.put(frame, fields=fields)
        return stream

    def _put(self, session: str, put: Put, about: Outline) -> EventStream:
        stream, resuming = self._stream(session), self._resuming.get(session)
        if resuming is not None:
            _put_all(stream, resuming.take(put, about))
            return stream
        mark = put.mark
        if mark is None and (put.kind is not Kind.JOURNAL or not self._joins(session)):
            mark = stream.last.mark
        stream.put(put.frame, kind=put.kind, mark=mark)
        return stream

    def _joins(self, session: str) -> bool:
        return any(asked.session == session and asked.method in JOINS for asked in self._asked.values())

    def _stream(self, session: str | None) -> EventStream:
        stream = self.streams.get(session)
        if stream is None:
            keep = 0 if session is None else self._bounds.kept
            stream = EventStream(window=self._bounds.window, keep=keep, moved=self._moved)
            self.streams[session] = stream
            self._share_memory()
            unread = sum(not each.receiver for key, each in self.streams.items() if key is not None)
            if unread > self._bounds.streams:
                self._fail(f"over {self._bounds.streams} streams of sessions that the client does not read")
            if session is not None and session not in self._known:
                own = self._stream(None)
                own.put(None, fields={"session": quote(session, safe="")})
                own.flush()
        return stream

    def _share_memory(self) -> None:
        """Give each session's stream its share of `all_kept`, at most `window` and `kept`."""
        bounds, share = self._bounds, self._bounds.all_kept // (2 * len(self.streams))
        if share < max(bounds.window, bounds.kept):
            for session, stream in self.streams.items():
                if session is not None:  # the connection's stream is not in a journal
                    stream.limit(window=min(bounds.window, share), keep=min(bounds.kept, share))

    # --- streams -----------------------------------------------------------------------------------

    def ready(self, session: str | None, position: Position | None) -> EventStream | None:
        """Return a stream for a client, or `None` if it is being read (HTTP-10) or cannot resume there.

        A client with a position may come back before the server knows that its socket was lost.
        """
        if session is not None:
            self._remember(session)
        stream = self._stream(session)
        if position is None:
            return stream if stream.receiver is None else None
        if stream.rewind(position) or (session is not None and self._resume(session, stream, position)):
            return stream
        return None

    def _resume(self, session: str, stream: EventStream, position: Position) -> bool:
        """Resume a stream from the journal (HTTP-20). Requests to the client are sent again."""
        since, newest = position.mark, stream.last.mark
        if since is None or newest is None or not stream.can_restart(position):
            return False
        before = self._resuming.get(session)
        kept = [*stream.restart(position), *(before.remaining() if before is not None else ())]
        resuming = self._resuming[session] = StreamResume(since, newest, kept)
        self._resumes[resuming.id] = session
        self._ask(resuming.request(session))
        return True

    def _resumed(self, id: str, *, failed: bool) -> EventStream | None:
        session = self._resumes.pop(id)
        resuming = self._resuming.get(session)
        if resuming is None or resuming.id != id:
            return None  # another resume has begun
        del self._resuming[session]
        if failed:
            self._fail("a stream could not be resumed from the journal")
            return None
        stream = self._stream(session)
        _put_all(stream, resuming.finish())
        return stream


def _put_all(stream: EventStream, puts: Iterable[Put]) -> None:
    for put in puts:
        stream.put(put.frame, kind=put.kind, mark=put.mark or stream.last.mark)
