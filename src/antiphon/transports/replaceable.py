"""ReplaceableTransport: one connection over several links, one after another.

Frames that are sent while there is no link are dropped; `on_cut` reports that the link was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from antiphon.errors import LocalError
from antiphon.jsonrpc.lines import Received
from antiphon.transports.base import Framing, Receive, Transport


class ReplaceableTransport:
    """`on_cut` gets the reason when a link is lost and all its frames are handed over. After that, call `put`
    with the next link, or `end`."""

    def __init__(self, first: Transport, *, on_cut: Callable[[str], None]) -> None:
        self._link: Transport | None = first
        self._on_cut = on_cut
        self._receive: Receive
        self._ended: Callable[[], None] | None = None
        self._paused = False
        self._end_reason = ""

    # --- links -------------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether it has ended, or is ending."""
        return bool(self._end_reason)

    def put(self, link: Transport) -> None:
        """Use another link."""
        self._link = link

        def receive(frames: list[Received]) -> None:
            if self._link is link:
                self._receive(frames)

        def ended() -> None:
            if self._link is link:
                self._link = None
                self._lose(link.end_reason)

        link.start(receive, ended)
        if self._paused:
            link.pause()

    def _lose(self, reason: str) -> None:
        if not self.over:
            self._on_cut(reason)
        elif self._ended is not None:
            ended, self._ended = self._ended, None
            ended()

    async def drop(self) -> None:
        """Close the current link, if any, without calling `on_cut`."""
        link, self._link = self._link, None
        if link is not None:
            await link.aclose()

    def end(self, reason: str) -> None:
        """End it: no other link follows."""
        self._end_reason = self._end_reason or reason
        if self._link is None:
            self._lose(reason)

    # --- the transport -----------------------------------------------------------------------------

    def start(self, receive: Receive, ended: Callable[[], None]) -> None:
        self._receive, self._ended = receive, ended
        if self._link is not None:
            self.put(self._link)

    def pause(self) -> None:
        self._paused = True
        if self._link is not None:
            self._link.pause()

    def resume(self) -> None:
        self._paused = False
        if self._link is not None:
            self._link.resume()

    def send(self, frame: bytes) -> None:
        if self._link is not None:
            self._link.send(frame)

    def send_now(self, frame: bytes) -> None:
        if self._link is not None:
            self._link.send_now(frame)

    @property
    def framing(self) -> Framing | None:
        return None  # the links may frame differently

    def send_framed(self, data: bytes) -> None:
        raise LocalError("ReplaceableTransport.framing is None: use send instead of send_framed")

    @property
    def congested(self) -> bool:
        return self._link is not None and self._link.congested

    async def drain(self) -> None:
        if self._link is not None:
            await self._link.drain()

    async def aclose(self) -> None:
        self._end_reason = self._end_reason or "closed by this side"
        link = self._link
        if link is not None:
            await link.aclose()
        self.end(self._end_reason)

    @property
    def end_reason(self) -> str:
        return self._end_reason

    @property
    def stderr(self) -> Sequence[str]:
        return ()
