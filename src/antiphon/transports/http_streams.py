"""Stream: what one stream of an HTTP connection has sent and has still to send, as numbered events.

SSE knows no receipt: what was written to a socket that was cut may be lost. So the last events stay for a
while, and who comes back with `Last-Event-ID` gets what followed it. An id is the event's number on this
stream, and behind a dash where the client then stood in the session's journal, if that is known: with that
the journal can give what is not kept here any more.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

from antiphon.jsonrpc.sse import KEEP_ALIVE, encode_event
from antiphon.transports.base import WRITE_SIZE
from antiphon.transports.http_exchange import Exchange

HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}
WHOLE = float("inf")
NO_FIELDS: Mapping[str, str] = {}
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


class Entry(NamedTuple):
    position: Position
    frame: bytes | None
    fields: Mapping[str, str]
    again: str
    """Where the journal is gone through again: `journal` gives it; `before` or `behind` that, it is sent once
    more."""

    @property
    def size(self) -> int:
        return 0 if self.frame is None else len(self.frame)


class Stream:
    def __init__(self, *, window: int, moved: Callable[[], None]) -> None:
        """`window` is how many bytes stay of what was sent; `moved` is called when something was."""
        self._window = window
        self._moved = moved
        self._sent: deque[Entry] = deque()
        self._sent_size = 0
        self._waiting: deque[Entry] = deque()
        self.waiting_size = 0
        self.receiver: Exchange | None = None
        self.last = Position(0)
        """The newest event."""

    def put(
        self,
        frame: bytes | None,
        *,
        mark: Mark | None = None,
        again: str = "before",
        fields: Mapping[str, str] = NO_FIELDS,
    ) -> None:
        """Queue one frame; `mark` is where it brings the client in the journal. `flush` sends it."""
        known = None if again == "journal" else self.last.mark
        self.last = Position(self.last.number + 1, mark or known)
        entry = Entry(self.last, frame, fields, again)
        self._waiting.append(entry)
        self.waiting_size += entry.size

    def flush(self) -> None:
        """Send what waits, as far as it is read."""
        receiver, waiting = self.receiver, self._waiting
        if receiver is None or not waiting:
            return
        while waiting and not receiver.congested and self.receiver is receiver:
            written: list[bytes] = []
            size = 0
            while waiting and size < WRITE_SIZE:
                entry = waiting.popleft()
                written.append(encode_event(entry.frame, id=str(entry.position), **entry.fields))
                self._sent.append(entry)
                size += entry.size
            self.waiting_size -= size
            self._sent_size += size
            receiver.write(b"".join(written))
        while self._sent_size > self._window:
            self._sent_size -= self._sent.popleft().size
        self._moved()

    # --- receivers ---------------------------------------------------------------------------------

    def can_continue(self, position: Position) -> bool:
        """Whether everything behind a position is here."""
        sent = self._sent[0].position.number if self._sent else self._unsent
        return sent - 1 <= position.number < self._unsent

    @property
    def _unsent(self) -> int:
        """The number of the next event that is sent."""
        return self._waiting[0].position.number if self._waiting else self.last.number + 1

    def rewind(self, position: Position) -> None:
        """Everything behind a position is to be sent again."""
        while self._sent and self._sent[-1].position.number > position.number:
            entry = self._sent.pop()
            self._sent_size -= entry.size
            self.waiting_size += entry.size
            self._waiting.appendleft(entry)

    def restart(self, mark: Mark) -> list[bytes]:
        """The journal will be gone through from a mark: drop what it gives; what is to be sent behind it is
        returned."""
        entries = [*self._sent, *self._waiting]
        self._sent.clear()
        self._waiting.clear()
        self._sent_size = self.waiting_size = 0
        self.last = Position(self.last.number, mark)
        for entry in entries:
            if entry.again == "before":
                self.put(entry.frame, fields=entry.fields)
        return [entry.frame for entry in entries if entry.again == "behind" and entry.frame is not None]

    def attach(self, exchange: Exchange) -> None:
        """Send to this one from now on, and to nobody else."""
        before, self.receiver = self.receiver, exchange
        if before is not None:
            before.on_gone = before.on_room = lambda: None
            before.end()
        exchange.begin(HEADERS)
        # Who is cut before the first event knows from where to go on.
        opening = self._sent[-1].position if self._sent else Position(self._unsent - 1, self._mark_before())
        exchange.write(encode_event(None, id=str(opening)))
        exchange.on_room = self.flush
        self.flush()

    def _mark_before(self) -> Mark | None:
        return None if self._waiting else self.last.mark

    def keep_alive(self) -> None:
        if self.receiver is not None and not self.receiver.congested:
            self.receiver.write(KEEP_ALIVE)

    def end(self) -> None:
        receiver, self.receiver = self.receiver, None
        if receiver is not None:
            receiver.on_gone = receiver.on_room = lambda: None
            if self._waiting:
                receiver.abort()
            else:
                receiver.end()
