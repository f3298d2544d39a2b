"""Stream: what one stream of an HTTP connection has sent and has still to send, as numbered events.

SSE knows no receipt: what was written to a socket that was cut may be lost. So the last events stay for a
while, and who comes back with `Last-Event-ID` gets what followed it. Where that is not here any more, the
journal can give the updates again (`http_resuming`); what it cannot give stays longer.
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
from antiphon.transports.paced import LARGE, SharedBytes, share

WHOLE = float("inf")
_ID = re.compile(r"(\d{1,15})(?:-(\d{1,15})(?:\.(\d{1,6}))?)?", re.ASCII)


class Mark(NamedTuple):
    """A place in a journal: an event, or one of the updates that it became, which count from 0."""

    seq: int
    part: float = WHOLE

    @classmethod
    def of(cls, ours: Mapping[str, Any]) -> Mark | None:
        """As an update tells it."""
        seq, part = ours.get("seq"), ours.get("part")
        if not isinstance(seq, int):
            return None
        return cls(seq, part) if isinstance(part, int) else cls(seq)

    @property
    def event(self) -> int:
        """The last event that was read whole."""
        return self.seq if self.part == WHOLE else self.seq - 1


class Position(NamedTuple):
    """A place in a stream."""

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
    """An update: the journal gives it again."""
    ASKED = "asked"
    """What the client is asked or told beside the journal."""
    ANSWER = "answer"
    """What the client waits for, which stands behind an update."""


class Put(NamedTuple):
    """Something for a stream; `mark` is where the client stands in the journal then, if that is known."""

    frame: bytes
    kind: Kind
    mark: Mark | None = None


class Entry(NamedTuple):
    position: Position
    frame: bytes | None
    kind: Kind
    fields: Mapping[str, str] = NO_FIELDS
    shared: SharedBytes | None = None
    """Holds a large frame together with the streams of others that have it on its way."""

    @property
    def size(self) -> int:
        return 0 if self.frame is None else len(self.frame)


class Stream:
    def __init__(self, *, window: int, keep: int, moved: Callable[[], None]) -> None:
        """`window` is how many bytes stay of what was sent, and `keep` how many of what was sent before that
        beside the journal; `moved` is called when something was sent."""
        self._window = window
        self._keep = keep
        self._moved = moved
        self._sent: deque[Entry] = deque()
        self._sent_size = 0
        self._kept: deque[Entry] = deque()
        """What was sent before that beside the journal."""
        self._kept_size = 0
        self._forgotten = 0
        """The number of the last event of which nothing is left that should be."""
        self._waiting: deque[Entry] = deque()
        self.waiting_size = 0
        self.receiver: Exchange | None = None
        self.last = Position(0)
        """The newest event."""
        self._at = Position(0)
        """Behind which the next one is sent."""
        self._written = 0
        """How many bytes of a large frame that is first in line were written."""
        self._restarted: tuple[Position, int] | None = None
        """From where the journal was gone through last, and the last event before that."""

    def put(
        self,
        frame: bytes | None,
        *,
        mark: Mark | None = None,
        kind: Kind = Kind.ASKED,
        fields: Mapping[str, str] = NO_FIELDS,
    ) -> None:
        """Queue one frame; `mark` is where the client stands in the journal then. `flush` sends it."""
        self.last = Position(self.last.number + 1, mark)
        entry = Entry(self.last, frame, kind, fields)
        if frame is not None and len(frame) >= LARGE:
            shared = share(_on_one_line(frame))
            entry = entry._replace(frame=shared.data, shared=shared)
        self._waiting.append(entry)
        self.waiting_size += entry.size

    def limit(self, *, window: int, keep: int) -> None:
        """Keep at most so many bytes from here on, as in the constructor."""
        self._window, self._keep = window, keep
        self._forget()

    def stand(self, mark: Mark) -> None:
        """It is known where in the journal the client stands once it has read everything."""
        if not self._waiting and self._at.number == self.last.number:
            self._at = Position(self.last.number, mark)
        self.last = Position(self.last.number, mark)

    def flush(self) -> None:
        """Send what waits, as far as it is read."""
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

    # --- going on ----------------------------------------------------------------------------------

    def rewind(self, position: Position) -> bool:
        """Let everything behind a position be sent again; whether all of it is here."""
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
        """Whether all that the journal does not give, and that stood behind a position, is here."""
        return self._forgotten <= self._place(position) <= self.last.number

    def restart(self, position: Position) -> list[Put]:
        """The journal will be gone through from a position on; what stood behind that beside the journal is
        returned."""
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
        """The number of a position, as they count since the last restart; who was there when that was made
        got nothing of what was sent since then. -1 for what was before."""
        if self._restarted is None:
            return position.number
        since, last = self._restarted
        if position == since or position == Position(last, since.mark):
            return last
        return position.number if position.number > last else -1

    # --- receivers ---------------------------------------------------------------------------------

    def attach(self, exchange: Exchange) -> None:
        """Send to this one from now on, and to nobody else."""
        before, self.receiver = self.receiver, exchange
        self._written = 0
        if before is not None:
            before.on_gone = before.on_room = lambda: None
            before.end()
        exchange.begin(HEADERS)
        # Who is cut before the first event knows from where to go on.
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
    """The same JSON without line breaks: those stand only between its values."""
    return frame.replace(b"\r", b" ").replace(b"\n", b" ") if b"\n" in frame or b"\r" in frame else frame
