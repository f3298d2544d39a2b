"""LineSplitter: splits a byte stream into frames, one per line, within a bound of memory.

LF and CRLF end a line, and blank lines are ignored (TRANS-07). A line over the bound is discarded while it
arrives and reported once in its place (RPC-38); the lines after it are read as usual.
"""

from __future__ import annotations

from antiphon.jsonrpc.oversized import DiscardedFrame, OversizedFrame, within_bound

DEFAULT_BOUND = 64 * 1024 * 1024
_CR = ord("\r")


Received = bytes | OversizedFrame
"""One frame as a transport delivers it."""


class LineSplitter:
    """`feed` takes input and returns the complete lines."""

    def __init__(self, *, bound: int = DEFAULT_BOUND) -> None:
        if bound < 1:
            raise ValueError(f"bound must be at least 1 byte, got {bound}")
        self._bound = bound
        self._parts: list[bytes] = []
        """The beginning of an incomplete line."""
        self._size = 0
        self._discarded: DiscardedFrame | None = None
        """An incomplete line over the bound."""

    def feed(self, data: bytes) -> list[Received]:
        end = data.find(b"\n")
        if end < 0:
            self._add(data)
            return []
        if end == len(data) - 1 and not self._parts and self._discarded is None and 1 < end <= self._bound:
            # One complete line: the usual case in a quiet conversation.
            return [data[:-2] if data[end - 1] == _CR else data[:-1]]
        first, rest = data.split(b"\n", 1)
        out: list[Received] = []
        self._add(first)
        self._finish(out)
        *lines, tail = rest.split(b"\n")
        if b"\r" in rest:
            lines = [line.removesuffix(b"\r") for line in lines]
        if len(rest) > self._bound:
            out.extend(within_bound(line, self._bound) for line in lines if line)
        else:
            out.extend([line for line in lines if line])
        self._add(tail)
        return out

    def end(self) -> list[Received]:
        """Return the last line, if the stream ended without its newline (TRANS-07)."""
        out: list[Received] = []
        self._finish(out)
        return out

    def _add(self, data: bytes) -> None:
        if self._discarded is not None:
            self._discarded.add(data)
        elif data:
            self._parts.append(data)
            self._size += len(data)
            # One byte over the bound may be the CR of a CRLF.
            if self._size > self._bound + 1:
                self._discarded = DiscardedFrame(self._parts)
                self._parts.clear()
                self._size = 0

    def _finish(self, out: list[Received]) -> None:
        if self._discarded is not None:
            out.append(self._discarded.describe(self._bound))
            self._discarded = None
        elif self._size:
            line = b"".join(self._parts).removesuffix(b"\r")
            self._parts.clear()
            self._size = 0
            if line:
                out.append(within_bound(line, self._bound))
