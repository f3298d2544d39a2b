"""The file of a moved session: parts, each under its own checksum, and an end with that of the whole.

A part is a line, which is its head as JSON, a space and a checksum; then its body, deflated; then a newline.
The checksum is of head and body together, so no byte of a file can change without being missed.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from typing import BinaryIO, TypeAlias

import msgspec
from msgspec import Struct

from antiphon.errors import LocalError
from antiphon.jsonrpc.frames import UNREADABLE

FORMAT = "antiphon session"
VERSIONS = (1, 2, 3)
"""1 holds one session, 2 also those that work for it, 3 also sessions of which something is missing. A file
is written in the oldest that can hold it, and read in all."""
HEAD_LIMIT = 64 * 1024
FOUND_LIMIT = 1000
"""Characters of a fault in a file."""
BODY_LIMIT = 256 * 1024 * 1024
"""Bytes of a body, deflated or not: four times the largest frame of a peer."""

Write = Callable[[bytes], object]


class FileRefused(LocalError):
    """A file that is no whole, undamaged file of a session; the message says where, and what."""


class Head(Struct, frozen=True, kw_only=True, tag_field="part"):
    size: int
    """Bytes of the body in the file."""
    inflated: int


class SessionHead(Head, frozen=True, kw_only=True, tag="session"):
    """The first part of a session; its body is the session's record."""

    format: str
    version: int
    session_id: str
    last: int
    """The number of the last event that follows."""


class EventsHead(Head, frozen=True, kw_only=True, tag="events"):
    """Consecutive events, one a line."""

    first: int
    last: int


class MissingHead(Head, frozen=True, kw_only=True, tag="missing"):
    """Events that were damaged when the session was exported, without a body. 0 to 0 is its record."""

    first: int
    last: int
    found: str


class EndHead(Head, frozen=True, kw_only=True, tag="end"):
    """The last part, without a body."""

    sha256: str
    """Of everything before this part."""


AnyHead: TypeAlias = SessionHead | EventsHead | MissingHead | EndHead
_read_head = msgspec.json.Decoder(AnyHead).decode
_write = msgspec.json.Encoder().encode


class PartWriter:
    def __init__(self, write: Write, *, version: int = 1) -> None:
        self._write = write
        self._version = version
        self._whole = hashlib.sha256()

    def begin(self, session_id: str, last: int, record: bytes) -> None:
        body = zlib.compress(record)
        self._add(
            SessionHead(
                format=FORMAT,
                version=self._version,
                session_id=session_id,
                last=last,
                size=len(body),
                inflated=len(record),
            ),
            body,
        )

    def events(self, first: int, events: list[bytes]) -> None:
        lines = b"\n".join(events)
        if len(lines) > BODY_LIMIT:
            raise LocalError(f"event {first} is larger than a session file can hold")
        body = zlib.compress(lines)
        last = first + len(events) - 1
        self._add(EventsHead(first=first, last=last, size=len(body), inflated=len(lines)), body)

    def missing(self, first: int, last: int, found: str) -> None:
        self._add(MissingHead(first=first, last=last, found=found[:FOUND_LIMIT], size=0, inflated=0), b"")

    def end(self) -> None:
        self._add(EndHead(sha256=self._whole.hexdigest(), size=0, inflated=0), b"")

    def _add(self, head: AnyHead, body: bytes) -> None:
        line = _write(head)
        whole = b"%b %b\n%b\n" % (line, _checksum(line, body), body)
        self._whole.update(whole)
        self._write(whole)


