"""Messages over the bound: swallowed as they arrive, reported in their place, and the link lives."""

from __future__ import annotations

import asyncio
import json
import os
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_as_other
from websockets.frames import Frame, Opcode

from antiphon.jsonrpc.oversized import OversizedFrame
from antiphon.remote.websocket_server import ServerOptions, websocket_server
from antiphon.transports.base import Inbox
from antiphon.transports.websocket import connect_websocket
from antiphon.transports.websocket_gate import CUT, INVALID, FrameGate

DEADLINE = 15.0
BOUND = 50


def written(payload: bytes, opcode: Opcode, *, fin: bool, masked: bool) -> bytes:
    return Frame(opcode, payload, fin).serialize(mask=masked)


def fed(gate: FrameGate, data: bytes, cuts: list[int]) -> list[Any]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [item for start, end in pairwise(edges) for item in gate.feed(data[start:end])]


def joined(items: list[Any]) -> list[Any]:
    """What is passed on, in one piece up to the next of something else."""
    found: list[Any] = []
    for item in items:
        if isinstance(item, bytes) and found and isinstance(found[-1], bytes):
            found[-1] += item
        else:
            found.append(item)
    return found


MESSAGES = st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=4), max_size=6)


@given(MESSAGES, st.booleans(), st.booleans(), st.lists(st.integers(0, 9999)))
def test_every_message_within_the_bound_passes_as_it_came(
    messages: list[list[int]], masked: bool, pings: bool, cuts: list[int]
) -> None:
    end = b"\x80\x80\0\0\0\0" if masked else b"\x80\0"
    data = b""
    expected: list[Any] = []
    for sizes in messages:
        total, cut = 0, False
        for number, size in enumerate(sizes):
            opcode = Opcode.CONT if number else Opcode.TEXT
            frame = written(b"x" * size, opcode, fin=number == len(sizes) - 1, masked=masked)
            ping = written(b"p", Opcode.PING, fin=True, masked=masked) if pings else b""
            data += frame + ping
            total += size
            if total > BOUND and not cut:
                cut = True
                expected += [CUT, end] if number else []
            if not cut:
                expected.append(frame)
            if number == len(sizes) - 1 and cut:
                expected.append(OversizedFrame(sum(sizes), BOUND))
            expected.append(ping)
    got = fed(FrameGate(bound=BOUND, masked=masked), data, cuts)
    assert joined([item for item in got if item != b""]) == joined([item for item in expected if item != b""])


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("size", [125, 126, 65535, 65536, 200_000])
def test_all_lengths_are_read(size: int, masked: bool) -> None:
    frame = written(os.urandom(size), Opcode.TEXT, fin=True, masked=masked)
    for cuts in ([], [1], [3, 9], list(range(20))):
        assert b"".join(fed(FrameGate(bound=size, masked=masked), frame, cuts)) == frame
        assert fed(FrameGate(bound=size - 1, masked=masked), frame, cuts) == [OversizedFrame(size, size - 1)]


