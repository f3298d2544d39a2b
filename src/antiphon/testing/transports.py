"""The contract of a transport, as a function: `check_transport(make)`.

`make` is called anew for each check and opens two linked ends. A failed check raises `AssertionError`
with the promise that was broken.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

from antiphon.jsonrpc.lines import Received
from antiphon.transports.base import Inbox, Transport

Make = Callable[[], AbstractAsyncContextManager[tuple[Transport, Transport]]]
DEADLINE = 20.0
FRAMES = 300
"""How many are sent one after the other. Over HTTP each is a request."""


async def check_transport(make: Make, *, deadline: float = DEADLINE) -> None:
    """Run every check of the contract against transports opened by `make`."""
    for check in CHECKS:
        async with make() as (one, other):
            try:
                async with asyncio.timeout(deadline):
                    await check(one, other)
            except TimeoutError as error:
                raise AssertionError(f"{check.__name__}: not done within {deadline:g} s") from error


async def take(transport: Transport, count: int) -> list[Received]:
    """Start a transport and take its first `count` frames."""
    return await take_more(Inbox(transport), count)


async def take_more(inbox: Inbox, count: int) -> list[Received]:
    """The next `count` frames; more than that must not have come."""
    taken: list[Received] = []
    while len(taken) < count:
        batch = await inbox.take()
        assert batch, f"the link ended after {len(taken)} of {count} frames"
        taken += batch
    return taken


async def take_all(transport: Transport) -> list[Received]:
    """Start a transport and take every frame until it ends."""
    inbox = Inbox(transport)
    taken: list[Received] = []
    while batch := await inbox.take():
        taken += batch
    return taken


async def frames_arrive_whole_and_in_order(one: Transport, other: Transport) -> None:
    sent = [b'{"n":%d}' % n for n in range(FRAMES)]
    for frame in sent:
        one.send(frame)
    assert await take(other, len(sent)) == sent, "frames were lost, cut or put in another order"


async def what_was_framed_for_many_arrives_in_its_place(one: Transport, other: Transport) -> None:
    framing = one.framing
    if framing is None:
        return  # each of these links is on its own
    sent = [b'{"n":%d}' % n for n in range(6)] + [b'{"long":"%b"}' % (b"x" * size) for size in (120, 70_000)]
    one.send(sent[0])
    one.send_framed(framing(sent[1:3]))
    one.send(sent[3])
    one.send_now(sent[4])
    one.send_framed(framing(sent[5:]))
    assert await take(other, len(sent)) == sent


async def both_directions_are_independent(one: Transport, other: Transport) -> None:
    one.send(b'{"from":"one"}')
    other.send(b'{"from":"other"}')
    assert await take(one, 1) == [b'{"from":"other"}']
    assert await take(other, 1) == [b'{"from":"one"}']


async def bytes_are_kept_as_they_are(one: Transport, other: Transport) -> None:
    sent = ['{"s":"é 漢字 🎵"}'.encode(), b'{"s":"\\u2028\\r tab\\t"}', b'{"s":"' + b"x" * 5_000_000 + b'"}']
    for frame in sent:
        one.send(frame)
    assert await take(other, len(sent)) == sent


async def a_producer_is_pushed_back(one: Transport, other: Transport) -> None:
    sent = 0
    while not one.congested:
        one.send(b'{"s":"%b"}' % secrets.token_hex(5_000).encode())  # hard to compress
        sent += 1
        assert sent < 100_000, "a transport that nobody reads from took a gigabyte without complaint"
        await asyncio.sleep(0)
    waiting = asyncio.ensure_future(one.drain())
    inbox = Inbox(other)
    taken = 0
    while taken < sent:
        taken += len(await inbox.take())
    await waiting
    assert not one.congested
    assert taken == sent


async def closing_sends_what_was_queued_and_ends_both_ends(one: Transport, other: Transport) -> None:
    sent = [b'{"last":%d}' % n for n in range(100)]
    for frame in sent:
        one.send(frame)
    mine = Inbox(one)
    closing = asyncio.ensure_future(one.aclose())
    assert await take_all(other) == sent
    assert other.end_reason, "an ended transport says why"
    await other.aclose()
    await closing
    assert await mine.take() == [], "closing tells its own side that it is over"


async def a_pause_holds_everything_back_and_loses_nothing(one: Transport, other: Transport) -> None:
    received: list[Received] = []
    ended = asyncio.Event()
    some = asyncio.Event()

    def receive(frames: list[Received]) -> None:
        received.extend(frames)
        other.pause()
        some.set()

    other.start(receive, ended.set)
    sent = [b'{"n":%d}' % n for n in range(FRAMES)]
    for n, frame in enumerate(sent):
        one.send(frame)
        if n % 50 == 49:
            await asyncio.sleep(0)
    closing = asyncio.ensure_future(one.aclose())
    while len(received) < len(sent):
        await some.wait()
        some.clear()
        held = len(received)
        await asyncio.sleep(0)
        assert len(received) == held, "frames came in a pause"
        other.resume()
    other.resume()
    await ended.wait()
    assert received == sent
    await closing


async def after_the_end_nothing_raises(one: Transport, other: Transport) -> None:
    await other.aclose()
    assert await take_all(one) == []
    one.send(b"{}")
    await one.drain()
    await one.aclose()
    await one.aclose()
    one.send(b"{}")
    if one.framing is not None:
        one.send_framed(one.framing([b"{}"]))
    await one.drain()


CHECKS: tuple[Callable[[Transport, Transport], Coroutine[Any, Any, None]], ...] = (
    frames_arrive_whole_and_in_order,
    what_was_framed_for_many_arrives_in_its_place,
    both_directions_are_independent,
    bytes_are_kept_as_they_are,
    a_producer_is_pushed_back,
    a_pause_holds_everything_back_and_loses_nothing,
    closing_sends_what_was_queued_and_ends_both_ends,
    after_the_end_nothing_raises,
)
