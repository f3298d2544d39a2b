"""Server-sent events: an encoder, and a decoder of byte streams within a bound of memory.

CRLF, LF or CR end a line, LF joins the `data` lines of an event, comments are ignored, and a blank line ends
an event (HTTP-13, HTTP-14). An event over the bound is discarded while it arrives and reported in its place.
An event without its blank line at the end of the stream is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from antiphon.jsonrpc.lines import DEFAULT_BOUND
from antiphon.jsonrpc.oversized import HEAD, OversizedFrame, describe_oversized

KEEP_ALIVE = b":\n\n"
BOM = b"\xef\xbb\xbf"
_NAME_BOUND = 64
_FIELD_BOUND = 8192


class Event(Struct, frozen=True):
    data: bytes | None = None
    """`None` if the event has no `data`, only a position in the stream."""
    id: str = ""
    """The last id, of this event or an earlier one."""
    fields: Mapping[str, str] = {}
    """The other fields; of repeated ones the last value."""


def encode_event(data: bytes | None, *, id: str = "", **fields: str) -> bytes:
    """Encode an event. `fields` come before the data; other clients ignore them."""
    lines = [b"%b: %b\n" % (name.encode(), value.encode()) for name, value in fields.items()]
    if id:
        lines.append(b"id: %b\n" % id.encode())
    if data is not None:
        if b"\n" in data or b"\r" in data:
            ended_by_lf = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            lines += [b"data: %b\n" % line for line in ended_by_lf.split(b"\n")]
        else:
            lines.append(b"data: %b\n" % data)
    return b"".join((*lines, b"\n"))


class EventDecoder:
    """`feed` takes input and returns the complete events."""

    def __init__(self, *, bound: int = DEFAULT_BOUND) -> None:
        if bound < 1:
            raise ValueError(f"bound must be at least 1 byte, got {bound}")
        self._bound = bound
        self._line: list[bytes] = []
        self._line_size = 0
        self._after_cr = False
        self._begun = False
        self._data: list[bytes] = []
        self._size = 0
        self._head = b""
        """The first bytes of the data."""
        self._fields: dict[str, str] = {}
        self._id: str | None = None
        self.last_id = ""

    def feed(self, data: bytes) -> list[Event | OversizedFrame]:
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        found: list[Event | OversizedFrame] = []
        lines = data.splitlines(keepends=True)
        last = b"" if data[-1] in b"\r\n" else lines.pop()
        for line in lines:
            self._end_line(line.rstrip(b"\r\n"), found)
        self._hold(last)
        return found

    def _hold(self, part: bytes) -> None:
        """Add a piece of a line. Bytes beyond the bound are counted and not kept."""
        if part:
            if self._size + self._line_size <= self._bound + _NAME_BOUND:
                self._line.append(part)
            self._line_size += len(part)

    def _end_line(self, rest: bytes, found: list[Event | OversizedFrame]) -> None:
        if self._line:
            self._hold(rest)
            line, size = b"".join(self._line), self._line_size
            self._line, self._line_size = [], 0
        else:
            line, size = rest, len(rest)
        if not self._begun:
            self._begun = True
            line = line.removeprefix(BOM)
        if line:
            self._field(line, size)
        else:
            self._end_event(found)

    def _field(self, line: bytes, size: int) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._size += size - (len(line) - len(value)) + bool(self._data)
            if not self._head:
                self._head = value[:HEAD]
            if self._size <= self._bound:
                self._data.append(value)
            else:
                self._data = [b""]  # only `_head` is kept
        elif name and size <= _FIELD_BOUND:
            text = value.decode("utf-8", "replace")
            if name != b"id":
                self._fields[name.decode("utf-8", "replace")] = text
            elif "\0" not in text:
                self._id = text

    def _end_event(self, found: list[Event | OversizedFrame]) -> None:
        new_id, self._id = self._id, None
        if new_id is not None:
            self.last_id = new_id
        if self._size > self._bound:
            found.append(describe_oversized(self._head, b"", size=self._size, bound=self._bound))
        elif self._data or new_id is not None or self._fields:
            data = b"\n".join(self._data) if self._data else None
            found.append(Event(data, self.last_id, self._fields))
        self._data, self._size, self._fields, self._head = [], 0, {}, b""
