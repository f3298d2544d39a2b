"""Lines: a byte stream cut into frames, one per line, without ever holding more than it may.

LF and CRLF end a line, blank lines are nothing (TRANS-07), and a line over the bound is thrown away as
it arrives and reported once in its place (RPC-38): the stream goes on behind it.
"""

from __future__ import annotations

from antiphon.jsonrpc.oversized import HEAD, TAIL, Overlong, overlong

DEFAULT_BOUND = 64 * 1024 * 1024
_CR = ord("\r")


Received = bytes | Overlong
"""One frame as a transport hands it on."""


class LineSplitter:
    """Feed it what was read; it returns the lines that are complete."""

    def __init__(self, *, bound: int = DEFAULT_BOUND) -> None:
        if bound < 1:
            raise ValueError("a line bound is at least one byte")
        self._bound = bound
        self._parts: list[bytes] = []
        self._held = 0
        self._dropped = 0
        self._head = self._tail = b""
        """Of a line that is thrown away."""

    def feed(self, data: bytes) -> list[Received]:
        end = data.find(b"\n")
        if end < 0:
            self._hold(data)
            return []
        if end == len(data) - 1 and not self._parts and not self._dropped and 1 < end <= self._bound:
            # One line, whole: what a quiet conversation consists of.
            return [data[:-2] if data[end - 1] == _CR else data[:-1]]
        first, rest = data.split(b"\n", 1)
        out: list[Received] = []
        self._hold(first)
        self._finish(out)
        *lines, tail = rest.split(b"\n")
        if b"\r" in rest:
            lines = [line.removesuffix(b"\r") for line in lines]
        if len(rest) > self._bound:
            out.extend(self._checked(line) for line in lines if line)
        else:
            out.extend([line for line in lines if line])
        self._hold(tail)
        return out

    def end(self) -> list[Received]:
        """The stream is over: a last line without its newline still counts (TRANS-07)."""
        out: list[Received] = []
        self._finish(out)
        return out

    def _hold(self, data: bytes) -> None:
        if self._dropped:
            self._dropped += len(data)
            self._tail = (self._tail + data[-TAIL:])[-TAIL:]
        elif data:
            self._parts.append(data)
            self._held += len(data)
            # One byte more than the bound may still be the CR of a CRLF.
            if self._held > self._bound + 1:
                self._dropped, self._held = self._held, 0
                self._keep_ends()
                self._parts.clear()

    def _finish(self, out: list[Received]) -> None:
        if self._dropped:
            out.append(overlong(self._head, self._tail, size=self._dropped, bound=self._bound))
            self._dropped, self._head, self._tail = 0, b"", b""
        elif self._held:
            line = b"".join(self._parts).removesuffix(b"\r")
            self._parts.clear()
            self._held = 0
            if line:
                out.append(self._checked(line))

    def _checked(self, line: bytes) -> Received:
        if len(line) <= self._bound:
            return line
        return overlong(line[:HEAD], line[-TAIL:], size=len(line), bound=self._bound)

    def _keep_ends(self) -> None:
        """Keep the first and the last bytes of what is held."""
        for part in self._parts:
            self._head = (self._head + part[:HEAD])[:HEAD]
        for part in self._parts[-TAIL:]:
            self._tail = (self._tail + part[-TAIL:])[-TAIL:]
