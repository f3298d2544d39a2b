"""Each word for a fault does to a real peer what it says, over stdio and over a WebSocket."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from antiphon.conformance.agent.conversation import initialize_params
from antiphon.conformance.faults import Fault, FaultProxy, FaultyProcess, WebSocketProxy
from antiphon.conformance.link import BARRIER, Link, NotSeen
from antiphon.conformance.recording import RecordedFrame, Role
from antiphon.hub import Hub
from antiphon.transports.base import Transport
from antiphon.transports.websocket import connect_websocket

GOOD_AGENT = [sys.executable, str(Path(__file__).parent / "good" / "agent.py")]
TIMEOUT = 30.0
HIT = "_antiphon.judge/hit"


def is_hit(frame: RecordedFrame) -> bool:
    return frame.method == HIT


@asynccontextmanager
async def stdio() -> AsyncIterator[tuple[Transport, FaultProxy]]:
    """The good agent, as a process."""
    process = await FaultyProcess.start(GOOD_AGENT)
    try:
        yield process.transport, process
    finally:
        await process.aclose()


@asynccontextmanager
async def websocket() -> AsyncIterator[tuple[Transport, FaultProxy]]:
    """A hub without agents, at a port."""
    hub = Hub({})
    async with hub.listening():
        proxy = await WebSocketProxy.listen(f"ws://127.0.0.1:{hub.port}/acp")
        transport = await connect_websocket(proxy.address, headers={"Authorization": f"Bearer {hub.token}"})
        try:
            yield transport, proxy
        finally:
            await transport.aclose()
            await proxy.aclose()


Stage = tuple[Link, FaultProxy]


@pytest.fixture(params=[stdio, websocket], ids=["stdio", "websocket"])
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    async with request.param() as (transport, proxy):
        link = Link(transport, role=Role.CLIENT, timeout=TIMEOUT)
        await link.call("initialize", initialize_params(2, {}))
        yield link, proxy
        await link.aclose()


async def test_a_dropped_frame_never_arrives_and_the_next_ones_do(stage: Stage) -> None:
    link, proxy = stage
    fault = proxy.to_peer.drop(is_hit)
    lost = link.request(HIT)
    await link.barrier()
    await fault.happens(timeout=TIMEOUT)
    assert link.recording.response_to(lost) is None
    assert (await link.response(link.request(HIT))).error_code is not None  # a fault hits once


async def test_a_dropped_answer_never_arrives(stage: Stage) -> None:
    link, proxy = stage
    fault = proxy.to_client.drop(lambda frame: frame.is_response)
    lost = link.request(HIT)
    await fault.happens(timeout=TIMEOUT)
    await link.barrier()
    assert link.recording.response_to(lost) is None


async def test_a_duplicate_arrives_twice(stage: Stage) -> None:
    link, proxy = stage
    fault = proxy.to_client.duplicate(lambda frame: frame.is_response)
    request = link.request(HIT)
    await link.barrier()
    await fault.happens(timeout=TIMEOUT)
    assert [frame.id for frame in link.since(request)].count(request.id) == 2


async def test_a_held_frame_and_those_behind_it_wait_for_their_release(stage: Stage) -> None:
    link, proxy = stage
    fault = proxy.to_peer.hold(is_hit)
    held, behind = link.request(HIT), link.request(BARRIER)
    await fault.happens(timeout=TIMEOUT)
    assert link.since(held) == []
    fault.release()
    await link.response(behind)
    assert [frame.id for frame in link.since(held)] == [held.id, behind.id]


async def ended_by(fault: Fault, link: Link) -> RecordedFrame:
    """Send a request to which the fault happens, and wait for the end of the connection."""
    request = link.request(HIT)
    await fault.happens(timeout=TIMEOUT)
    await link.end()
    return request


async def test_a_frame_that_is_cut_ends_the_connection(stage: Stage) -> None:
    link, proxy = stage
    request = await ended_by(proxy.to_peer.cut_inside(is_hit), link)
    assert all(frame.id != request.id for frame in link.since(request))


async def test_an_answer_that_is_cut_does_not_reach_the_client(stage: Stage) -> None:
    link, proxy = stage
    request = await ended_by(proxy.to_client.cut_inside(lambda frame: frame.is_response), link)
    assert all(frame.id != request.id for frame in link.since(request))


async def test_a_connection_ends_in_place_of_a_frame(stage: Stage) -> None:
    link, proxy = stage
    request = await ended_by(proxy.to_peer.disconnect_before(is_hit), link)
    assert link.since(request) == []


async def test_a_connection_ends_after_a_frame(stage: Stage) -> None:
    link, proxy = stage
    request = await ended_by(proxy.to_peer.disconnect_after(is_hit), link)
    assert link.recording.response_to(request) is None


async def test_a_frame_before_a_disconnect_was_accepted() -> None:
    hub = Hub({})
    headers = {"Authorization": f"Bearer {hub.token}"}
    async with hub.listening():
        address = f"ws://127.0.0.1:{hub.port}/acp"
        proxy = await WebSocketProxy.listen(address)
        link = Link(
            await connect_websocket(proxy.address, headers=headers), role=Role.CLIENT, timeout=TIMEOUT
        )
        fault = proxy.to_peer.disconnect_after(lambda frame: frame.method == "initialize")
        link.request("initialize", initialize_params(2, {}))
        await fault.happens(timeout=TIMEOUT)
        await link.end()
        await link.aclose()
        await proxy.aclose()
        await (await connect_websocket(address, headers=headers)).aclose()  # the hub goes on


async def test_a_half_closed_peer_ends(stage: Stage) -> None:
    link, proxy = stage
    proxy.to_peer.half_close()
    await link.end()


async def test_a_paused_reader_gets_nothing_until_it_resumes(stage: Stage) -> None:
    link, proxy = stage
    proxy.to_client.pause()
    request = link.request(HIT)
    with pytest.raises(NotSeen):
        await link.response(request, timeout=0.1)
    proxy.to_client.resume()
    assert (await link.response(request)).error_code is not None


async def test_a_killed_process_ends_the_connection() -> None:
    process = await FaultyProcess.start(GOOD_AGENT)
    link = Link(process.transport, role=Role.CLIENT, timeout=TIMEOUT)
    await link.call("initialize", initialize_params(2, {}))
    process.kill()
    await link.end()
    await process.aclose()


async def test_a_large_frame_passes_whole(stage: Stage) -> None:
    link, _ = stage
    request = link.request(HIT, {"filling": "é" * 500_000})
    assert (await link.response(request)).error_code is not None


async def test_only_plain_websockets_can_be_proxied() -> None:
    with pytest.raises(ValueError, match="ws://"):
        await WebSocketProxy.listen("wss://hub.example/acp")
