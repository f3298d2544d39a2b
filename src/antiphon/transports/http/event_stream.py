"""EventStream: one stream of an HTTP connection, with numbered events that were sent or wait to be sent.

SSE has no receipts: events that were written to a lost socket may not have arrived. So the stream keeps the
last events, and a client that reconnects with `Last-Event-ID` gets the events after it. If they are gone, the
journal can replay the updates (`stream_resume`); events that are not in the journal are kept longer.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Self

from antiphon.jsonrpc.sse import KEEP_ALIVE, encode_event
from antiphon.transports.base import WRITE_SIZE
from antiphon.transports.http.exchange import EVENTS, Exchange
from antiphon.transports.sliced_writer import LARGE, SharedBytes, share

WHOLE = float("inf")
_ID = re.compile(r"(\d{1,15})(?:-(\d{1,15})(?:\.(\d{1,6}))?)?", re.ASCII)


class Mark(NamedTuple):
    """A position in a journal: an event, or one of the updates that were made from it, counted from 0."""

    seq: int
    part: float = WHOLE

    @classmethod
    def of(cls, ours: Mapping[str, Any]) -> Mark | None:
        """Read it from the `_meta["antiphon"]` of an update."""
        seq, part = ours.get("seq"), ours.get("part")
        if not isinstance(seq, int):
            return None
        return cls(seq, part) if isinstance(part, int) else cls(seq)

    @property
    def event(self) -> int:
        """The last event of which the client has all updates."""
        return self.seq if self.part == WHOLE else self.seq - 1


class Position(NamedTuple):
    """A position in a stream."""

    number: int
    mark: Mark | None = None

    @classmethod
    def read(cls, id: str) -> Self | None:
        found = _ID.fullmatch(id.strip())
        if found is None:
            return None
        number, seq, part = found.groups()
        mark = None if seq is None else Mark(int(seq)) if part is None else Mark(int(seq), int(part))
        return cls(int(number), mark)

    def __str__(self) -> str:
        if self.mark is None:
            return str(self.number)
        part = "" if self.mark.part == WHOLE else f".{self.mark.part}"
        return f"{self.number}-{self.mark.seq}{part}"


HEADERS = {
    "Content-Type": EVENTS,
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}
NO_FIELDS: Mapping[str, str] = {}


class Kind(StrEnum):
    JOURNAL = "journal"
    """An update, which the journal can replay."""
    ASKED = "asked"
    """A request or notification that is not in the journal."""
    ANSWER = "answer"
    """A response that the client waits for, after certain updates."""


class Put(NamedTuple):
    """A frame for a stream. `mark`: the client's position in the journal after it, if known."""

    frame: bytes
    kind: Kind
    mark: Mark | None = None


class Entry(NamedTuple):
    position: Position
    frame: bytes | None
    kind: Kind
    fields: Mapping[str, str] = NO_FIELDS
    shared: SharedBytes | None = None
    """A large frame, shared with other streams that are sending it."""

    @property
    def size(self) -> int:
        return 0 if self.frame is None else len(self.frame)