class PartReader:
    """Reads parts one after the other; whatever is not as it was written raises `FileRefused`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._at = 0
        self._whole = hashlib.sha256()
        self._version = 0

    def begin(self) -> tuple[SessionHead, bytes]:
        """Read the first part. It has one shape in all versions, so that a later version can be
        recognized."""
        head, body = self._next()
        if not isinstance(head, SessionHead) or head.format != FORMAT:
            raise FileRefused("it does not begin like a session file")
        if head.version not in VERSIONS:
            raise FileRefused(
                f"it is of version {head.version} and this Antiphon reads versions up to {VERSIONS[-1]}: "
                "a later one wrote it"
            )
        self._version = head.version
        return head, body

    def next(self) -> tuple[EventsHead | MissingHead | SessionHead, bytes] | None:
        """Return the next events, or the next session; `None` at the end, after the file was checked as a
        whole."""
        head, body = self._next()
        if isinstance(head, EventsHead) or (isinstance(head, SessionHead) and self._version > 1):
            return head, body
        if isinstance(head, MissingHead) and self._version > 2:
            return head, body
        if not isinstance(head, EndHead):
            what = "a second session begins" if isinstance(head, SessionHead) else _named(head)
            raise FileRefused(f"{self._where()}: {what}, which version {self._version} does not have")
        if self._file.read(1):
            raise FileRefused(f"data follows its end, from byte {self._at} on")
        return None

    def _next(self) -> tuple[AnyHead, bytes]:
        begins = self._at
        expected = self._whole.hexdigest()
        line = self._line()
        encoded, _, checksum = line[:-1].rpartition(b" ")
        try:
            head = _read_head(encoded)
        except UNREADABLE:
            known = "it is not a session file" if begins == 0 else "the head of a part cannot be read"
            raise FileRefused(f"{self._where(begins)}: {known}") from None
        if not (0 <= head.size <= BODY_LIMIT and 0 <= head.inflated <= BODY_LIMIT):
            raise FileRefused(
                f"{self._where(begins)}: the head of a part states a size above the limit of {BODY_LIMIT}"
            )
        body = self._take(head.size + 1)
        if checksum != _checksum(encoded, body[:-1]) or body[-1:] != b"\n":
            raise FileRefused(f"{self._where(begins)}: {_named(head)} does not match its checksum")
        if isinstance(head, EndHead) and head.sha256 != expected:
            raise FileRefused("the file as a whole does not match its checksum: parts are missing or moved")
        return head, _inflate(head, body[:-1], self._where(begins))

    def _line(self) -> bytes:
        line = self._file.readline(HEAD_LIMIT)
        if not line.endswith(b"\n"):
            if self._at == 0:
                raise FileRefused("it is not a session file")
            if len(line) < HEAD_LIMIT:
                raise FileRefused(f"it is cut off after byte {self._at + len(line)}")
            raise FileRefused(f"{self._where()}: the head of a part cannot be read")
        self._passed(line)
        return line

    def _take(self, size: int) -> bytes:
        taken = self._file.read(size)
        self._passed(taken)
        if len(taken) < size:
            raise FileRefused(f"it is cut off after byte {self._at}")
        return taken

    def _passed(self, data: bytes) -> None:
        self._at += len(data)
        self._whole.update(data)

    def _where(self, begins: int | None = None) -> str:
        return f"damaged at byte {self._at if begins is None else begins}"


def _checksum(head: bytes, body: bytes) -> bytes:
    return hashlib.sha256(head + b"\n" + body).hexdigest().encode()


def _named(head: AnyHead) -> str:
    if isinstance(head, EventsHead):
        return f"the part with events {head.first} to {head.last}"
    if isinstance(head, MissingHead):
        return f"the note that events {head.first} to {head.last} are missing"
    return "the beginning" if isinstance(head, SessionHead) else "the end"


def _inflate(head: AnyHead, body: bytes, where: str) -> bytes:
    """Inflate a body. The size that its head states is the limit, which stops decompression bombs."""
    if isinstance(head, EndHead | MissingHead):
        if body:
            raise FileRefused(f"{where}: {_named(head)} has a body")
        return b""
    inflating = zlib.decompressobj()
    try:
        inflated = inflating.decompress(body, head.inflated + 1)
    except zlib.error:
        raise FileRefused(f"{where}: {_named(head)} cannot be inflated") from None
    if len(inflated) != head.inflated or not inflating.eof or inflating.unused_data:
        raise FileRefused(f"{where}: {_named(head)} does not have the stated size")
    return inflated
