"""FrameGate: removes messages over the bound from the input of a WebSocket core.

The core would close the link when a message is too large. The gate reads the headers of frames, passes on
messages within the bound, and discards the others as they arrive (RPC-38). `BoundedDeflate` does the same for
messages that are too large once they are inflated.
"""

from __future__ import annotations

import zlib
from enum import Enum
from itertools import cycle
from typing import Final

from websockets.exceptions import PayloadTooBig
from websockets.extensions.base import Extension
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Frame, Opcode

from antiphon.jsonrpc.oversized import HEAD, TAIL, OversizedFrame, describe_oversized


class Cut(Enum):
    """The rest of the current message is discarded. The next item is a final frame that the gate made."""

    CUT = "cut"


CUT: Final = Cut.CUT
CONTINUATION = 0
MESSAGE = 2
"""The highest opcode of a frame that begins a message."""
CONTROL = 8
LONGEST_CONTROL = 125
FIN, COMPRESSED, MASKED = 0x80, 0x40, 0x80
TEXT_MESSAGE, COMPRESSED_MESSAGE = 0x81, 0xC1
INVALID = b"\x8f\0"
"""A frame with a reserved opcode."""


class FrameGate:
    """`feed` takes the input after the handshake. It returns the input for the core, in order, with an
    `OversizedFrame` in place of each message over the bound."""

    def __init__(self, *, bound: int, masked: bool) -> None:
        """`masked`: whether the peer masks its frames, as a client does."""
        self._bound = bound
        self._end = b"\x80\x80\0\0\0\0" if masked else b"\x80\0"
        """An empty final frame."""
        self._broken = False
        """Whether a frame was invalid. The core then gets `INVALID` and closes the link."""
        self._partial = b""
        """The first bytes of an incomplete header."""
        self._left = 0
        """Bytes of the payload that have not been read."""
        self._data = False
        """Whether the frame is part of a message."""
        self._fin = True
        self._size = 0
        """Bytes of the message so far."""
        self._over = False
        """Whether the message is discarded."""
        self._watched = False
        """Whether to keep the ends of the message: it has several frames, or is discarded."""
        self._mask = b""
        self._at = 0
        """Bytes of the payload that have been read."""
        self._compressed = False
        self._head = self._tail = b""

    @property
    def incomplete_size(self) -> int:
        """Bytes of an incomplete message that were passed on."""
        complete = self._fin and not (self._left and self._data)
        if complete or self._over:
            return 0
        return self._size - (self._left if self._data else 0)

    def feed(self, data: bytes) -> list[bytes | OversizedFrame | Cut]:
        if self._broken:
            return []
        if self._partial:
            data, self._partial = self._partial + data, b""
        out: list[bytes | OversizedFrame | Cut] = []
        passed = 0
        at = 0 if self._left or self._watched else _whole_messages(data, self._bound)
        end = len(data)
        while at < end:
            if not self._left:
                header = _header_size(data, at)
                if at + header > end:
                    self._partial = data[at:]
                    end = at
                    break
                if self._breaks_rules(data[at] & 0x0F, data[at + 1] & 0x7F):
                    # The core might accept it, as it does not see every frame, or buffer all of it first.
                    self._broken = True
                    return [*out, data[passed:at] + INVALID]
                was_over = self._over
                self._begin(data, at, header)
                if self._over and self._data:
                    if at > passed:
                        out.append(data[passed:at])
                    if not was_over and data[at] & 0x0F == CONTINUATION:
                        out += [CUT, self._end]
                at += header
            step = min(self._left, end - at)
            if self._watched and self._data:
                self._watch(data[at : at + step])
            self._left -= step
            at += step
            if self._over and self._data:
                passed = at
            if not self._left and self._data and self._fin:
                self._finish(out)
        if end > passed:
            out.append(data if passed == 0 and end == len(data) else data[passed:end])
        return out

    def _breaks_rules(self, opcode: int, length: int) -> bool:
        """Return whether a control frame is too long, or a data frame begins a message inside another message
        or continues none."""
        if opcode >= CONTROL:
            return length > LONGEST_CONTROL
        return opcode > MESSAGE or (opcode == CONTINUATION) == self._fin

    def _begin(self, data: bytes, at: int, header: int) -> None:
        first, second = data[at], data[at + 1]
        length = second & 0x7F
        if length > 125:
            length = int.from_bytes(data[at + 2 : at + (4 if length == 126 else 10)])
        self._left = length
        opcode = first & 0x0F
        self._data = opcode < CONTROL
        if not self._data:
            return
        self._fin = bool(first & FIN)
        self._mask = data[at + header - 4 : at + header] if second & MASKED else b""
        self._at = 0
        if opcode != CONTINUATION:
            self._size, self._compressed, self._watched = 0, bool(first & COMPRESSED), not self._fin
            self._head = self._tail = b""
        self._size += length
        if self._size > self._bound:
            self._over = self._watched = True

    def _watch(self, part: bytes) -> None:
        """Keep the first and last bytes of a message."""
        room = HEAD - len(self._head)
        if room > 0:
            self._head += self._unmasked(part[:room], self._at)
        last = part[-TAIL:]
        self._tail = (self._tail + self._unmasked(last, self._at + len(part) - len(last)))[-TAIL:]
        self._at += len(part)

    def _unmasked(self, part: bytes, at: int) -> bytes:
        if not self._mask:
            return part
        turned = self._mask[at % 4 :] + self._mask[: at % 4]
        return bytes(one ^ key for one, key in zip(part, cycle(turned), strict=False))

    def _finish(self, out: list[bytes | OversizedFrame | Cut]) -> None:
        if self._over:
            head, tail = (inflated(self._head), b"") if self._compressed else (self._head, self._tail)
            out.append(describe_oversized(head, tail, size=self._size, bound=self._bound))
        self._over = self._watched = False
        self._head = self._tail = b""