class EventStream:
    def __init__(self, *, window: int, keep: int, moved: Callable[[], None]) -> None:
        """`window`: bytes of sent events to keep.
        `keep`: bytes of earlier events to keep that are not in the journal.
        `moved` is called when events were sent.
        """
        self._window = window
        self._keep = keep
        self._moved = moved
        self._sent: deque[Entry] = deque()
        self._sent_size = 0
        self._kept: deque[Entry] = deque()
        """Earlier sent events that are not in the journal."""
        self._kept_size = 0
        self._forgotten = 0
        """The number of the last such event that was dropped."""
        self._waiting: deque[Entry] = deque()
        self.waiting_size = 0
        self.receiver: Exchange | None = None
        self.last = Position(0)
        """The newest event."""
        self._at = Position(0)
        """The last event that was sent."""
        self._written = 0
        """Bytes that were written of a large frame at the head of the queue."""
        self._restarted: tuple[Position, int] | None = None
        """The position of the last restart from the journal, and the last event before it."""

    def put(
        self,
        frame: bytes | None,
        *,
        mark: Mark | None = None,
        kind: Kind = Kind.ASKED,
        fields: Mapping[str, str] = NO_FIELDS,
    ) -> None:
        """Queue one frame for `flush`. `mark`: the client's position in the journal after it."""
        self.last = Position(self.last.number + 1, mark)
        entry = Entry(self.last, frame, kind, fields)
        if frame is not None and len(frame) >= LARGE:
            shared = share(_on_one_line(frame))
            entry = entry._replace(frame=shared.data, shared=shared)
        self._waiting.append(entry)
        self.waiting_size += entry.size

    def limit(self, *, window: int, keep: int) -> None:
        """Change the bounds of the constructor."""
        self._window, self._keep = window, keep
        self._forget()

    def set_mark(self, mark: Mark) -> None:
        """Set the client's position in the journal after all events."""
        if not self._waiting and self._at.number == self.last.number:
            self._at = Position(self.last.number, mark)
        self.last = Position(self.last.number, mark)

    def flush(self) -> None:
        """Send waiting events, as fast as the client reads."""
        receiver, waiting = self.receiver, self._waiting
        if receiver is None or not waiting:
            return
        while waiting and not receiver.congested and self.receiver is receiver:
            if waiting[0].shared is not None:
                self._write_large(waiting[0], receiver)
                continue
            written: list[bytes] = []
            size = 0
            while waiting and size < WRITE_SIZE and waiting[0].shared is None:
                entry = waiting.popleft()
                written.append(encode_event(entry.frame, id=str(entry.position), **entry.fields))
                self._sent.append(entry)
                size += entry.size
            self._at = self._sent[-1].position
            self.waiting_size -= size
            self._sent_size += size
            receiver.write(b"".join(written))
        self._forget()
        self._moved()

    def _write_large(self, entry: Entry, receiver: Exchange) -> None:
        """Write the next slice of an event whose frame is large."""
        assert entry.frame is not None
        if not self._written:
            receiver.write(encode_event(None, id=str(entry.position), **entry.fields)[:-1] + b"data: ")
        view = memoryview(entry.frame)[self._written : self._written + WRITE_SIZE]
        self._written += len(view)
        receiver.write(bytes(view))
        if self._written == len(entry.frame):
            receiver.write(b"\n\n")
            self._written = 0
            self._waiting.popleft()
            self._sent.append(entry)
            self._at = entry.position
            self.waiting_size -= entry.size
            self._sent_size += entry.size

    def _forget(self) -> None:
        while self._sent_size > self._window:
            entry = self._sent.popleft()
            self._sent_size -= entry.size
            if entry.kind is not Kind.JOURNAL:
                self._kept.append(entry)
                self._kept_size += entry.size
        while self._kept_size > self._keep:
            entry = self._kept.popleft()
            self._kept_size -= entry.size
            self._forgotten = entry.position.number

    # --- resuming ----------------------------------------------------------------------------------

    def rewind(self, position: Position) -> bool:
        """Queue all events after a position again. Return false if some of them are gone."""
        number = self._place(position)
        first = self._sent[0].position.number if self._sent else self._at.number + 1
        if not first - 1 <= number <= self._at.number:
            return False
        while self._sent and self._sent[-1].position.number > number:
            entry = self._sent.pop()
            self._sent_size -= entry.size
            self.waiting_size += entry.size
            self._waiting.appendleft(entry)
        self._at = Position(number, position.mark)
        return True

    def can_restart(self, position: Position) -> bool:
        """Whether all events after a position that are not in the journal are still kept."""
        return self._forgotten <= self._place(position) <= self.last.number

    def restart(self, position: Position) -> list[Put]:
        """Drop all events, because the journal is replayed from a position. Return the later events that are
        not in the journal."""
        number = self._place(position)
        entries = [*self._kept, *self._sent, *self._waiting]
        for queue in (self._kept, self._sent, self._waiting):
            queue.clear()
        self._written = 0
        self._kept_size = self._sent_size = self.waiting_size = 0
        self._restarted = position, self.last.number
        self._forgotten = self.last.number
        self.last = self._at = Position(self.last.number, position.mark)
        return [
            Put(entry.frame, entry.kind, entry.position.mark)
            for entry in entries
            if entry.frame and entry.kind is not Kind.JOURNAL and entry.position.number > number
        ]

    def _place(self, position: Position) -> int:
        """Return the number of a position since the last restart; -1 for an earlier position. The position of
        the restart itself is the last event before it: a client there got nothing that was sent since."""
        if self._restarted is None:
            return position.number
        since, last = self._restarted
        if position == since or position == Position(last, since.mark):
            return last
        return position.number if position.number > last else -1

    # --- receivers ---------------------------------------------------------------------------------

    def attach(self, exchange: Exchange) -> None:
        """Send to this client, and end the exchange of the previous one."""
        before, self.receiver = self.receiver, exchange
        self._written = 0
        if before is not None:
            before.on_gone = before.on_room = lambda: None
            before.end()
        exchange.begin(HEADERS)
        # A client that is cut before the first event can resume from here.
        exchange.write(encode_event(None, id=str(self._at)))
        exchange.on_room = self.flush
        self.flush()

    def keep_alive(self) -> None:
        if self.receiver is not None and not self.receiver.congested and not self._written:
            self.receiver.write(KEEP_ALIVE)

    def end(self) -> None:
        receiver, self.receiver = self.receiver, None
        if receiver is not None:
            receiver.on_gone = receiver.on_room = lambda: None
            if self._waiting:
                receiver.abort()
            else:
                receiver.end()


def _on_one_line(frame: bytes) -> bytes:
    """Return the same JSON without line breaks, which occur only between its values."""
    return frame.replace(b"\r", b" ").replace(b"\n", b" ") if b"\n" in frame or b"\r" in frame else frame
