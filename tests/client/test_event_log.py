"""Logs are seen from their beginning by all, feeds from now on by one; both end."""

from __future__ import annotations

import asyncio
import gc
from weakref import WeakSet

from antiphon.client.session.event_log import EventLog, EventQueue


async def test_each_watcher_of_a_log_sees_all_of_it_however_late() -> None:
    log: EventLog[int] = EventLog()
    log.add(1)
    early = asyncio.ensure_future(_all(log.watch()))
    await asyncio.sleep(0)
    log.add(2)
    late = asyncio.ensure_future(_all(log.watch()))
    await asyncio.sleep(0)
    log.add(3)
    log.end()
    assert await early == await late == await _all(log.watch()) == [1, 2, 3]


class Seen:
    """An entry; whether it is kept shows by a weak reference."""


async def test_a_feed_keeps_nothing_that_was_seen() -> None:
    feed: EventQueue[Seen] = EventQueue()
    watching = feed.watch()
    kept: WeakSet[Seen] = WeakSet()
    for _ in range(3):
        kept.add(added := Seen())
        feed.add(added)
        assert await anext(watching) is added
        del added
        gc.collect()
        assert not kept
    feed.end()
    assert await _all(watching) == []


async def test_a_watcher_that_gives_up_leaves_the_others_alone() -> None:
    log: EventLog[int] = EventLog()
    gone, stays = asyncio.ensure_future(_all(log.watch())), asyncio.ensure_future(_all(log.watch()))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait([gone])
    log.add(1)
    log.end()
    assert await stays == [1]


async def _all(watching: object) -> list[int]:
    return [entry async for entry in watching]  # type: ignore[attr-defined]
