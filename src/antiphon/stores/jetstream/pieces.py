"""Bodies that are larger than one message: written in pieces, which the message that commits names."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from antiphon.errors import StoreCorrupt
from antiphon.stores.jetstream.engine import Engine
from antiphon.stores.jetstream.layout import PIECE_BYTES

AT_ONCE = 8
"""Pieces that are under way at a time."""


async def write_pieces(engine: Engine, subject: str, body: bytes) -> tuple[int, ...]:
    """Write a body in pieces, and return their numbers; none if the body fits into a message."""
    if len(body) <= PIECE_BYTES:
        return ()
    parts = [body[at : at + PIECE_BYTES] for at in range(0, len(body), PIECE_BYTES)]
    numbers: list[int] = []
    for at in range(0, len(parts), AT_ONCE):
        group = (engine.put(f"{subject}.piece", part) for part in parts[at : at + AT_ONCE])
        numbers += await asyncio.gather(*group)
    return tuple(numbers)


async def read_pieces(engine: Engine, stream: str, numbers: Sequence[int]) -> bytes:
    """Read a body that was written in pieces. Raises `StoreCorrupt` if one is missing."""
    found: list[bytes] = []
    for at in range(0, len(numbers), AT_ONCE):
        group = numbers[at : at + AT_ONCE]
        for number, piece in zip(
            group, await asyncio.gather(*(engine.get(stream, each) for each in group)), strict=True
        ):
            if piece is None:
                raise StoreCorrupt(
                    f"piece {number} of stream {stream} is missing", found="a piece is missing"
                )
            found.append(piece.data)
    return b"".join(found)
