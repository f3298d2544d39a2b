"""Body: the body of a request as it arrives, within a bound.

What is over the bound is thrown away. Its first and last bytes are kept, so that the refusal can name the
request that was in it (RPC-38).
"""

from __future__ import annotations

from antiphon.jsonrpc.oversized import HEAD, TAIL, failure_of, overlong
from antiphon.transports.http_exchange import Reply, json

SKIPPED = 4
"""How many times the bound is read and thrown away, so that the next request can follow."""
PROGRESS = 256 * 1024
"""Bytes with which a slow body earns more time."""


class Body:
    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.size = 0
        self._parts: list[bytes] = []
        self._head = self._tail = b""
        self._paid = 0

    @property
    def over(self) -> bool:
        """Whether it is larger than the bound."""
        return self.size > self.bound

    def take(self, data: bytes) -> bool:
        """Take the next bytes; whether enough came since this was last true to wait for more."""
        self.size += len(data)
        if len(self._head) < HEAD:
            self._head += data[: HEAD - len(self._head)]
        if self.over:
            for part in (*self._parts[-TAIL:], data):
                self._tail = (self._tail + part[-TAIL:])[-TAIL:]
            self._parts = []
        else:
            self._parts.append(data)
        if self.size - self._paid < PROGRESS:
            return False
        self._paid = self.size
        return True

    def whole(self) -> bytes:
        """All of it, once."""
        parts, self._parts = self._parts, []
        return b"".join(parts)

    def refusal(self, size: int | None = None) -> Reply:
        """How a request is answered whose body is too large; `size` where it is known before all was read."""
        found = overlong(self._head, self._tail, size=size or self.size, bound=self.bound)
        return json(413, failure_of(found))