def _whole_messages(data: bytes, bound: int) -> int:
    """Return the offset of the first frame that is not a complete small message within the bound.

    Nearly every frame is one, so this loop is a fast path.
    """
    at, end = 0, len(data) - 4
    while at < end and (data[at] == TEXT_MESSAGE or data[at] == COMPRESSED_MESSAGE):
        second = data[at + 1]
        length = second & 0x7F
        following = at + 2 + length
        if length == 126:
            length = data[at + 2] << 8 | data[at + 3]
            following = at + 4 + length
        elif length == 127:
            break
        if second & MASKED:
            following += 4
        if length > bound or following > end + 4:
            break
        at = following
    return at


def _header_size(data: bytes, at: int) -> int:
    """Return the size of the header at `at`; of an incomplete one, a size beyond the end of `data`."""
    if at + 2 > len(data):
        return 2
    second = data[at + 1]
    length = second & 0x7F
    return 2 + (8 if length == 127 else 2 if length == 126 else 0) + (4 if second & MASKED else 0)


def inflated(head: bytes) -> bytes:
    """Inflate the beginning of a compressed message; empty if that fails."""
    try:
        return zlib.decompressobj(wbits=-15).decompress(head, HEAD)
    except zlib.error:
        return b""


class TooLargeFrame(Frame):
    """The last frame of a message that is too large once it is inflated. `data` is the beginning of the
    message, unless the core has read that."""


class BoundedDeflate(Extension):
    """Compression that inflates no message beyond the bound. Every message is compressed separately, so the
    rest of an oversized one can be skipped."""

    name = PerMessageDeflate.name

    def __init__(self, inner: PerMessageDeflate, *, bound: int) -> None:
        self._inner = inner
        self._bound = bound
        self._left = bound
        self._skipping = False
        self._over: bytes | None = None
        """The beginning of an oversized message."""

    def cut(self) -> None:
        """Skip the rest of the current message."""
        self._skipping, self._over = True, None

    def encode(self, frame: Frame) -> Frame:
        return self._inner.encode(frame)

    def decode(self, frame: Frame, *, max_size: int | None = None) -> Frame:
        if frame.opcode >= CONTROL:
            return frame
        if frame.opcode is not Opcode.CONT:
            self._left, self._skipping = self._bound, False
        if not self._skipping:
            try:
                decoded = self._inner.decode(frame, max_size=max(self._left, 1))
            except PayloadTooBig:
                if not self._inner.remote_no_context_takeover:
                    raise
                first = frame.opcode is not Opcode.CONT
                self._over = inflated(bytes(frame.data[:HEAD])) if first else b""
            else:
                self._left -= len(decoded.data)
                return decoded
        self._skipping = not frame.fin
        if not frame.fin:
            return Frame(frame.opcode, b"", fin=False)
        self._inner.decode_cont_data = False
        head, self._over = self._over, None
        return Frame(frame.opcode, b"") if head is None else TooLargeFrame(frame.opcode, head)
