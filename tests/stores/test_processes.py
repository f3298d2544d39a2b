"""Several processes on one file, and processes that die."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import SessionClaimed
from antiphon.stores import Batch, SQLiteStore
from antiphon.stores.sqlite import schema
from antiphon.testing.store_samples import events, read_all, session

WRITES_UNTIL_KILLED = """
import asyncio, os, sys
from antiphon.stores import SQLiteStore
from antiphon.testing.store_samples import events

async def main():
    async with SQLiteStore(sys.argv[1], durability=sys.argv[2]) as store:
        record = await store.get("a")
        last, size = record.last, 0
        while True:
            size = (size * 7 + 3) % 41  # 3, 24, 7, … events, and once in a while a large batch
            count = size or 6000
            await store.append("a", events(last + 1, last + count))
            last += count
            os.write(1, b"%d\\n" % last)

asyncio.run(main())
"""
WRITES_IN_COMPETITION = """
import asyncio, sys
from antiphon.errors import SessionExists, StaleWriter
from antiphon.stores import SQLiteStore
from antiphon.testing.store_samples import events, session

async def main():
    path, name = sys.argv[1:]
    async with SQLiteStore(path) as store:
        await store.create(session(name))
        try:
            await store.create(session("shared"))
        except SessionExists:
            pass
        last = 0
        for written in range(1, 151):
            await store.append(name, events(written, written))
            taken = False
            while not taken:
                try:
                    await store.append("shared", events(last + 1, last + 1))
                    last, taken = last + 1, True
                except StaleWriter as stale:
                    last = stale.actual

asyncio.run(main())
"""
CLAIMS = """
import asyncio, sys
from antiphon.stores import SQLiteStore

async def main():
    store = SQLiteStore(sys.argv[1])
    await store.claim("a", "another editor")
    print("claimed", flush=True)
    sys.stdin.read()

asyncio.run(main())
"""
APPENDS_ONCE = """
import asyncio, sys
from antiphon.stores import SQLiteStore
from antiphon.testing.store_samples import events

async def main():
    async with SQLiteStore(sys.argv[1]) as store:
        await store.append("a", events(1, 7))

asyncio.run(main())
"""


@contextmanager
def running(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def make_session(path: Path) -> None:
    async def make() -> None:
        async with SQLiteStore(path) as store:
            await store.create(session("a"))

    asyncio.run(make())


@pytest.mark.parametrize(("durability", "rounds"), [("process", 10), ("power", 2)])
def test_what_was_committed_survives_kill_9(tmp_path: Path, durability: str, rounds: int) -> None:
    path = tmp_path / "s.db"
    make_session(path)
    chance = random.Random(7)
    committed = 0
    for _ in range(rounds):
        with running(WRITES_UNTIL_KILLED, path, durability) as process:
            assert process.stdout is not None
            for _ in range(chance.randrange(1, 150)):
                committed = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
            process.wait()
            for line in process.stdout.read().split():
                committed = int(line)

        async def check(committed: int) -> int:
            async with SQLiteStore(path) as store:
                found = await read_all(store, "a")
                assert len(found) >= committed, "a committed event is gone"
                assert found == list(events(1, len(found)).events), "a batch is torn"
                await store.append("a", events(len(found) + 1, len(found) + 1))
                return len(found) + 1

        committed = asyncio.run(check(committed))


def test_four_processes_make_and_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    names = ["a", "b", "c", "d"]
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITES_IN_COMPETITION, str(path), name]) for name in names
    ]
    assert [process.wait(timeout=60) for process in processes] == [0] * 4

    async def check() -> None:
        async with SQLiteStore(path) as store:
            assert await read_all(store, "shared") == list(events(1, 600).events)
            for name in names:
                assert await read_all(store, name) == list(events(1, 150).events)

    asyncio.run(check())


def test_a_claim_of_another_process_holds_until_that_process_dies(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    make_session(path)

    async def check(process: subprocess.Popen[str]) -> None:
        async with SQLiteStore(path) as store:
            with pytest.raises(SessionClaimed, match=f"open in another editor .process {process.pid}."):
                await store.claim("a", "this editor")
            assert (await store.read("a", 0)).last == 0, "who is refused may follow"
            process.kill()
            process.wait()
            await store.claim("a", "this editor")
            left = [name for name in os.listdir(tmp_path) if "-owner-" in name]
            assert len(left) == 1, "what the dead one left is swept"
        assert os.listdir(tmp_path) == ["s.db"]

    with running(CLAIMS, path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "claimed\n"
        asyncio.run(check(process))


def test_growth_by_another_process_wakes_who_waits(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    make_session(path)

    async def check() -> None:
        async with SQLiteStore(path) as store, asyncio.timeout(30):
            waiting = asyncio.ensure_future(store.grown("a", 0))
            await asyncio.sleep(0)
            with running(APPENDS_ONCE, path):
                assert await waiting == 7
            assert await read_all(store, "a") == list(events(1, 7).events)
            await store.append("a", Batch(8, (b"8",)))

    asyncio.run(check())


def test_a_file_whose_tables_another_process_is_creating_is_not_taken_for_a_foreign_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, connect = tmp_path / "s.db", sqlite3.connect

    class Interrupted(sqlite3.Connection):
        """Lets another process create the tables between two reads of this one."""

        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            found = super().execute(sql, *parameters)
            if sql != "PRAGMA application_id":
                return found
            row = found.fetchone()
            with closing(connect(path, timeout=0, isolation_level=None)) as other, suppress(sqlite3.Error):
                schema.migrate(other, path)  # it has to wait if this one still reads
            return super().execute(f"SELECT {row[0]}")

    monkeypatch.setattr(sqlite3, "connect", partial(connect, factory=Interrupted))
    schema.open_writer(path, schema.Durability.PROCESS, patience=1.0).close()
