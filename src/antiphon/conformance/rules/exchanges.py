"""Exchanges: which response belongs to which request, read from a recording."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from msgspec import Struct

from antiphon.conformance.recording import RecordedFrame, Recording, Role


class Exchange(Struct):
    """A request, and the response to it if there is one."""

    request: RecordedFrame
    response: RecordedFrame | None = None


class Exchanges:
    """The requests of one side. `strays` are responses of the other side that answer no open request."""

    def __init__(self, recording: Recording, asker: Role) -> None:
        self.all: list[Exchange] = []
        self.strays: list[RecordedFrame] = []
        self.reused: list[tuple[RecordedFrame, RecordedFrame]] = []
        """Requests whose id was that of an open request, which comes first."""
        open: dict[tuple[type, Any], Exchange] = {}
        for frame in recording.frames:
            if frame.is_request and frame.sender is asker and _is_id(frame.id):
                earlier = open.get((type(frame.id), frame.id))
                if earlier is not None:
                    self.reused.append((earlier.request, frame))
                exchange = Exchange(frame)
                self.all.append(exchange)
                open[type(frame.id), frame.id] = exchange
            elif frame.is_response and frame.sender is not asker:
                found = open.pop((type(frame.id), frame.id), None) if _is_id(frame.id) else None
                if found is None:
                    self.strays.append(frame)
                else:
                    found.response = frame

    def answered(self, *methods: str) -> Iterator[tuple[RecordedFrame, RecordedFrame]]:
        """Yield the answered requests of some methods; of all, if none is named."""
        for exchange in self.all:
            if exchange.response is not None and (not methods or exchange.request.method in methods):
                yield exchange.request, exchange.response


def exchanges_of(recording: Recording, asker: Role) -> Exchanges:
    """Return the requests of one side. Rules ask for the same ones again and again."""
    return _exchanges(recording, asker, len(recording.frames))


@lru_cache(maxsize=4)
def _exchanges(recording: Recording, asker: Role, length: int) -> Exchanges:
    return Exchanges(recording, asker)


def _is_id(id: Any) -> bool:
    """Whether a value can be an id of any version."""
    return id is None or (isinstance(id, (str, int, float)) and not isinstance(id, bool))
