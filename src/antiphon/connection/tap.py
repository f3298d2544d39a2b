"""Tap: a read-only copy of the frames on a connection."""

from __future__ import annotations

from collections.abc import Callable

from antiphon.jsonrpc.lines import Received

Tap = Callable[[str, Received], None]
"""Called with `"in"` or `"out"` and the frame."""


def tapped_out(send: Callable[[bytes], None], tap: Tap | None) -> Callable[[bytes], None]:
    if tap is None:
        return send

    def tapped(frame: bytes) -> None:
        tap("out", frame)
        send(frame)

    return tapped


def tapped_in(receive: Callable[[list[Received]], None], tap: Tap | None) -> Callable[[list[Received]], None]:
    if tap is None:
        return receive

    def tapped(received: list[Received]) -> None:
        for frame in received:
            tap("in", frame)
        receive(received)

    return tapped
