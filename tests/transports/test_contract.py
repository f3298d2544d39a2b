"""Every transport keeps the contract that is shipped in `antiphon.testing`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.requirements.marks import requirement

from antiphon.remote.websocket_server import ServerOptions, websocket_server
from antiphon.testing import check_transport
from antiphon.testing.transports import CHECKS
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair
from antiphon.transports.pipes import PipeTransport
from antiphon.transports.replaceable import ReplaceableTransport
from antiphon.transports.websocket import connect_websocket


@asynccontextmanager
async def memory() -> AsyncIterator[tuple[Transport, Transport]]:
    one, other = memory_pair()
    yield one, other
    await one.aclose()
    await other.aclose()


class _Pipes(PipeTransport):
    async def open(self, source: int, sink: int) -> None:
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: self._reader, os.fdopen(source, "rb", 0))
        await loop.connect_write_pipe(lambda: self._writer, os.fdopen(sink, "wb", 0))


@asynccontextmanager
async def pipes() -> AsyncIterator[tuple[Transport, Transport]]:
    one, other = _Pipes(bound=64 << 20), _Pipes(bound=64 << 20)
    (r1, w1), (r2, w2) = os.pipe(), os.pipe()
    await one.open(r1, w2)
    await other.open(r2, w1)
    yield one, other
    await one.aclose()
    await other.aclose()


async def _websocket(compression: bool) -> AsyncIterator[tuple[Transport, Transport]]:
    accepted: asyncio.Future[Transport] = asyncio.get_running_loop().create_future()
    done = asyncio.Event()

    async def serve(transport: Transport) -> None:
        accepted.set_result(transport)
        await done.wait()

    async with websocket_server(
        serve, options=ServerOptions(compression=compression, initialize_first=False)
    ) as server:
        client = await connect_websocket(f"ws://127.0.0.1:{server.port}/acp", compression=compression)
        try:
            yield client, await accepted
        finally:
            done.set()
            await client.aclose()


@asynccontextmanager
async def websocket_client_first() -> AsyncIterator[tuple[Transport, Transport]]:
    async for pair in _websocket(False):
        yield pair


@asynccontextmanager
async def websocket_server_first() -> AsyncIterator[tuple[Transport, Transport]]:
    async for client, server in _websocket(False):
        yield server, client


@asynccontextmanager
async def websocket_compressed() -> AsyncIterator[tuple[Transport, Transport]]:
    async for pair in _websocket(True):
        yield pair


@asynccontextmanager
async def lasting() -> AsyncIterator[tuple[Transport, Transport]]:
    one, other = memory_pair()
    over: ReplaceableTransport = ReplaceableTransport(one, on_cut=lambda reason: over.end(reason))
    yield over, other
    await over.aclose()
    await other.aclose()


MAKERS = [memory, pipes, websocket_client_first, websocket_server_first, websocket_compressed, lasting]


@requirement("TRANS-08")
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
async def test_the_contract_is_kept(make) -> None:
    await check_transport(make)


async def test_the_contract_catches_a_transport_that_loses_a_frame() -> None:
    @asynccontextmanager
    async def lossy() -> AsyncIterator[tuple[Transport, Transport]]:
        one, other = memory_pair()
        whole, count = one.send, iter(range(1 << 30))
        one.send = lambda frame: None if next(count) == 7 else whole(frame)  # type: ignore[method-assign]
        yield one, other

    with pytest.raises(AssertionError):
        await check_transport(lossy, deadline=1)


def test_the_contract_has_checks() -> None:
    assert len(CHECKS) >= 6


@pytest.mark.parametrize("make", [memory, pipes, websocket_client_first], ids=lambda make: make.__name__)
async def test_a_peer_that_does_not_read_ends_the_link(make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.transports.base.OUTBOX_MOST", 1_000_000)
    sent = 0
    async with asyncio.timeout(30), make() as (one, other):
        ended = asyncio.Event()
        one.start(lambda _: None, ended.set)
        other.start(lambda _: None, lambda: None)
        other.pause()
        while not ended.is_set():
            one.send(b"x" * 10_000)
            sent += 10_000
            await asyncio.sleep(0)
        assert one.end_reason == "over 1000000 bytes were sent to a peer that does not read"
        assert sent < 32_000_000, "what the kernel takes comes first"
