"""Outgoing: what goes out over an HTTP connection, each frame on the stream that it belongs to (HTTP-11)."""

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
    told_beside,
)
from antiphon.remote.stream_resume import Resuming
from antiphon.transports.http.event_stream import Kind, Mark, Position, Put, Stream

JOINS = REOPEN | {ATTACH}
"""Before their answers come updates of what was, which have no numbers."""


class Bounds(Struct, frozen=True, kw_only=True):
    """What one connection may hold."""

    waiting: int = 512 * 1024
    """Bytes that nobody has read yet; above that, whoever sends waits."""
    most: int = 72 * 1024 * 1024
    """Of those, where somebody does not wait: the connection ends. One frame of the largest size is less."""
    window: int = 1024 * 1024
    """Bytes of each stream that stay after they were sent."""
    kept: int = 1024 * 1024
    """And of those from before that which no journal gives again."""
    all_kept: int = 32 * 1024 * 1024
    """Bytes of all sessions' streams together that stay after they were sent."""
    requests: int = 8192
    """Requests of the client without a response. One that nobody can read gets none."""
    known: int = 8192
    """Sessions that the client has named and that are remembered."""
    streams: int = 1024
    """Streams of sessions that nobody reads from."""
    id_length: int = ID_LENGTH
    stall: float = 60.0
    """Seconds without anything read while something waits, or without any stream."""
    keep_alive: float = 15.0
    initialize: float = 60.0


class _Asked(NamedTuple):
    method: str
    session: str | None


class Outgoing:
    def __init__(
        self,
        bounds: Bounds,
        *,
        moved: Callable[[], None],
        ask: Callable[[bytes], None],
        fail: Callable[[str], None],
    ) -> None:
        """`moved` is called when something was sent; `ask` gets a request that is made on behalf of the
        client; `fail` hears why it cannot go on."""
        self._bounds = bounds
        self._moved = moved
        self._ask = ask
        self._fail = fail
        self.turn_complete = False
        """Whether the end of a turn is an update, as in v1."""
        self.streams: dict[str | None, Stream] = {}
        self._known: dict[str, None] = {}
        """Sessions that the client has heard of, the oldest first."""
        self._asked: dict[tuple[str, Any], _Asked] = {}
        """What the client asked and is not answered yet."""
        self._asks: dict[tuple[str, Any], str] = {}
        """Sessions in which the client is asked something, by the ids of the requests."""
        self._resuming: dict[str, Resuming] = {}
        self._resumes: dict[str, str] = {}
        """The sessions of all that was asked on behalf of the client, by the ids of the requests."""
        self._stream(None)

    @property
    def waiting(self) -> int:
        """Bytes that nobody has read yet."""
        return sum([stream.waiting_size for stream in self.streams.values()])

    # --- what the client says ----------------------------------------------------------------------

    def heard(self, about: Outline, session: str | None) -> None:
        """The client sends a frame, which belongs to a session, or to none."""
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
            del self._known[next(iter(self._known))]  # its stream is announced once more, at most

    def asked_in(self, id: Any) -> str | None:
        """The session in which the client was asked what has this id (HTTP-09)."""
        return self._asks.get(key_of(id))

    # --- where a frame goes ------------------------------------------------------------------------

    def route(self, frame: bytes, about: Outline) -> Stream | None:
        """Put a frame on its stream, which is to be flushed then."""
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

    def _route_answer(self, frame: bytes, about: Outline) -> Stream | None:
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
            # Who reads both streams knows what of the session was sent before its load was answered.
            return self._put_own(frame, **({"after": f"{last} {quote(session, safe='')}"} if last else {}))
        stream = self._put(session, Put(frame, Kind.ANSWER), about)
        if asked.method in JOINS:
            self._joined(session, frame)
        elif asked.method in OPENS:
            self._joined(opened_session(frame), frame)
        return stream

    def _joined(self, session: str | None, frame: bytes) -> None:
        """The client follows a session from here on; it may be known where in the journal that is."""
        if session is not None:
            self._remember(session)
            mark = Mark.of(told_beside(frame))
            if mark is not None:
                self._stream(session).stand(mark)

    def _put_own(self, frame: bytes, **fields: str) -> Stream:
        """On the connection's own stream."""
        stream = self._stream(None)
        stream.put(frame, fields=fields)
        return stream

    def _put(self, session: str, put: Put, about: Outline) -> Stream:
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

    def _stream(self, session: str | None) -> Stream:
        stream = self.streams.get(session)
        if stream is None:
            keep = 0 if session is None else self._bounds.kept
            stream = Stream(window=self._bounds.window, keep=keep, moved=self._moved)
            self.streams[session] = stream
            self._share_memory()
            unread = sum(not each.receiver for key, each in self.streams.items() if key is not None)
            if unread > self._bounds.streams:
                self._fail(f"over {self._bounds.streams} sessions that nobody reads from")
            if session is not None and session not in self._known:
                own = self._stream(None)
                own.put(None, fields={"session": quote(session, safe="")})
                own.flush()
        return stream

    def _share_memory(self) -> None:
        """Give each session's stream its share of `all_kept`, and no more than `window` and `kept`."""
        bounds, share = self._bounds, self._bounds.all_kept // (2 * len(self.streams))
        if share < max(bounds.window, bounds.kept):
            for session, stream in self.streams.items():
                if session is not None:  # no journal gives the connection's own stream again
                    stream.limit(window=min(bounds.window, share), keep=min(bounds.kept, share))

    # --- who reads ---------------------------------------------------------------------------------

    def ready(self, session: str | None, position: Position | None) -> Stream | None:
        """A stream for whoever asks for it; none where somebody else has it (HTTP-10), nor where it cannot go
        on from a position. With one its own client comes back, perhaps before we know that it was cut."""
        if session is not None:
            self._remember(session)
        stream = self._stream(session)
        if position is None:
            return stream if stream.receiver is None else None
        if stream.rewind(position) or (session is not None and self._resume(session, stream, position)):
            return stream
        return None

    def _resume(self, session: str, stream: Stream, position: Position) -> bool:
        """Let the journal give what is not here any more (HTTP-20). What the client was asked it is asked
        again."""
        since, newest = position.mark, stream.last.mark
        if since is None or newest is None or not stream.can_restart(position):
            return False
        before = self._resuming.get(session)
        kept = [*stream.restart(position), *(before.left() if before is not None else ())]
        resuming = self._resuming[session] = Resuming(since, newest, kept)
        self._resumes[resuming.id] = session
        self._ask(resuming.request(session))
        return True

    def _resumed(self, id: str, *, failed: bool) -> Stream | None:
        session = self._resumes.pop(id)
        resuming = self._resuming.get(session)
        if resuming is None or resuming.id != id:
            return None  # it had to begin anew meanwhile
        del self._resuming[session]
        if failed:
            self._fail("a stream could not be gone on with")
            return None
        stream = self._stream(session)
        _put_all(stream, resuming.finish())
        return stream


def _put_all(stream: Stream, puts: Iterable[Put]) -> None:
    for put in puts:
        stream.put(put.frame, kind=put.kind, mark=put.mark or stream.last.mark)
