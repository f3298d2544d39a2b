"""The line splitter: however a stream is cut into reads, it is the same lines, and the bound holds.

The first byte of an input chooses the bound; the reads are cut by chance, seeded by the input.
"""

from __future__ import annotations

import contextlib
import random
import zlib
from collections.abc import Iterator, Sequence

from antiphon.jsonrpc.lines import LineSplitter, Received
from antiphon.jsonrpc.oversized import OversizedFrame
from tests.fuzz.mutation import seeds
from tests.fuzz.running import Broken, Check

SEEDS = seeds("lines")
WORDS = (b"\n", b"\r\n", b"\r", b"\n\n", b'{"id":1}', b'"id":', b'"method":', b"\xff", b"\\")


@contextlib.contextmanager
def opened() -> Iterator[Check]:
    yield check


def check(data: bytes) -> str:
    bound, stream = 1 + (data[0] if data else 0), data[1:]
    chance = random.Random(zlib.crc32(data))
    splitter = LineSplitter(bound=bound)
    found: list[Received] = []
    at = 0
    while at < len(stream):
        size = chance.choice((1, 2, 7, bound, 300, 5000))
        found += splitter.feed(stream[at : at + size])
        at += size
        discarded = splitter._discarded
        kept = 0 if discarded is None else len(discarded._head) + len(discarded._tail)
        if sum(map(len, splitter._parts)) > bound + 1 or kept > 1 << 13:
            raise Broken("more is held than the bound allows")
    found += splitter.end()
    whole = LineSplitter(bound=bound)
    if _sorts(found) != _sorts(whole.feed(stream) + whole.end()):
        raise Broken("the cuts between reads change the lines")
    lines = [line.removesuffix(b"\r") for line in stream.split(b"\n")]
    expected: list[bytes | None] = [line if len(line) <= bound else None for line in lines if line]
    if _sorts(found) != expected:
        raise Broken(f"expected {expected!r}, got {found!r}")
    return f"{min(len(found), 20)} lines, {any(isinstance(line, OversizedFrame) for line in found)}"


def _sorts(lines: Sequence[Received]) -> list[bytes | None]:
    return [None if isinstance(line, OversizedFrame) else line for line in lines]
