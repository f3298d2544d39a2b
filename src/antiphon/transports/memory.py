"""Two transports linked in memory, with the same bounds and ends as the other transports."""

from __future__ import annotations

from collections.abc import Sequence

from antiphon.jsonrpc.lines import DEFAULT_BOUND
from antiphon.jsonrpc.oversized import within_bound
from antiphon.transports.base import OUTBOX_HIGH
from antiphon.transports.buffered import BufferedTransport


class MemoryTransport(BufferedTransport):
    """One end of a pair made by `memory_pair`."""

    _other: MemoryTransport

    def __init__(self, *, bound: int, high: int) -> None:
        super().__init__()
        self._bound = bound
        self._high = high
        self._backlog = 0

    async def aclose(self) -> None:
        self._outbox.flush()
        self._end("closed by this side")
        self._delivery.drop()
        self._other._end("closed by the other side")

    def _write(self, frames: Sequence[bytes]) -> None:
        other = self._other
        if other._end_reason:
            return
        bound = self._bound
        received = [frame if len(frame) <= bound else within_bound(frame, bound) for frame in frames]
        other._delivery.put(received)
        if not other._delivery.open:
            # As with a full pipe, frames that the reader does not take are the writer's backlog.
            self._backlog += sum([len(frame) for frame in received if isinstance(frame, bytes)])
            if self._backlog > self._high:
                self._outbox.pause()

    def _overflow(self, reason: str) -> None:
        self._end(reason)
        self._other._end(reason)

    def _flow(self) -> None:
        if self._delivery.open:
            self._other._backlog = 0
            self._other._outbox.resume()

    def _end(self, reason: str) -> None:
        if not self._end_reason:
            self._end_reason = reason
            self._outbox.close()
            self._delivery.end()


def memory_pair(
    *, bound: int = DEFAULT_BOUND, high: int = OUTBOX_HIGH
) -> tuple[MemoryTransport, MemoryTransport]:
    """Make two linked transports: each receives what the other sends."""
    one, other = MemoryTransport(bound=bound, high=high), MemoryTransport(bound=bound, high=high)
    one._other, other._other = other, one
    return one, other
