"""Two transports linked in memory, with the same bounds and the same endings as the real ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from antiphon.jsonrpc.lines import DEFAULT_BOUND, Overlong, Received
from antiphon.transports.base import OUTBOX_HIGH, Inbox, Outbox


class MemoryTransport:
    """One end of a pair made by `memory_pair`."""

    _other: MemoryTransport

    def __init__(self, *, bound: int, high: int) -> None:
        self._bound = bound
        self._inbox = Inbox(high=high, pause=self._hold, resume=self._release)
        self._outbox = Outbox(write=self._pass_on, backlog=lambda: self._backlog, high=high)
        self._backlog = 0
        self._waiting: list[Received] = []
        self._holding = False
        self._end_reason = ""

    async def receive(self) -> list[Received]:
        return await self._inbox.take()

    def send(self, frame: bytes) -> None:
        self._outbox.send(frame)

    @property
    def congested(self) -> bool:
        return self._outbox.congested

    async def drain(self) -> None:
        await self._outbox.drain()

    async def aclose(self) -> None:
        self._outbox.flush()
        self._end("closed by this side")
        self._other._end("closed by the other side")

    @property
    def end_reason(self) -> str:
        return self._end_reason

    @property
    def stderr(self) -> Sequence[str]:
        return ()

    def _pass_on(self, frames: Iterable[bytes]) -> None:
        self._other._arrive(
            [frame if len(frame) <= self._bound else Overlong(len(frame), self._bound) for frame in frames]
        )

    def _arrive(self, frames: list[Received]) -> None:
        if self._end_reason:
            return
        if self._holding:
            # As a full pipe does: what the reader has not room for is the writer's backlog.
            self._waiting += frames
            self._other._backlog += _size(frames)
        else:
            self._inbox.put(frames, _size(frames))

    def _hold(self) -> None:
        self._holding = True

    def _release(self) -> None:
        self._holding = False
        waiting, self._waiting = self._waiting, []
        self._other._backlog = 0
        self._inbox.put(waiting, _size(waiting))
        self._other._outbox.writable()

    def _end(self, reason: str) -> None:
        if self._end_reason:
            return
        self._end_reason = reason
        self._inbox.put(self._waiting, 0)
        self._inbox.end()
        self._outbox.close()


def _size(frames: list[Received]) -> int:
    return sum([len(frame) for frame in frames if isinstance(frame, bytes)])


def memory_pair(
    *, bound: int = DEFAULT_BOUND, high: int = OUTBOX_HIGH
) -> tuple[MemoryTransport, MemoryTransport]:
    """Two linked ends: what one sends, the other receives."""
    one, other = MemoryTransport(bound=bound, high=high), MemoryTransport(bound=bound, high=high)
    one._other, other._other = other, one
    return one, other
