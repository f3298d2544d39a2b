"""What stores of one installation have in common: announcements to all others, and the status."""

from __future__ import annotations

import asyncio
import os

import pytest
from tests.stores.conftest import MakeOptions
from tests.stores.several_stores import stores

from antiphon.errors import (
    LocalError,
)
from antiphon.stores import (
    JetStreamStore,
    MemoryStore,
    SharedStore,
    SQLiteStore,
)
from antiphon.testing.store_samples import events, session


def test_only_stores_for_several_hosts_are_shared() -> None:
    assert isinstance(JetStreamStore("nats://127.0.0.1"), SharedStore)
    assert not isinstance(MemoryStore(), SharedStore)
    assert not isinstance(object.__new__(SQLiteStore), SharedStore)


async def test_the_status_counts_what_streams_keep(nats: str, apart: MakeOptions) -> None:
    options = apart()
    async with stores(nats, options, 1) as (one,):
        await one.create(session("a"), batch=events(1, 3))
        status = {stream.name: stream for stream in await one.status()}
        assert len(status) == 7
        journals = [status[f"{options.name}-journal-{n}"] for n in range(2)]
        assert sum(stream.messages for stream in journals) == 1
        assert sum(stream.bytes for stream in journals) > 0
        assert {stream.lag for stream in status.values()} == {0}


# --- announcements ------------------------------------------------------------------------------------


async def test_announcements_reach_all_other_stores_in_order(nats: str, apart: MakeOptions) -> None:
    async with stores(nats, apart(), 3) as (one, two, three):
        heard: dict[str, list[tuple[str, bytes]]] = {store.store_id: [] for store in (one, two, three)}
        ended = {store.store_id: asyncio.Event() for store in (two, three)}
        for store in (one, two, three):

            def receive(sender: str, data: bytes, name: str = store.store_id) -> None:
                heard[name].append((sender, data))
                if data == b"end":
                    ended[name].set()

            await store.listen("presence", receive)
        said = [b"%d" % n if n % 10 else os.urandom(200_000) for n in range(1, 50)] + [b"end"]
        for data in said:
            await one.announce("presence", data)
            await one.announce("limits", b"nobody listens to this")
        for event in ended.values():
            await event.wait()
        expected = [(one.store_id, data) for data in said]
        assert heard == {one.store_id: [], two.store_id: expected, three.store_id: expected}


async def test_a_listener_that_fails_hears_the_next_announcement(nats: str, apart: MakeOptions) -> None:
    async with stores(nats, apart()) as (one, other):
        heard: asyncio.Queue[bytes] = asyncio.Queue()

        def receive(_: str, data: bytes) -> None:
            if data == b"1":
                raise ValueError("a bug")
            heard.put_nowait(data)

        await other.listen("news", receive)
        for data in (b"1", b"2"):
            await one.announce("news", data)
        assert await heard.get() == b"2"


async def test_a_topic_that_is_no_name_is_refused(nats: str, apart: MakeOptions) -> None:
    async with stores(nats, apart(), 1) as (one,):
        for topic in ("", "a.b", ">", "two words"):
            with pytest.raises(LocalError, match="topic must be"):
                await one.announce(topic, b"")
            with pytest.raises(LocalError, match="topic must be"):
                await one.listen(topic, lambda *_: None)
