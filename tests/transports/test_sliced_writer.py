"""Large data goes out in slices, in order, and links with the same data hold it once."""

from __future__ import annotations

import asyncio
from typing import Any

from antiphon.remote.websocket_server import ServerOptions, websocket_server
from antiphon.transports.base import Inbox
from antiphon.transports.sliced_writer import LARGE, SLICE, SlicedWriter, share
from antiphon.transports.websocket import connect_websocket

DEADLINE = 30.0


class Sink:
    """A transport that has enough after so many bytes."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.got = b""
        self.writes: list[int] = []
        self.writer = SlicedWriter(self.write)

    def write(self, data: bytes | memoryview) -> None:
        self.got += data
        self.writes.append(len(data))
        self.room -= len(data)
        if self.room <= 0:
            self.writer.pause()


def test_large_data_is_written_in_slices_and_what_comes_later_waits_behind_it() -> None:
    sink, large = Sink(SLICE + 1), bytes(range(256)) * (SLICE // 64)
    sink.writer.write(large)
    sink.writer.write(b"behind")
    assert sink.writes == [SLICE, SLICE]
    assert sink.writer.size == len(large) - 2 * SLICE + len(b"behind")
    sink.room = 1
    assert not sink.writer.resume()
    sink.room = 10 * SLICE
    assert sink.writer.resume()
    assert sink.got == large + b"behind"
    assert max(sink.writes) == SLICE


def test_small_data_goes_straight_through() -> None:
    sink = Sink(10)
    sink.writer.write(b"one")
    assert (sink.got, sink.writer.size) == (b"one", 0)


def test_links_with_the_same_large_data_hold_one_object_until_the_last_has_written_it() -> None:
    first, second = Sink(0), Sink(0)
    made = [bytes(bytearray(LARGE)) for _ in range(2)]
    assert made[0] is not made[1]
    for sink, data in zip((first, second), made, strict=True):
        sink.writer.write(data)
    held = [sink.writer._waiting[0][0] for sink in (first, second)]
    assert held[0] is held[1]
    assert share(bytes(bytearray(LARGE))) is held[0]
    for sink in (first, second):
        sink.writer.drop()
    held.clear()
    other = bytes(bytearray(LARGE))
    assert share(other).data is other, "nothing is kept that nobody writes"


async def test_frames_behind_a_large_one_come_in_order_once_it_is_read() -> None:
    frames = [b'"first"', b'"%b"' % (b"x" * 20_000_000), b'"third"']
    links: list[Any] = []
    sent, done = asyncio.Event(), asyncio.Event()

    async def serve(transport: Any) -> None:
        links.append(transport)
        transport.start(lambda _: None, lambda: None)
        for frame in frames:
            transport.send(frame)
        transport.send_framed(transport.framing([b'"fourth"']))
        sent.set()
        await done.wait()

    async with (
        asyncio.timeout(DEADLINE),
        websocket_server(serve, options=ServerOptions(initialize_first=False)) as server,
    ):
        client = await connect_websocket(f"ws://127.0.0.1:{server.port}/acp")
        await sent.wait()
        assert links[0].congested
        assert links[0]._writer.size > 10_000_000, "it is not in the buffers of the transport"
        assert links[0]._transport.get_write_buffer_size() < 1_000_000
        inbox, got = Inbox(client), []
        while len(got) < 4:
            got += await inbox.take()
        assert got == [*frames, b'"fourth"']
        await links[0].drain()
        done.set()
        await client.aclose()
