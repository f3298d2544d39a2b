"""What a store costs beside the database it writes to: `python -m bench.session_store`."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

from antiphon.stores import Batch, SessionRecord, SQLiteStore
from antiphon.stores.sqlite.schema import Durability, open_writer

PRODUCERS = 4
EVENTS = 64
BATCHES = 800  # of each producer: about 200,000 events
EVENT = b'{"sessionUpdate":"agent_message_chunk","messageId":"msg_0123456789abcdef","content":' + (
    b'{"type":"text","text":"%s"}}' % (b"some words of the answer " * 2)[:38]
)
ROUNDS = 5


def batch(number: int) -> Batch:
    return Batch(number * EVENTS + 1, (EVENT,) * EVENTS)


async def store_run(path: Path, *, durability: str = "process", batches: int = BATCHES) -> tuple[float, int]:
    """Events per second through `SQLiteStore.append`, and how many commits there were."""
    async with SQLiteStore(path, durability=durability) as store:
        for n in range(PRODUCERS):
            await store.create(SessionRecord(session_id=f"s{n}", cwd="/", created_at=n, updated_at=n))
        writer = store._writer
        assert writer is not None
        before = writer.commits

        async def produce(session_id: str) -> None:
            for number in range(batches):
                await store.append(session_id, batch(number))

        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for n in range(PRODUCERS):
                group.create_task(produce(f"s{n}"))
        took = time.perf_counter() - began
        return PRODUCERS * batches * EVENTS / took, writer.commits - before


def bare_run(path: Path, *, commits: int, batches: int = BATCHES) -> float:
    """Events per second of bare `executemany` of the same batches, in as many transactions."""
    connection = open_writer(path, Durability.PROCESS, patience=1)
    connection.execute("PRAGMA wal_autocheckpoint = 1000")  # SQLite's own
    each = max(1, round(PRODUCERS * batches / commits))
    rows = [
        (n, number * EVENTS + 1, (number + 1) * EVENTS, b"\n".join((EVENT,) * EVENTS))
        for number in range(batches)
        for n in range(PRODUCERS)
    ]
    began = time.perf_counter()
    for at in range(0, len(rows), each):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT INTO batches (session, first, last, events) VALUES (?, ?, ?, ?)", rows[at : at + each]
        )
        connection.execute("COMMIT")
    took = time.perf_counter() - began
    connection.close()
    return PRODUCERS * batches * EVENTS / took


def lone_append_us(path: Path, *, count: int = 2000) -> float:
    """Microseconds for one append of one event to an idle store, each in its own turn of the loop."""

    async def run() -> float:
        async with SQLiteStore(path) as store:
            await store.create(SessionRecord(session_id="s", cwd="/", created_at=0, updated_at=0))
            times = []
            for number in range(1, count + 1):
                await asyncio.sleep(0)
                began = time.perf_counter()
                await store.append("s", Batch(number, (EVENT,)))
                times.append(time.perf_counter() - began)
            return statistics.median(times) * 1e6

    return asyncio.run(run())


def measured() -> tuple[float, float, float]:
    """One round: events per second of the store, of the bare table, and batches per commit of the store."""
    with tempfile.TemporaryDirectory() as folder:
        gc.collect()
        store, commits = asyncio.run(store_run(Path(folder, "store.db")))
        bare = bare_run(Path(folder, "bare.db"), commits=commits)
    return store, bare, PRODUCERS * BATCHES / commits


def append_ratio() -> float:
    """Events per second of `SQLiteStore.append` over those of bare `executemany`; the bar is 0.5.

    Store: durability "process", four producers on four sessions, each awaiting its append before the next, in
    batches of 64 events of about 150 bytes, 204,800 events in all; an append returns when it is committed.
    Bare: the same batches into the same table of a file opened in the same way (WAL, synchronous NORMAL),
    already joined to one row each, in transactions of as many batches as the store had in a
    commit on average, with `executemany` for each; SQLite's own checkpoints. Both in one process, one after
    the other; the median of five rounds.
    """
    ratios = []
    for _ in range(ROUNDS):
        store, bare, _each = measured()
        ratios.append(store / bare)
    return statistics.median(ratios)


def main() -> None:
    print(f"sqlite {sqlite3.sqlite_version}, events of {len(EVENT)} bytes")
    rounds = [measured() for _ in range(ROUNDS)]
    for store, bare, each in rounds:
        print(
            f"store {store:>11,.0f} events/s   bare {bare:>11,.0f} events/s   {each:.2f} batches per commit"
        )
    print(
        f"append_vs_raw_sqlite {statistics.median(store / bare for store, bare, _ in rounds):.2f} (bar 0.5)"
    )
    with tempfile.TemporaryDirectory() as folder:
        print(f"one event to an idle store: {lone_append_us(Path(folder, 'lone.db')):.1f} µs")
        power, _ = asyncio.run(store_run(Path(folder, "power.db"), durability="power", batches=50))
        print(f'durability "power": {power:,.0f} events/s')


if __name__ == "__main__":
    main()
