"""Events per second into NATS JetStream: live sessions, the store alone, and bare nats-py.

All three write the same events in the same batches, a hundred events each, with one batch under way per
session, from one process. A live session numbers the chunks of an agent, folds them, encodes them and commits
them. The store gets the batches of that run again, and bare nats-py publishes them, joined beforehand, into
streams of the same kind: it numbers nothing, expects nothing and checks nothing.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

import nats
from nats.js import JetStreamContext
from nats.js.api import StorageType, StreamConfig

from antiphon.engine.events import Updated
from antiphon.live.session import LiveSession
from antiphon.schema import v2
from antiphon.schema.updates import PlainText, TextChunk
from antiphon.stores import Batch, JetStreamOptions, JetStreamStore, RecordPatch, SessionRecord
from bench.session_agent import FORTY

CHUNK = TextChunk(session_update="agent_message_chunk", message_id="message-1", content=PlainText(text=FORTY))
EACH = 100
NAME, BARE = "bench", "bench-bare"
SHARDS = JetStreamOptions().shards


class Servers(NamedTuple):
    """NATS servers, and how many of them keep each stream."""

    address: str
    replicas: int

    @property
    def options(self) -> JetStreamOptions:
        return JetStreamOptions(name=NAME, replicas=self.replicas)


Batches = Mapping[str, Sequence[Batch]]
"""What was written, by session."""


class NotingStore(JetStreamStore):
    """Remembers the batches that are appended."""

    def __init__(self, servers: Servers, batches: dict[str, list[Batch]]) -> None:
        super().__init__(servers.address, servers.options)
        self._batches = batches

    async def append(self, session_id: str, batch: Batch, *, record: RecordPatch | None = None) -> None:
        self._batches.setdefault(session_id, []).append(batch)
        await super().append(session_id, batch, record=record)


async def live_rate(servers: Servers, *, sessions: int, events: int) -> tuple[float, Batches]:
    """Stream events through live sessions, the same number through each. Return the events per second, and
    what was written."""

    async def stream(live: LiveSession) -> None:
        live.emit([Updated.of(v2.SessionStateUpdate(state=v2.State.RUNNING))])
        for _ in range(events // sessions // EACH):
            live.stream_text([CHUNK] * EACH)
            await live.durable()

    batches: dict[str, list[Batch]] = {}
    async with emptied(servers), NotingStore(servers, batches) as store, AsyncExitStack() as stack:
        created = [
            await LiveSession.create(store, session_id=f"live-{n}-{now()}", cwd="/", clock=now)
            for n in range(sessions)
        ]
        lives = [await stack.enter_async_context(live) for live in created]
        seconds = await timed([stream(live) for live in lives])
    return count(batches) / seconds, batches


async def store_rate(servers: Servers, batches: Batches) -> float:
    """Append the batches again, with the store alone."""
    async with emptied(servers), JetStreamStore(servers.address, servers.options) as store:

        async def append(session_id: str, appended: Sequence[Batch]) -> None:
            for batch in appended:
                await store.append(session_id, batch)

        for session_id, appended in batches.items():
            record = SessionRecord(session_id=session_id, cwd="/", created_at=0, updated_at=0)
            created = Batch(1, (b"{}",) * (appended[0].first - 1))
            await store.create(record, batch=created)
            await store.claim(session_id, "bench")
        seconds = await timed([append(*each) for each in batches.items()])
    return count(batches) / seconds


async def bare_rate(servers: Servers, batches: Batches) -> float:
    """Publish the batches again, with nothing but nats-py."""
    async with emptied(servers) as js:
        for n in range(SHARDS):
            config = StreamConfig(
                name=f"{BARE}-{n}",
                subjects=[f"{BARE}.{n}.>"],
                storage=StorageType.FILE,
                num_replicas=servers.replicas,
            )
            await js.add_stream(config)

        async def publish(subject: str, messages: Sequence[bytes]) -> None:
            for message in messages:
                await js.publish(subject, message)

        joined = [[b"\n".join(batch.events) for batch in appended] for appended in batches.values()]
        seconds = await timed(
            [publish(f"{BARE}.{n % SHARDS}.{n}", messages) for n, messages in enumerate(joined)]
        )
    return count(batches) / seconds


async def timed(writers: Sequence[Awaitable[None]]) -> float:
    """Run the writers of all sessions at once; return the seconds until all are done."""
    gc.collect()
    began = time.perf_counter()
    await asyncio.gather(*writers)
    return time.perf_counter() - began


def count(batches: Batches) -> int:
    return sum(len(batch.events) for appended in batches.values() for batch in appended)


def now() -> int:
    return time.time_ns() // 1_000_000


@asynccontextmanager
async def emptied(servers: Servers) -> AsyncIterator[JetStreamContext]:
    """A connection; at its end the streams that were written to are emptied, so that a round leaves nothing
    to the next."""
    client = await nats.connect(servers.address.split(","))
    js = client.jetstream(timeout=30)
    try:
        yield js
        for stream in await js.streams_info():
            if stream.config.name is not None and stream.config.name.startswith(NAME):
                await js.purge_stream(stream.config.name)
    finally:
        await client.close()
