"""Server-sent events: written, and read from bytes however they were cut, without holding more than may be.

A line ends with CRLF, LF or CR, the `data` lines of an event are joined by LF, a comment is nothing, and a
blank line ends an event (HTTP-13, HTTP-14). An event over the bound is thrown away as it arrives and reported
in its place, as an overlong line is. What is not ended by a blank line when the stream ends never was.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from antiphon.jsonrpc.lines import DEFAULT_BOUND
from antiphon.jsonrpc.oversized import HEAD, Overlong, overlong

KEEP_ALIVE = b":\n\n"
BOM = b"\xef\xbb\xbf"
_NAME_BOUND = 64
_FIELD_BOUND = 8192


class Event(Struct, frozen=True):
    data: bytes | None = None
    """`None` where the event has no `data` at all: it says where the stream stands, and nothing else."""
    id: str = ""
    """The last id that was told, with this event or before it."""
    fields: Mapping[str, str] = {}
    """Every other field, the last one of each name."""


def encode_event(data: bytes | None, *, id: str = "", **fields: str) -> bytes:
    """`fields` go before the data; who does not know them ignores them."""
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
    """Feed it what was read; it returns the events that are complete."""

    def __init__(self, *, bound: int = DEFAULT_BOUND) -> None:
        if bound < 1:
            raise ValueError("a bound is at least one byte")
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

    def feed(self, data: bytes) -> list[Event | Overlong]:
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        found: list[Event | Overlong] = []
        lines = data.splitlines(keepends=True)
        last = b"" if data[-1] in b"\r\n" else lines.pop()
        for line in lines:
            self._end_line(line.rstrip(b"\r\n"), found)
        self._hold(last)
        return found

    def _hold(self, part: bytes) -> None:
        """A piece of a line. What no field can hold is counted and not kept."""
        if part:
            if self._size + self._line_size <= self._bound + _NAME_BOUND:
                self._line.append(part)
            self._line_size += len(part)

    def _end_line(self, rest: bytes, found: list[Event | Overlong]) -> None:
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
                self._data = [b""]  # nothing of it is kept but its beginning
        elif name and size <= _FIELD_BOUND:
            text = value.decode("utf-8", "replace")
            if name != b"id":
                self._fields[name.decode("utf-8", "replace")] = text
            elif "\0" not in text:
                self._id = text

    def _end_event(self, found: list[Event | Overlong]) -> None:
        told, self._id = self._id, None
        if told is not None:
            self.last_id = told
        if self._size > self._bound:
            found.append(overlong(self._head, b"", size=self._size, bound=self._bound))
        elif self._data or told is not None or self._fields:
            data = b"\n".join(self._data) if self._data else None
            found.append(Event(data, self.last_id, self._fields))
        self._data, self._size, self._fields, self._head = [], 0, {}, b""