@pytest.mark.parametrize("pieces", [1, 2, 7])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("last", [True, False])
def test_the_id_is_found(masked: bool, pieces: int, last: bool) -> None:
    params = {"text": "x" * 9000}
    message = (
        {"method": "m", "params": params, "id": "a"} if last else {"id": "a", "method": "m", "params": params}
    )
    payload = json.dumps(message).encode()
    step = -(-len(payload) // pieces)
    parts = [payload[at : at + step] for at in range(0, len(payload), step)]
    frames = [
        written(part, Opcode.CONT if number else Opcode.TEXT, fin=number == len(parts) - 1, masked=masked)
        for number, part in enumerate(parts)
    ]
    gate = FrameGate(bound=8000, masked=masked)
    assert fed(gate, b"".join(frames), [5, 100, 4321])[-1] == OversizedFrame(len(payload), 8000, "a")


def test_what_is_swallowed_is_not_kept() -> None:
    gate = FrameGate(bound=1000, masked=False)
    tracemalloc.start()
    assert gate.feed(b"\x81\x7f" + (10**12).to_bytes(8)) == []
    for _ in range(500):
        assert gate.feed(b"x" * 100_000) == []
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


NESTED = [
    (Opcode.TEXT, False, 20),
    (Opcode.TEXT, True, BOUND + 1),
    (Opcode.TEXT, False, BOUND + 1),
    (Opcode.BINARY, True, 3),
]


@pytest.mark.parametrize(("opcode", "fin", "size"), NESTED)
@pytest.mark.parametrize("first", [20, BOUND + 1], ids=["kept", "swallowed"])
def test_a_message_inside_of_another_breaks_the_link_and_stays_counted(
    opcode: Opcode, fin: bool, size: int, first: int
) -> None:
    gate = FrameGate(bound=BOUND, masked=True)
    begun = written(b"x" * first, Opcode.TEXT, fin=False, masked=True)
    passed = gate.feed(begun)
    assert gate.incomplete_size == (first if first <= BOUND else 0)
    nested = written(b"y" * size, opcode, fin=fin, masked=True)
    assert (passed, gate.feed(nested + begun)) == ([begun] if first <= BOUND else [], [INVALID])
    assert gate.incomplete_size == (first if first <= BOUND else 0), "the first message still counts"
    assert gate.feed(written(b"{}", Opcode.TEXT, fin=True, masked=True)) == []


def test_a_frame_that_continues_nothing_or_a_long_control_frame_breaks_the_link() -> None:
    for opcode in (0, 3, 7, 8, 9, 10):
        gate = FrameGate(bound=BOUND, masked=False)
        message = written(b"{}", Opcode.TEXT, fin=True, masked=False)
        endless = bytes([0x80 | opcode, 0x7F]) + (1 << 40).to_bytes(8)
        assert gate.feed(message + endless) == [message + INVALID]
        assert gate.feed(b"x" * 1000) == []


# --- over sockets ---------------------------------------------------------------------------------------


@asynccontextmanager
async def reported(*, compression: str | None, bound: int = 100_000) -> AsyncIterator[ClientConnection]:
    """A client of another hand, at a server that says what it received."""

    async def serve(transport: Any) -> None:
        inbox = Inbox(transport)
        while batch := await inbox.take():
            for frame in batch:
                known = [frame.bound, frame.id] if isinstance(frame, OversizedFrame) else len(frame)
                transport.send(json.dumps(known).encode())

    server = websocket_server(
        serve, options=ServerOptions(bound=bound, compression=compression is not None, initialize_first=False)
    )
    async with asyncio.timeout(DEADLINE), server as listens:
        address = f"ws://127.0.0.1:{listens.port}/acp"
        async with connect_as_other(address, compression=compression, max_size=None) as client:
            yield client


def message(size: int, id: int) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "m", "params": {"text": "x" * size}})


def pieces(text: str, count: int) -> Iterator[str]:
    step = -(-len(text) // count)
    yield from (text[at : at + step] for at in range(0, len(text), step))


@pytest.mark.parametrize("compression", [None, "deflate"])
@pytest.mark.parametrize("count", [1, 2, 50])
async def test_a_link_lives_whatever_is_too_large(compression: str | None, count: int) -> None:
    async with reported(compression=compression) as client:
        for id in range(3):
            for size, expected in ((10, None), (300_000, [100_000, id]), (90_000, None)):
                text = message(size, id)
                await client.send(text if count == 1 else pieces(text, count))
                assert json.loads(await client.recv()) == (expected or len(text))


@pytest.mark.parametrize("count", [1, 2])
async def test_a_bomb_costs_no_more_than_the_bound(count: int) -> None:
    """200 MB that are compressed to 200 kB."""
    async with reported(compression="deflate", bound=1_000_000) as client:
        packer = zlib.compressobj(9, wbits=-15)
        head = packer.compress(b'{"id":7,"method":"m","params":"')
        bomb = head + b"".join(packer.compress(b"x" * 1_000_000) for _ in range(200))
        bomb += packer.flush(zlib.Z_SYNC_FLUSH)[:-4]
        half = len(bomb) if count == 1 else len(bomb) // 2
        first = bytearray(written(bomb[:half], Opcode.TEXT, fin=count == 1, masked=True))
        first[0] |= 0x40  # it is compressed
        frames = [bytes(first)]
        if count == 2:
            frames.append(written(bomb[half:], Opcode.CONT, fin=True, masked=True))
        tracemalloc.start()
        for frame in frames:
            client.transport.write(frame)
        assert json.loads(await client.recv()) == [1_000_000, 7]
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
        tracemalloc.stop()
        await client.send(message(10, 8))
        assert json.loads(await client.recv()) == len(message(10, 8))


@pytest.mark.parametrize("compression", [True, False])
async def test_our_client_skips_what_a_server_sends_over_its_bound(compression: bool) -> None:
    async def serve(transport: Any) -> None:
        inbox = Inbox(transport)
        await inbox.take()
        for size in (10, 300_000, 20):
            transport.send(message(size, size).encode())
        await inbox.take()

    server = websocket_server(serve, options=ServerOptions(compression=compression, initialize_first=False))
    async with asyncio.timeout(DEADLINE), server as listens:
        address = f"ws://127.0.0.1:{listens.port}/acp"
        client = await connect_websocket(address, bound=1000, compression=compression)
        inbox = Inbox(client)
        client.send(b"go")
        got: list[Any] = []
        while len(got) < 3:
            got += await inbox.take()
        assert isinstance(got[1], OversizedFrame)
        assert (got[1].bound, got[1].id) == (1000, 300_000)
        assert [json.loads(got[at])["id"] for at in (0, 2)] == [10, 20]
        await client.aclose()
