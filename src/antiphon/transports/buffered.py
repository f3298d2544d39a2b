"""BufferedTransport: the base of transports that consist of a `Delivery` and an `Outbox`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from antiphon.errors import LocalError
from antiphon.transports.base import Delivery, Framing, Outbox, Receive


class BufferedTransport(ABC):
    """A subclass writes frames in `_write`, and reads only while `_delivery` is open."""

    def __init__(self) -> None:
        self._delivery = Delivery()
        self._outbox = Outbox(self._write, overflow=self._overflow)
        self._end_reason = ""

    def start(self, receive: Receive, ended: Callable[[], None]) -> None:
        self._delivery.start(receive, ended)
        self._flow()

    def pause(self) -> None:
        self._delivery.pause()
        self._flow()

    def resume(self) -> None:
        self._delivery.resume()
        self._flow()

    def send(self, frame: bytes) -> None:
        self._outbox.send(frame)

    def send_now(self, frame: bytes) -> None:
        self._outbox.send_now(frame)

    @property
    def framing(self) -> Framing | None:
        return None

    def send_framed(self, data: bytes) -> None:
        raise LocalError(f"{type(self).__name__}.framing is None: use send instead of send_framed")

    @property
    def congested(self) -> bool:
        return self._outbox.congested

    async def drain(self) -> None:
        await self._outbox.drain()

    @abstractmethod
    async def aclose(self) -> None: ...

    @property
    def end_reason(self) -> str:
        return self._end_reason

    @property
    def stderr(self) -> Sequence[str]:
        return ()

    @abstractmethod
    def _write(self, frames: Sequence[bytes]) -> None:
        """Write the frames of one tick, in order."""

    @abstractmethod
    def _overflow(self, reason: str) -> None:
        """End the link, because the peer does not read."""

    @abstractmethod
    def _flow(self) -> None:
        """Pause or resume reading: `_delivery.open` may have changed."""
