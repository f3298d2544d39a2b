"""The interface of a filter for the frames of a WebSocket."""

from __future__ import annotations

from typing import Protocol

from antiphon.jsonrpc.lines import Received


class Closing(Exception):
    """Raised to close the WebSocket with a code and a reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class WebSocketOpening(Protocol):
    """Sees each frame of a WebSocket, in both directions."""

    def receive(self, frames: list[Received]) -> tuple[list[Received], list[bytes]]:
        """Return the received frames to pass on, and answers to send at once. Raises `Closing`."""

    def answered(self, frame: bytes) -> None:
        """See a frame that is sent."""
